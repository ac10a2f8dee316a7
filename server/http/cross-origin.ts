// What browsers need before they let a page of another origin speak to Headgate (CORS). Without allowed origins nothing
// here has any effect.

import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AllowedOrigins } from '../settings.ts';
import { notByHttps } from './gate.ts';
import { refuse } from './refusals.ts';
import { cameByHttps } from './request-headers.ts';
import type { Service } from './service.ts';

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
export function passCrossOrigin(service: Service, request: FastifyRequest, reply: FastifyReply): boolean {
  const { allowedOrigins, behindProxy } = service;
  if (allowedOrigins === null) return false;
  const { headers, method } = request;
  reply.headers(crossOriginHeaders(allowedOrigins, headers));
  const asksFirst = method === 'OPTIONS' && 'access-control-request-method' in headers;
  if (!asksFirst || !isAllowed(allowedOrigins, headers.origin)) return false;
  if (behindProxy && !cameByHttps(headers)) refuse(reply, notByHttps);
  else reply.headers(preflightHeaders).code(NO_CONTENT_STATUS).send();
  return true;
}

/** What every answer to such a request carries. */
export function crossOriginHeaders(
  allowed: AllowedOrigins | null,
  { origin }: IncomingHttpHeaders,
): Readonly<Record<string, string>> {
  if (allowed === null) return {};
  return {
    ...(allowed === '*' ? {} : { Vary: 'Origin' }),
    ...(isAllowed(allowed, origin)
      ? { 'Access-Control-Allow-Origin': allowed === '*' ? '*' : origin, ...exposedHeaders }
      : {}),
  };
}

function isAllowed(allowed: AllowedOrigins, origin: string | undefined): origin is string {
  return origin !== undefined && (allowed === '*' || allowed.includes(origin));
}
