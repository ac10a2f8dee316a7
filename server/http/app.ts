// Builds the HTTP server: the routes, the checks that run before every route, and the responses to errors.

import { type IncomingMessage, METHODS } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { StoreUnavailable } from '../store/store.ts';
import { tlsProtocol } from '../tls.ts';
import { uuidV7 } from '../uuid-v7.ts';
import { getRecommendationReport, postSql } from './analytics-handlers.ts';
import { describer } from './api-description.ts';
import type { AppDependencies } from './app-dependencies.ts';
import {
  connectionCloser,
  endConnection,
  hasEarlyResponse,
  lastResponseDue,
  respondToHalfClosed,
} from './connections/connection-state.ts';
import { expectsTheUnknown, handleExpectations } from './connections/expect-continue.ts';
import { limitOpenConnections } from './connections/open-connections.ts';
import { limitConnections } from './connections/per-connection-limits.ts';
import { endStalledConnections } from './connections/stalled-connections.ts';
import { passCrossOrigin } from './cross-origin.ts';
import {
  headersTooLarge,
  MOST_HEADERS,
  methodUnknown,
  noSuchPath,
  notHttp,
  requestCutOff,
  requestTimedOut,
  shuttingDown,
  storeSilent,
  transferCoding,
  unexpected,
  unmetExpectation,
  unreadablePath,
} from './fixed-refusals.ts';
import { addGate, isGuarded, requestOwner } from './gate.ts';
import { headProblem } from './head-validation.ts';
import { postInteraction, postRecords } from './ingest-handlers.ts';
import { getChanges, getUpload, getUploads, getUsage } from './ledger-handlers.ts';
import { explainMember, getMemberChanges, getMembers } from './member-handlers.ts';
import { getInteraction, getInteractions, getRecord, getRecords } from './read-handlers.ts';
import { readinessOf } from './readiness.ts';
import { getOpenApi, getReference, getReferenceScript, getReferenceStyle } from './reference/handlers.ts';
import { type Refusal, type RefusalName, rawRefusal, refusals, refuse } from './refusals.ts';
import { reportUnparsed, watch } from './request-observation.ts';
import { type Route, type RouteName, routes } from './routes.ts';
import {
  deleteSegment,
  getSegment,
  getSegments,
  postPreview,
  postRefresh,
  putSegment,
} from './segment-handlers.ts';

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> | FastifyReply;

const HEADERS_TIMEOUT_MS = 20_000;
/** The time within which a whole request must arrive. It is enough for 32 MiB at 1 Mbit/s. */
const REQUEST_TIMEOUT_MS = 300_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** So that an attack does not fill the log with connections that are closed because there are too many. */
const CLOSINGS_LOGGED_AFTER_MS = 10_000;
/**
 * The longest part of a path that the router accepts. The HTTP parser accepts only shorter paths, so the router never
 * refuses a path for its length.
 */
const LONGEST_PATH_PART_CHARACTERS = 64 * 1024;

/**
 * Node's own check of the Host header is off, because its response has no body. `headProblem` refuses requests without
 * the header instead.
 */
const parsing = { headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false };

