// Handles POST /v1/data/{type} and POST /user-interactions: reads the request, passes it to an ingest thread and sends
// the response.

import { INTERACTIONS } from '@headgate/catalogue/record-types.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyKey } from '../ingest/idempotency.ts';
import type { IngestSummary } from '../observe/ended-request.ts';
import { epochMs } from '../observe/epoch-ms.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { type Body, bodyEncoding, readBytes } from './body/read-body.ts';
import { isSmall } from './body/small-body.ts';
import { tooManyWaiting } from './fixed-refusals.ts';
import { ifStillAllowed, lacksScope } from './gate.ts';
import { idempotencyKey, preferenceApplied, preferredHandling } from './header-values.ts';
import type { IngestRequest } from './ingest-pool.ts';
import { type IngestResponse, keyRunning } from './ingest-responses.ts';
import { uploadTypeOf } from './path-parameters.ts';
import { readFlag, readQuery } from './query.ts';
import { isRefusal, JSON_TYPE, refuse } from './refusals.ts';
import { noteBody, noteWork, noteWorkDone, whenClosed } from './request-observation.ts';
import { inTurn } from './work-slots.ts';

/** The requests with an idempotency key that run in this process. An entry contains organisation, path and key. */
const running = new Set<string>();

/** What the path and the query ask for. `type` is null for an interaction. */
type Wanted = Pick<IngestRequest, 'type' | 'dryRun'> & { readonly path: string };

export function postRecords(service: AppDependencies) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const type = uploadTypeOf(request);
    if (isRefusal(type)) return refuse(reply, type);
    const lack =
      type === INTERACTIONS
        ? lacksScope(request.caller!, 'interactions:write')
        : lacksScope(request.caller!, 'data:write', type);
    if (lack !== null) return refuse(reply, lack);
    const query = readQuery(request, ['dry_run']);
    if (isRefusal(query)) return refuse(reply, query);
    const dryRun = readFlag('dry_run', query.dry_run);
    if (isRefusal(dryRun)) return refuse(reply, dryRun);
    return takeBody(service, request, reply, { path: `/v1/data/${type}`, type, dryRun });
  };
}

export function postInteraction(service: AppDependencies) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const lack = lacksScope(request.caller!, 'interactions:write');
    if (lack !== null) return refuse(reply, lack);
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    return takeBody(service, request, reply, { path: '/user-interactions', type: null, dryRun: false });
  };
}

async function takeBody(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  wanted: Wanted,
): Promise<FastifyReply> {
  const key = idempotencyKey(request.headers);
  if (isRefusal(key)) return refuse(reply, key);
  const encoding = bodyEncoding(request.raw);
  if (isRefusal(encoding)) return refuse(reply, encoding);
  const { inFlight, maxBodyBytes, observer } = service;
  const { organisation } = request.caller!;
  const readAtMs = observer.traces === null ? 0 : epochMs();
  const bytes = await readBytes(request.raw, maxBodyBytes, inFlight, organisation);
  if (bytes === null) return reply.hijack();
  if (isRefusal(bytes)) return refuse(reply, bytes);
  const { byteLength } = bytes;
  noteBody(request, byteLength, readAtMs);
  // A dry run stores nothing, so its idempotency key is ignored.
  const idempotency = key === null || wanted.dryRun ? null : { path: wanted.path, key };
  const work = (): Promise<FastifyReply> =>
    takeIn(service, request, reply, wanted, idempotency, { bytes, encoding });
  // Small interactions need no slot, because they cost little.
  const needsSlot = wanted.type !== null || encoding !== null || !isSmall(bytes);
  try {
    return await once(request, reply, idempotency, () =>
      needsSlot
        ? inTurn(service, service.workSlots, tooManyWaiting, request, reply, work)
        : ifStillAllowed(service, request, reply, work),
    );
  } finally {
    inFlight.give(organisation, byteLength);
    inFlight.turns.responseMade(organisation, byteLength);
  }
}

/**
 * Refuses a request if another request with the same idempotency key is running. A request counts as running only once
 * its body is complete.
 */
async function once(
  request: FastifyRequest,
  reply: FastifyReply,
  idempotency: IdempotencyKey | null,
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  if (idempotency === null) return work();
  const runningAs = `${request.caller!.organisation} ${idempotency.path} ${idempotency.key}`;
  if (running.has(runningAs)) return refuse(reply, keyRunning);
  running.add(runningAs);
  try {
    return await work();
  } finally {
    running.delete(runningAs);
  }
}

async function takeIn(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  { type, dryRun }: Wanted,
  idempotency: IdempotencyKey | null,
  body: Body,
): Promise<FastifyReply> {
  const { id: requestId, caller, headers, watched } = request;
  const { organisation, keyId } = caller!;
  let summary: IngestSummary | null = null;
  noteWork(request);
  try {
    const handling = preferredHandling(headers);
    const receivedAtMs = Math.round(Date.now() - (performance.now() - watched!.startedAtMs));
    const work = { requestId, organisation, type, handling, dryRun, idempotency, keyId, receivedAtMs };
    const response = await service.ingest.respondTo(work, body);
    summary = response.summary;
    service.followers.wake(organisation);
    return send(service, request, reply.headers(preferenceApplied(handling)), response);
  } finally {
    noteWorkDone(service.observer, request, reply, summary);
  }
}

function send(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  response: IngestResponse,
): FastifyReply {
  const { caller, id } = request;
  if (response.failure !== null) {
    const fields = { request_id: id, org_id: caller?.orgId, key_id: caller?.keyId, cause: response.failure };
    service.log('error', fields, 'the store could not store a request');
  }
  const { status, headers, json } = response;
  const isLarge = json instanceof Uint8Array;
  if (isLarge) {
    const { organisation } = caller!;
    const { byteLength } = json;
    service.inFlight.hold(organisation, byteLength);
    whenClosed(request, () => {
      service.inFlight.give(organisation, byteLength);
      service.ingest.noteSent(response, { organisation, sentBytes: byteLength });
      // Frees the memory at once, without waiting for the garbage collector. If the response was cut off, the memory is
      // not freed here, because it may still be in use.
      if (reply.raw.writableFinished) json.buffer.transfer(0);
    });
  }
  return reply
    .code(status)
    .headers(headers)
    .type(JSON_TYPE)
    .send(isLarge ? Buffer.from(json.buffer) : json);
}
