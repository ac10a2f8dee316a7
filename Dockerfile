# The image of Headgate. docs/production.md says how to run it.

FROM node:24-slim AS build
WORKDIR /app
# What decides the dependencies comes first, so that a change of the code does not install them anew.
COPY package.json package-lock.json ./
COPY catalogue/package.json catalogue/
COPY client/package.json client/
COPY server/package.json server/
RUN npm ci --omit=dev --ignore-scripts --workspace=headgate
COPY LICENSE ./
COPY packaging packaging/
COPY catalogue catalogue/
COPY client client/
COPY server server/
# The links to the packages of this repository lead nowhere in the image; what they hold is built in.
RUN npm run build --workspace=headgate && rm -rf node_modules/headgate node_modules/@headgate

FROM node:24-slim
LABEL org.opencontainers.image.title="Headgate" \
      org.opencontainers.image.description="A self-hosted, multi-organisation data-ingestion service" \
      org.opencontainers.image.licenses="MIT"
WORKDIR /app
COPY --from=build /app/node_modules node_modules/
COPY --from=build /app/server/package.json /app/server/LICENSE server/
COPY --from=build /app/server/bin server/bin/
COPY --from=build /app/server/dist server/dist/
RUN ln -s /app/server/bin/headgate.js /usr/local/bin/headgate && install -d -o 10001 -g 10001 -m 700 /data

# Others can reach a container's address, so HEADGATE_TLS_CERT and HEADGATE_TLS_KEY, or HEADGATE_BEHIND_PROXY, must
# be given as well: Headgate says so, and does not start without.
ENV NODE_ENV=production \
    HEADGATE_HOST=0.0.0.0 \
    HEADGATE_PORT=8080 \
    HEADGATE_DATABASE=sqlite:/data/headgate.db \
    HEADGATE_ANALYTICS_DIR=/data/analytics
USER 10001:10001
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --start-interval=1s CMD ["headgate", "ready"]
ENTRYPOINT ["headgate"]
CMD ["serve"]