export function buildApp(service: AppDependencies): FastifyInstance {
  const { tls } = service;
  const securityHeaders = securityHeadersFor(service);
  const withUnreadablePath = new WeakSet<IncomingMessage>();
  const app = fastify({
    ...(tls === null ? { http: parsing } : { https: { ...parsing, ...tlsProtocol, ...tls } }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    genReqId: () => uuidV7(),
    requestIdHeader: false,
    logger: false,
    // Fastify's own HEAD routes read a streamed body to its end. `withoutBody` destroys it instead.
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: LONGEST_PATH_PART_CHARACTERS },
    // Fastify itself must not refuse requests while the server closes. The first `onRequest` hook below refuses them,
    // so that the response looks like every other refusal.
    return503OnClosing: false,
    clientErrorHandler(error, socket) {
      noteUnparsed(socket);
      refuseUnparsed(service, error, socket, securityHeaders);
    },
    // Fastify calls this if it cannot decode the path. The request is then routed again, to a path that does not exist,
    // so that the hooks run as for every other request.
    frameworkErrors(_, { raw }, reply) {
      withUnreadablePath.add(raw);
      raw.url = isGuarded(raw.url!) ? '/v1/unreadable' : '/unreadable';
      app.routing(raw, reply.raw);
    },
  }) as unknown as FastifyInstance;

  app.server.maxHeadersCount = MOST_HEADERS;
  respondToHalfClosed(app.server);
  limitOpenConnections(app.server, service.maxConnections, closingsLog(service));
  const noteUnparsed = limitConnections(app.server, requestOwner(service));
  handleExpectations(app.server);
  app.server.on('connect', (_, socket) => {
    // After CONNECT, Node no longer handles the errors and the end of the connection, so these listeners do.
    socket.on('error', () => socket.destroy()).on('finish', () => socket.destroy());
    afterResponsesDue(socket as Socket, () =>
      refuseRaw(service, socket as Socket, methodUnknown, securityHeaders),
    );
  });
  endStalledConnections(app.server, service.stallTimeoutMs);
  const closeConnections = connectionCloser(app.server, tls !== null);
  let closing = false;
  app.decorateRequest('watched', null);
  app.addHook('onRequest', (request, reply, done) => {
    watch(service.observer, request, reply);
    reply.headers(securityHeaders).header('x-request-id', request.id);
    const problem = headProblem(request.raw);
    if (problem !== null) return void refuse(reply, problem);
    if (passCrossOrigin(service, request, reply)) return;
    if (expectsTheUnknown(request.raw)) return void refuse(reply, unmetExpectation);
    if (closing && !request.routeOptions.config.isProbe) return void refuse(reply, shuttingDown);
    done();
  });
  addGate(app, service);
  // Makes Fastify read no bodies. The handlers read them after their checks.
  for (const method of app.supportedMethods) {
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }

  const handlers = handlersOf(service, () => closing);
  for (const [name, { method, path, access }] of Object.entries(routes)) {
    const config = { isPublic: access !== 'key', isProbe: access === 'probe' };
    const route = { url: path, config, handler: handlers[name as RouteName] };
    app.route({ ...route, method });
    if (method === 'GET') app.route({ ...route, method: 'HEAD', onSend: withoutBody });
  }
  app.addHook('preClose', (done) => {
    closing = true;
    service.followers.close();
    service.analytics?.endEvaluations();
    const progress = closeConnections(service.shutdownTimeoutMs, () => service.analytics?.close());
    app.server.once('close', () => {
      if (progress.cut === 0) return;
      service.log(
        'warn',
        { connections: progress.cut },
        'closed the connections of stalled clients while stopping',
      );
    });
    done();
  });
  app.setNotFoundHandler((request, reply) => {
    if (withUnreadablePath.has(request.raw)) return refuse(reply, unreadablePath);
    const methods = methodsOf(Object.values(routes), request.url.split('?', 1)[0]!);
    if (methods.length === 0) return refuse(reply, noSuchPath);
    return refuse(reply, {
      refusal: 'method_not_allowed',
      message: `This path does not support ${request.method}; use ${methods.join(', ')}.`,
      headers: { Allow: methods.join(', ') },
    });
  });
  app.setErrorHandler((error, request, reply) => refuseAfterError(service, error, request, reply));
  return app;
}

/** Removes the body from the response to a HEAD request, and states its length as the response to GET would. */
function withoutBody(
  _: FastifyRequest,
  reply: FastifyReply,
  body: unknown,
  done: (error: null, body: null) => void,
): void {
  if (body instanceof Readable) body.destroy();
  // A response such as 304 has no body, and does not state the length of one.
  else if (body != null) reply.header('content-length', Buffer.byteLength(body as string | Buffer));
  done(null, null);
}

/** Returns a function that counts the connections that were closed because too many were open, and logs their number. */
function closingsLog({ log, maxConnections }: AppDependencies): () => void {
  const reason = `more than ${maxConnections} connections were open (HEADGATE_MAX_CONNECTIONS)`;
  let closings = 0;
  const logThem = (): void => {
    log('warn', { connections: closings }, `closed connections of the addresses with the most: ${reason}`);
    closings = 0;
  };
  return () => {
    closings++;
    if (closings === 1) setTimeout(logThem, CLOSINGS_LOGGED_AFTER_MS).unref();
  };
}

