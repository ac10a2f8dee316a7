// POST /v1/data/{type} and POST /user-interactions: reads the request, has it taken in, sends the answer.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Handling } from '../ingest/check-fields.ts';
import type { IdempotencyKey } from '../ingest/memory.ts';
import { epochMs } from '../observe/epoch-ms.ts';
import type { Facts } from '../observe/facts.ts';
import { type Answer, keyRunning } from './answers.ts';
import { lacksScope } from './gate.ts';
import { readFlag, readQuery } from './query.ts';
import { type Body, bodyEncoding, readBytes } from './read-body.ts';
import { recordTypeOf } from './record-type.ts';
import { isRefusal, JSON_TYPE, refuse } from './refusals.ts';
import { idempotencyKey, preferenceApplied, preferredHandling } from './request-headers.ts';
import type { Service } from './service.ts';
import { noteAnswer, noteBody } from './watching.ts';

/** An interaction is some hundred bytes; what is larger must not keep those from their thread. */
const INTERACTION_LIMIT_BYTES = 64 * 1024;

/** The requests with an idempotency key that are running in this process. */
const running = new Set<string>();

export function postRecords(service: Service) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const type = recordTypeOf(request);
    if (isRefusal(type)) return refuse(reply, type);
    const lack = lacksScope(request.caller!, 'data:write', type);
    if (lack !== null) return refuse(reply, lack);
    const query = readQuery(request, ['dry_run']);
    if (isRefusal(query)) return refuse(reply, query);
    const dryRun = readFlag('dry_run', query.dry_run);
    if (isRefusal(dryRun)) return refuse(reply, dryRun);
    // A dry run does nothing that could be done twice: it neither waits for a key nor takes one.
    const keyPath = dryRun ? null : `/v1/data/${type}`;
    return takeBody(service, request, reply, keyPath, (handling, idempotency, body) => {
      const { requestId, organisation } = identityOf(request);
      const upload = { requestId, organisation, type, handling, dryRun, idempotency };
      return service.ingest.answer({ kind: 'upload', request: upload }, body);
    });
  };
}

export function postInteraction(service: Service) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const lack = lacksScope(request.caller!, 'interactions:write');
    if (lack !== null) return refuse(reply, lack);
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    return takeBody(service, request, reply, '/user-interactions', (handling, idempotency, body) => {
      const { requestId, organisation } = identityOf(request);
      const interaction = { requestId, organisation, handling, idempotency };
      if (body.encoding !== null || body.bytes.byteLength > INTERACTION_LIMIT_BYTES) {
        return service.ingest.answer({ kind: 'interaction', request: interaction }, body);
      }
      return service.interactions.answer({ ...interaction, body: body.bytes });
    });
  };
}

function identityOf({ id, caller }: FastifyRequest): { requestId: string; organisation: number } {
  return { requestId: id, organisation: caller!.organisation };
}

async function takeBody(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  /** What an Idempotency-Key is remembered with; null where it has no meaning. */
  path: string | null,
  take: (handling: Handling, idempotency: IdempotencyKey | null, body: Body) => Promise<Answer>,
): Promise<FastifyReply> {
  const { headers } = request;
  const key = idempotencyKey(headers);
  if (isRefusal(key)) return refuse(reply, key);
  const idempotency = key === null || path === null ? null : { path, key };
  const encoding = bodyEncoding(request.raw);
  if (isRefusal(encoding)) return refuse(reply, encoding);
  const { organisation, keyId } = request.caller!;
  const runningAs = idempotency && `${organisation} ${idempotency.path} ${idempotency.key}`;
  if (runningAs !== null) {
    if (running.has(runningAs)) return refuse(reply, keyRunning);
    running.add(runningAs);
  }
  const { inFlight, maxBodyBytes, observer } = service;
  try {
    const readAtMs = observer.traces === null ? 0 : epochMs();
    const bytes = await readBytes(request.raw, maxBodyBytes, inFlight, keyId);
    if (bytes === null) return reply.hijack();
    if (isRefusal(bytes)) return refuse(reply, bytes);
    const { byteLength } = bytes;
    noteBody(request, byteLength, readAtMs);
    let facts: Facts | null = null;
    try {
      const handling = preferredHandling(headers);
      const answer = await take(handling, idempotency, { bytes, encoding });
      facts = answer.facts;
      return send(service, request, reply.headers(preferenceApplied(handling)), answer);
    } finally {
      inFlight.give(keyId, byteLength);
      noteAnswer(observer, request, reply, facts);
    }
  } finally {
    if (runningAs !== null) running.delete(runningAs);
  }
}

function send(service: Service, request: FastifyRequest, reply: FastifyReply, answer: Answer): FastifyReply {
  if (answer.failure !== null) {
    const { caller, id } = request;
    const facts = { request_id: id, org_id: caller?.orgId, key_id: caller?.keyId, cause: answer.failure };
    service.log('error', facts, 'the store could not keep what was sent');
  }
  return reply.code(answer.status).headers(answer.headers).type(JSON_TYPE).send(answer.json);
}
