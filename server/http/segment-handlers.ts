// Handles the requests for segments: their conditions and evaluations. The analytics process evaluates them.

import { randomUUID } from 'node:crypto';
import { dateTime, dateTimeFromMs } from '@headgate/catalogue/kinds/date-time.ts';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnalyticsLink } from '../analytics/analytics-link.ts';
import type { ConditionProblem } from '../analytics/segments/condition-problem.ts';
import { requestEvaluation } from '../analytics/segments/request-evaluation.ts';
import {
  checkCondition,
  checkNote,
  checkSegment,
  whyNotDeleted,
} from '../analytics/segments/segment-definition.ts';
import { usersOf } from '../analytics/segments/segment-graph.ts';
import { Failure } from '../failure.ts';
import { nearName } from '../near-name.ts';
import type { Segment, SegmentSet } from '../store/segments.ts';
import { analyticsHandler, passOn, refusalOf } from './analytics-requests.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { badBody, readJsonBody } from './body/read-json-body.ts';
import { shuttingDown, tooManyLookUps, tooManyQueries } from './fixed-refusals.ts';
import { type Handler, sendPage } from './read-handlers.ts';
import { isRefusal, JSON_TYPE, type Refusal, refuse } from './refusals.ts';
import { inTurn } from './work-slots.ts';

/** How long a request waits for the end of another evaluation of its segment. */
const EVALUATION_PATIENCE_MS = 10_000;
/** How often a change is tried again if another one came first. */
const MOST_ATTEMPTS = 10;

export function getSegments(service: AppDependencies): Handler {
  return analyticsHandler(service, 'analytics:read', [], async (request, reply) => {
    const { organisation } = request.caller!;
    return sendPage(service, request, reply, async () => {
      const { segments } = await service.store.segments(organisation);
      return { segments: segments.map(shownSegment) };
    });
  });
}

export function getSegment(service: AppDependencies): Handler {
  return analyticsHandler(service, 'analytics:read', [], (request, reply, { name }) =>
    inTurn(service, service.lookUpSlots, tooManyLookUps, request, reply, () =>
      sendSegment(service, request, reply, name),
    ),
  );
}

export function postPreview(service: AppDependencies): Handler {
  return analyticsHandler(service, 'analytics:read', [], async (request, reply, { analytics }) => {
    const body = await readJsonBody(service, request, ['condition']);
    if (body === null) return reply.hijack();
    if (isRefusal(body)) return refuse(reply, body);
    const { condition } = body;
    const { organisation, orgId } = request.caller!;
    // The check needs a slot too, because it reads the conditions of all segments that the condition uses.
    return passOn(service, request, reply, JSON_TYPE, async (signal) => {
      const { segments } = await service.store.segments(organisation);
      const valid = await checkCondition(service.store, organisation, segments, condition);
      if (!('uses' in valid)) return notValid(valid);
      const order = { organisation, orgId, condition, timeoutMs: service.sqlLimits.sqlTimeoutMs };
      return analytics.preview(order, signal);
    });
  });
}

export function putSegment(service: AppDependencies): Handler {
  return analyticsHandler(service, 'analytics:write', [], async (request, reply, { analytics, name }) => {
    const body = await readJsonBody(service, request, ['condition', 'note']);
    if (body === null) return reply.hijack();
    if (isRefusal(body)) return refuse(reply, body);
    const note = checkNote(body.note);
    if (note instanceof Failure) return refuse(reply, badBody(`${note.reason}.`));
    const { organisation } = request.caller!;
    return inTurn(service, service.sqlSlots, tooManyQueries, request, reply, async () => {
      const refusal = await changeSegments(service, request, async ({ revision, segments }) => {
        const valid = await checkSegment(service.store, organisation, segments, name, body.condition);
        if (!('uses' in valid)) return notValid(valid);
        const definition = { name, note, conditionJson: JSON.stringify(body.condition), uses: valid.uses };
        return service.store.saveSegment(organisation, revision, definition, Date.now());
      });
      if (refusal !== null) return refuse(reply, refusal);
      return evaluateAndSend(service, analytics, request, reply, name);
    });
  });
}

export function deleteSegment(service: AppDependencies): Handler {
  return analyticsHandler(service, 'analytics:write', [], (request, reply, { name }) =>
    inTurn(service, service.lookUpSlots, tooManyLookUps, request, reply, async () => {
      const refusal = await changeSegments(service, request, async ({ revision, segments }) => {
        if (!segments.some((segment) => segment.name === name)) return noSegment(name, segments);
        const failure = whyNotDeleted(name, segments);
        if (failure !== null) return { refusal: 'conflict', message: `${capitalised(failure.reason)}.` };
        return service.store.deleteSegment(request.caller!.organisation, revision, name);
      });
      return refusal === null ? reply.code(204).send() : refuse(reply, refusal);
    }),
  );
}

