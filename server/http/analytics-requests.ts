// What all requests for analytics have in common: who may make them, and how the result of the analytics process is sent.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Action } from '../access/scopes.ts';
import type { AnalyticsLink, OrderResult } from '../analytics/analytics-link.ts';
import { AS_OF_HEADER, type OrderRefusal } from '../analytics/analytics-orders.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { analyticsOff, tooManyQueries } from './fixed-refusals.ts';
import { lacksScope } from './gate.ts';
import { type Query, readQuery } from './query.ts';
import type { Handler } from './read-handlers.ts';
import { isRefusal, type Refusal, refuse } from './refusals.ts';
import { leftSignal } from './request-observation.ts';
import { inTurn } from './work-slots.ts';

export interface AnalyticsRequest<Parameter extends string> {
  readonly analytics: AnalyticsLink;
  readonly query: Query<Parameter>;
  /** The name of the segment in the path, or an empty text if the path has none. */
  readonly name: string;
}

/**
 * Returns a handler that calls `handle` if the key has the scope, analytics is on, and the query has only the given
 * parameters.
 */
export function analyticsHandler<const Parameter extends string>(
  service: AppDependencies,
  scope: Extract<Action, `analytics:${string}`>,
  parameters: readonly Parameter[],
  handle: (
    request: FastifyRequest,
    reply: FastifyReply,
    given: AnalyticsRequest<Parameter>,
  ) => Promise<FastifyReply>,
): Handler {
  const { analytics } = service;
  return async (request, reply) => {
    const lack = lacksScope(request.caller!, scope);
    if (lack !== null) return refuse(reply, lack);
    if (analytics === null) return refuse(reply, analyticsOff);
    const query = readQuery(request, parameters);
    if (isRefusal(query)) return refuse(reply, query);
    const { name = '' } = request.params as { readonly name?: string };
    return handle(request, reply, { analytics, query, name });
  };
}

/** Waits for a slot, and sends what the analytics process answers. Ends its work if the client leaves. */
export function passOn(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  contentType: string,
  ask: (signal: AbortSignal) => Promise<OrderResult | Refusal>,
): Promise<FastifyReply> {
  return inTurn(service, service.sqlSlots, tooManyQueries, request, reply, async () => {
    const left = leftSignal(request);
    const answer = await ask(left);
    if (left.aborted) {
      request.raw.socket.destroy();
      return reply.hijack();
    }
    if (!('kind' in answer)) return refuse(reply, answer);
    if (answer.kind === 'refused') return refuse(reply, refusalOf(answer.refusal));
    const asOf = answer.body.headers[AS_OF_HEADER.toLowerCase()];
    if (asOf !== undefined) reply.header(AS_OF_HEADER, asOf);
    return reply.type(contentType).send(answer.body);
  });
}

export function refusalOf({ kind, message, position, retryAfterS = 1 }: OrderRefusal): Refusal {
  if (kind === 'unavailable') {
    return { refusal: 'service_unavailable', message, headers: { 'Retry-After': String(retryAfterS) } };
  }
  return { refusal: 'bad_request', message, ...(position === null ? {} : { position }) };
}
