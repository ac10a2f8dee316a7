// Checks before a handler runs that the request used HTTPS, has a valid API key and does not exceed the rate limit.

import type { IncomingMessage } from 'node:http';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Action } from '../access/scopes.ts';
import { permits } from '../access/scopes.ts';
import type { ApiKey } from '../store/keys.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { networkOf } from './connections/address-lines.ts';
import type { Owner } from './connections/owner.ts';
import { cameByHttps, presentedKey } from './header-values.ts';
import { type Refusal, refuse } from './refusals.ts';
import { routes } from './routes.ts';

export const unauthorized: Refusal = {
  refusal: 'unauthorized',
  message: 'The API key is invalid or missing; send it as Authorization: Bearer <API_KEY>.',
  headers: { 'WWW-Authenticate': 'Bearer' },
};
export const notByHttps: Refusal = {
  refusal: 'forbidden',
  message: 'Use HTTPS: the proxy in front did not send X-Forwarded-Proto: https.',
};
const guarded = /^\/(?:v\d+|user-interactions)(?:[/?]|$)/;

/** Refuses requests that did not use HTTPS, have no valid key or exceed the key's rate limit. */
export function addGate(app: FastifyInstance, service: AppDependencies): void {
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

const probePaths: ReadonlySet<string> = new Set(
  Object.values(routes).flatMap(({ path, access }) => (access === 'probe' ? [path] : [])),
);

/**
 * Returns a function that returns the owner of a request. Requests take turns by owner, and the time for a request is
 * charged to its owner. The owner is the organisation of the API key, if the key is cached. The key itself is checked
 * later. Other requests belong to the client's address. Health checks do not wait for others of the same address.
 */
export function requestOwner({ gatekeeper }: AppDependencies): (request: IncomingMessage) => Owner {
  return ({ url, headers, socket }) => {
    if (probePaths.has(url!)) return `probes from ${networkOf(socket)}`;
    const presented = presentedKey(headers);
    const organisation = presented === null ? null : gatekeeper.cachedOrganisation(presented);
    return organisation ?? networkOf(socket);
  };
}

/** Returns whether a path begins like the paths that need a key. Such a path needs a key even if it does not exist. */
export function isGuarded(url: string): boolean {
  return guarded.test(url);
}

function admit(
  service: AppDependencies,
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

/** If a request is older than this when its work begins, its API key is checked again. */
const KEY_TRUSTED_MS = 1000;

/** Checks the key again, because it may have been revoked while the body arrived or the request waited. */
export async function isStillAllowed(
  { gatekeeper }: AppDependencies,
  { headers, watched }: FastifyRequest,
): Promise<boolean> {
  if (performance.now() - watched!.startedAtMs < KEY_TRUSTED_MS) return true;
  return (await gatekeeper.identify(presentedKey(headers)!)) !== null;
}

/** Calls `work`, unless the client has disconnected or its key is no longer accepted. */
export async function ifStillAllowed(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  if (request.watched!.isClosed) return reply.hijack();
  return (await isStillAllowed(service, request)) ? work() : refuse(reply, unauthorized);
}

export function overRate(requestsPerSecond: number, retryAfterSeconds: number): Refusal {
  return {
    refusal: 'too_many_requests',
    message: `This key may make ${requestsPerSecond} requests a second; wait and send it again.`,
    headers: { 'Retry-After': String(retryAfterSeconds) },
  };
}

/** Returns null if the caller has a scope for the action, otherwise a refusal that names the missing scope. */
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