function handlersOf(
  service: AppDependencies,
  isClosing: () => boolean,
): Readonly<Record<RouteName, Handler>> {
  const describe = describer(service.limits);
  const isReady = readinessOf(service);
  return {
    uploadRecords: postRecords(service),
    listRecords: getRecords(service),
    getRecord: getRecord(service),
    recordInteraction: postInteraction(service),
    listInteractions: getInteractions(service),
    getInteraction: getInteraction(service),
    listUploads: getUploads(service),
    getUpload: getUpload(service),
    listChanges: getChanges(service),
    getUsage: getUsage(service),
    runSql: postSql(service),
    getRecommendationReport: getRecommendationReport(service),
    listSegments: getSegments(service),
    previewSegment: postPreview(service),
    getSegment: getSegment(service),
    saveSegment: putSegment(service),
    deleteSegment: deleteSegment(service),
    refreshSegment: postRefresh(service),
    listMembers: getMembers(service),
    explainMember: explainMember(service),
    listMemberChanges: getMemberChanges(service),
    getLiveness: (_, reply) => reply.send({ status: 'alive' }),
    async getReadiness(_, reply) {
      if (isClosing()) return refuse(reply, shuttingDown);
      return (await isReady()) ? reply.send({ status: 'ready' }) : refuse(reply, storeSilent);
    },
    getOpenApi: getOpenApi(describe),
    reference: getReference(describe),
    referenceStyle: getReferenceStyle(),
    referenceScript: getReferenceScript(),
  };
}

function methodsOf(routes: readonly Route[], path: string): readonly string[] {
  const parts = path.split('/');
  const methods = routes
    .filter((route) => {
      const wanted = route.path.split('/');
      return (
        wanted.length === parts.length &&
        wanted.every((part, at) => part === parts[at] || (part.startsWith(':') && parts[at] !== ''))
      );
    })
    .map(({ method }) => method);
  return methods.includes('GET') ? ['HEAD', ...methods] : methods;
}

/** Returns the headers that every response has. Their names are lower case, so that Fastify need not convert them. */
function securityHeadersFor({ tls, behindProxy }: AppDependencies): Readonly<Record<string, string>> {
  return {
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    ...(tls === null && !behindProxy ? {} : { 'strict-transport-security': 'max-age=31536000' }),
  };
}

function refuseAfterError(
  service: AppDependencies,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof StoreUnavailable) {
    service.observer.metrics?.storeFailed('read');
    service.log('error', { request_id: request.id, cause: error.message }, 'the store is not available');
    return refuse(reply, storeSilent);
  }
  const status = (error as { statusCode?: number }).statusCode ?? 500;
  const name = Object.entries(refusals).find(([, refusal]) => refusal.status === status)?.[0];
  if (status < 500 && name !== undefined) {
    return refuse(reply, { refusal: name as RefusalName, message: (error as Error).message });
  }
  service.log('error', { request_id: request.id, err: error }, 'a request failed unexpectedly');
  return refuse(reply, unexpected);
}

/** Connections on which the HTTP parser has failed. */
const failed = new WeakSet<Socket>();

/** Responds to data that the HTTP parser refuses, and ends the connection. */
function refuseUnparsed(
  service: AppDependencies,
  error: NodeJS.ErrnoException,
  socket: Socket,
  headers: Readonly<Record<string, string>>,
): void {
  // The parser fails again for all further data on the connection. Only the first failure gets a response.
  if (failed.has(socket)) return;
  failed.add(socket);
  const hasResponse = hasEarlyResponse(socket);
  const end = (): void => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (hasResponse) endConnection(socket, '');
    else refuseRaw(service, socket, unparsed(error), headers);
  };
  afterResponsesDue(socket, end);
}

/**
 * Calls `end` once no earlier, complete request waits for its response any more, because a client matches responses to
 * requests by their order. `end` is prepended to the listeners, because Node's own listener may close the connection.
 */
function afterResponsesDue(socket: Socket, end: () => void): void {
  const due = lastResponseDue(socket);
  if (due === undefined) end();
  else due.prependOnceListener('finish', end);
}

/** Writes a refusal directly to a connection on which no handler can respond, and ends the connection. */
function refuseRaw(
  service: AppDependencies,
  socket: Socket,
  refusal: Refusal,
  headers: Readonly<Record<string, string>>,
): void {
  const requestId = uuidV7();
  endConnection(socket, rawRefusal(refusal, requestId, { 'X-Request-Id': requestId, ...headers }));
  reportUnparsed(service.observer, socket, requestId, refusals[refusal.refusal].status);
}

function unparsed({ code, rawPacket }: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimedOut;
    case 'HPE_INVALID_EOF_STATE':
      return requestCutOff;
    case 'HPE_INVALID_TRANSFER_ENCODING':
      return transferCoding;
    default: {
      // The parser reports HPE_INVALID_METHOD both for an unknown method and for data that is not HTTP. The first line
      // of the data shows which of the two it is.
      const method = /^([A-Z-]+) \S+ HTTP\/1\.[01]\r\n/.exec(rawPacket?.toString('latin1') ?? '')?.[1];
      const isUnknown = code === 'HPE_INVALID_METHOD' && method !== undefined && !METHODS.includes(method);
      return isUnknown ? methodUnknown : notHttp;
    }
  }
}
