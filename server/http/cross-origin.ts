// What browsers need before they let a page of another origin speak to Headgate (CORS). Without allowed origins nothing
// here has any effect.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AllowedOrigins } from '../settings.ts';

const NO_CONTENT_STATUS = 204;

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Content-Encoding, Idempotency-Key, Prefer, traceparent, tracestate',
  'Access-Control-Max-Age': '86400',
};

const exposedHeaders = {
  'Access-Control-Expose-Headers':
    'X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Idempotency-Replayed, Preference-Applied',
};

/**
 * Tells the browser whether the page may read the answer. True where the request was only the browser's question,
 * which comes without a key: it is answered then.
 */
export function passCrossOrigin(
  allowed: AllowedOrigins | null,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  if (allowed === null) return false;
  const { origin } = request.headers;
  const asksFirst = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
  if (allowed !== '*') reply.header('Vary', 'Origin');
  if (origin === undefined || !(allowed === '*' || allowed.includes(origin))) return false;
  reply.header('Access-Control-Allow-Origin', allowed === '*' ? '*' : origin);
  reply.headers(asksFirst ? preflightHeaders : exposedHeaders);
  if (asksFirst) reply.code(NO_CONTENT_STATUS).send();
  return asksFirst;
}
