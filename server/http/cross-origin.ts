// Lets web pages of allowed origins call Headgate (CORS). The package @fastify/cors is not used, because it needed more
// lines than this file: its route for OPTIONS needed an exception in the gate, and its Vary header and preflight
// responses had to be undone.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppDependencies } from './app-dependencies.ts';
import { notByHttps } from './gate.ts';
import { cameByHttps } from './header-values.ts';
import { refuse } from './refusals.ts';

const NO_CONTENT_STATUS = 204;

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, DELETE',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Content-Encoding, Idempotency-Key, Prefer, traceparent, tracestate',
  'Access-Control-Max-Age': '86400',
};

const exposedHeaders =
  'X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Idempotency-Replayed, Preference-Applied, Headgate-As-Of';

/**
 * Adds the CORS headers. If the request is a preflight, sends the response and returns true, because a preflight has no
 * key and would not pass the gate.
 */
export function passCrossOrigin(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  const { allowedOrigins, behindProxy } = service;
  if (allowedOrigins === null) return false;
  const { headers, method } = request;
  const isForAll = allowedOrigins === '*';
  if (!isForAll) reply.header('Vary', 'Origin');
  if (headers.origin === undefined || !(isForAll || allowedOrigins.includes(headers.origin))) return false;
  reply.header('Access-Control-Allow-Origin', isForAll ? '*' : headers.origin);
  reply.header('Access-Control-Expose-Headers', exposedHeaders);
  if (method !== 'OPTIONS' || !('access-control-request-method' in headers)) return false;
  if (behindProxy && !cameByHttps(headers)) refuse(reply, notByHttps);
  else reply.headers(preflightHeaders).code(NO_CONTENT_STATUS).send();
  return true;
}