export function postRefresh(service: AppDependencies): Handler {
  return analyticsHandler(service, 'analytics:write', [], (request, reply, { analytics, name }) =>
    inTurn(service, service.sqlSlots, tooManyQueries, request, reply, async () => {
      const segment = await findSegment(service, request, name);
      if (isRefusal(segment)) return refuse(reply, segment);
      return evaluateAndSend(service, analytics, request, reply, name);
    }),
  );
}

/**
 * Reads the segments and calls `change` with them. If another change came first, reads and tries again. Returns the
 * refusal, or null if the change was made.
 */
async function changeSegments(
  { store }: AppDependencies,
  request: FastifyRequest,
  change: (set: SegmentSet) => Promise<boolean | Refusal>,
): Promise<Refusal | null> {
  for (let attempts = 0; attempts < MOST_ATTEMPTS; attempts++) {
    const changed = await change(await store.segments(request.caller!.organisation));
    if (isRefusal(changed)) return changed;
    if (changed) return null;
  }
  return manyChanges;
}

const manyChanges: Refusal = {
  refusal: 'service_unavailable',
  message: 'The segments are being changed by too many requests at the moment; try again.',
  headers: { 'Retry-After': '1' },
};

/** Reads all segments of the organisation. The request must have a slot, because there may be many of them. */
export async function findSegment(
  { store }: AppDependencies,
  request: FastifyRequest,
  name: string,
): Promise<Segment | Refusal> {
  const { segments } = await store.segments(request.caller!.organisation);
  return segments.find((segment) => segment.name === name) ?? noSegment(name, segments);
}

/** Evaluates a segment and sends it. If the evaluation fails, the segment says why. The request must have a slot. */
async function evaluateAndSend(
  service: AppDependencies,
  analytics: AnalyticsLink,
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
): Promise<FastifyReply> {
  const { organisation, orgId } = request.caller!;
  const timeoutMs = service.sqlLimits.sqlTimeoutMs;
  const order = {
    organisation,
    orgId,
    segment: name,
    token: randomUUID(),
    patienceMs: EVALUATION_PATIENCE_MS,
    timeoutMs,
  };
  // If the client leaves, the evaluation goes on, because its result is stored.
  const outcome = await requestEvaluation(service.store, analytics, order);
  if ('kind' in outcome)
    return refuse(reply, analytics.hasEndedEvaluations ? shuttingDown : refusalOf(outcome));
  if (outcome.isRunning) return refuse(reply, beingEvaluated);
  return sendSegment(service, request, reply, name);
}

export const beingEvaluated: Refusal = {
  refusal: 'conflict',
  message: 'The segment is being evaluated at the moment.',
  headers: { 'Retry-After': '1' },
};

async function sendSegment(
  { store }: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
): Promise<FastifyReply> {
  const { organisation } = request.caller!;
  const { segments } = await store.segments(organisation);
  const segment = segments.find((one) => one.name === name);
  const conditionJson = (await store.segmentConditions(organisation, [name])).get(name);
  if (segment === undefined || conditionJson === undefined) return refuse(reply, noSegment(name, segments));
  return reply.send({
    ...shownSegment(segment),
    condition: JSON.parse(conditionJson),
    used_by: usersOf(name, segments),
  });
}

function shownSegment(segment: Segment): object {
  const { name, note, members, createdAtMs, savedAtMs, evaluation, failure, lastSeq } = segment;
  return {
    name,
    note,
    count: members,
    created_at: shownTime(createdAtMs),
    saved_at: shownTime(savedAtMs),
    evaluation: evaluation && {
      at: shownTime(evaluation.atMs),
      ms: evaluation.ms,
      entered: evaluation.entered,
      left: evaluation.left,
    },
    failure: failure && { at: shownTime(failure.atMs), message: failure.reason },
    latest: lastSeq,
  };
}

export function shownTime(ms: number): string {
  return dateTime.present(dateTimeFromMs(ms)) as string;
}

/** Returns the refusal of a condition, with the path of the node that is not valid. */
export function notValid(problem: ConditionProblem | Failure): Refusal {
  if (problem instanceof Failure) return badBody(`${capitalised(problem.reason)}.`);
  const { path, message } = problem;
  const where = path === '' ? 'condition' : `condition.${path}`;
  return { ...badBody(`${where}: ${message.replace(/([^?])$/, '$1.')}`), path };
}

export function noSegment(name: string, segments: readonly Segment[]): Refusal {
  const near = nearName(
    name,
    segments.map((segment) => segment.name),
  );
  const hint = near === null ? '' : ` Did you mean ${near}?`;
  return { refusal: 'not_found', message: `There is no segment ${quote(name)} in your organisation.${hint}` };
}

function capitalised(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}`;
}
