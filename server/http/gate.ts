// What every request passes before anything else is looked at: how it came, whose it is, how often.

import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Action } from '../access/scopes.ts';
import { permits } from '../access/scopes.ts';
import type { ApiKey } from '../store/keys.ts';
import { type Refusal, refuse } from './refusals.ts';
import { cameByHttps, presentedKey } from './request-headers.ts';
import type { Service } from './service.ts';

export const unauthorized: Refusal = {
  refusal: 'unauthorized',
  message: 'The API key is invalid or missing; send it as Authorization: Bearer <API_KEY>.',
  headers: { 'WWW-Authenticate': 'Bearer' },
};
export const notByHttps: Refusal = {
  refusal: 'forbidden',
  message: 'Use HTTPS: the proxy in front did not say X-Forwarded-Proto: https.',
};
const guarded = /^\/(?:v\d+|user-interactions)(?:[/?]|$)/;

/** Lets a request through that came by HTTPS, with a good key and within its rate. Others are refused. */
export function addGate(app: FastifyInstance, service: Service): void {
  app.decorateRequest('caller', null);
  app.addHook('onRequest', (request, reply, done) => {
    const { isPublic = false, isProbe = false } = request.routeOptions.config;
    if (isProbe) return done();
    if (service.behindProxy && !cameByHttps(request.headers)) return void refuse(reply, notByHttps);
    if (request.is404 ? !isGuarded(request.url) : isPublic) return done();
    const presented = presentedKey(request.headers);
    const found = presented === null ? null : service.gatekeeper.identify(presented);
    if (found instanceof Promise) found.then((key) => admit(service, request, reply, key, done), done);
    else admit(service, request, reply, found, done);
  });
}

/** Paths need a key unless they are marked; a path that does not exist may say so where nothing is guarded. */
export function isGuarded(url: string): boolean {
  return guarded.test(url);
}

function admit(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  key: ApiKey | null,
  done: () => void,
): void {
  if (key === null) return void refuse(reply, unauthorized);
  request.caller = key;
  const rate = service.rateLimiter?.take(key.keyId, performance.now());
  if (rate !== undefined) {
    reply.header('ratelimit-policy', `"key";q=${rate.limit};w=1`);
    reply.header('ratelimit', `"key";r=${rate.remaining};t=${rate.resetSeconds}`);
    if (!rate.allowed) {
      return void refuse(reply, overRate(rate.limit, rate.retryAfterSeconds));
    }
  }
  done();
}

export function overRate(requestsPerSecond: number, retryAfterSeconds: number): Refusal {
  return {
    refusal: 'too_many_requests',
    message: `This key may make ${requestsPerSecond} requests a second; wait and send it again.`,
    headers: { 'Retry-After': String(retryAfterSeconds) },
  };
}

/** Null when the caller may; otherwise the refusal that names the scope it lacks. */
export function lacksScope(
  caller: Pick<ApiKey, 'scopes'>,
  action: Action,
  type?: RecordTypeName,
): Refusal | null {
  const allowed =
    action === 'data:read' || action === 'data:write'
      ? permits(caller.scopes, action, type!)
      : permits(caller.scopes, action);
  if (allowed) return null;
  const scope = type === undefined ? action : `${action} or ${action}:${type}`;
  return { refusal: 'forbidden', message: `This key lacks the scope ${scope}.` };
}
