// Handles the requests for segments, which are in the store: their conditions, members and changes. The analytics
// process evaluates them.

import { Readable } from 'node:stream';
import { dateTime, dateTimeFromMs } from '@headgate/catalogue/kinds/date-time.ts';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Action } from '../access/scopes.ts';
import type { AnalyticsLink } from '../analytics/analytics-link.ts';
import type { ConditionProblem } from '../analytics/segments/condition-problem.ts';
import {
  checkCondition,
  checkNote,
  checkSegment,
  whyNotDeleted,
} from '../analytics/segments/segment-definition.ts';
import { usersOf } from '../analytics/segments/segment-graph.ts';
import { Failure } from '../failure.ts';
import { nearName } from '../near-name.ts';
import type { Membership, Segment, SegmentSet } from '../store/segments.ts';
import { passOn, refusalOf } from './analytics-handlers.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { badBody, readJsonBody } from './body/read-json-body.ts';
import { analyticsOff, tooManyQueries } from './fixed-refusals.ts';
import { lacksScope } from './gate.ts';
import { acceptsCsv, acceptsNdjson } from './header-values.ts';
import { readCursor, readLimit, readQuery, readWhole, wholeNumber, writeCursor } from './query.ts';
import { type Handler, pathId, sendPage } from './read-handlers.ts';
import { CSV_TYPE, isRefusal, JSON_TYPE, NDJSON_TYPE, type Refusal, refuse } from './refusals.ts';
import { leftSignal } from './request-observation.ts';
import { inTurn } from './work-slots.ts';

export const LARGEST_PAGE_MEMBER_CHANGES = 5000;
const DEFAULT_PAGE_MEMBER_CHANGES = 1000;
/** How many memberships a step of a stream reads. */
const STREAMED_AT_ONCE = 2000;
/** How long a request waits for the end of another evaluation of its segment. */
const EVALUATION_PATIENCE_MS = 10_000;
/** How often a change is tried again if another one came first. */
const MOST_ATTEMPTS = 10;

/** What every request for segments needs. */
interface Access {
  readonly analytics: AnalyticsLink;
  /** The name in the path, if it has one. */
  readonly name: string;
}

/** Returns a handler that is called if the key has the scope and analytics is on. */
function handler(
  service: AppDependencies,
  scope: Extract<Action, `analytics:${string}`>,
  handle: (request: FastifyRequest, reply: FastifyReply, access: Access) => Promise<FastifyReply>,
): Handler {
  return async (request, reply) => {
    const lack = lacksScope(request.caller!, scope);
    if (lack !== null) return refuse(reply, lack);
    if (service.analytics === null) return refuse(reply, analyticsOff);
    const { name = '' } = request.params as { readonly name?: string };
    return handle(request, reply, { analytics: service.analytics, name });
  };
}

export function getSegments(service: AppDependencies): Handler {
  return handler(service, 'analytics:read', async (request, reply) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const { organisation } = request.caller!;
    return sendPage(service, request, reply, async () => {
      const { segments } = await service.store.segments(organisation);
      return { segments: segments.map(shownSegment) };
    });
  });
}

export function getSegment(service: AppDependencies): Handler {
  return handler(service, 'analytics:read', async (request, reply, { name }) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    return sendSegment(service, request, reply, name);
  });
}

export function postPreview(service: AppDependencies): Handler {
  return handler(service, 'analytics:read', async (request, reply, { analytics }) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const body = await readJsonBody(service, request, ['condition']);
    if (body === null) return reply.hijack();
    if (isRefusal(body)) return refuse(reply, body);
    const { condition } = body;
    const { organisation, orgId } = request.caller!;
    const { segments } = await service.store.segments(organisation);
    const valid = await checkCondition(service.store, organisation, segments, condition);
    if (!('uses' in valid)) return refuse(reply, notValid(valid));
    const order = { organisation, orgId, condition, timeoutMs: service.sqlLimits.sqlTimeoutMs };
    return passOn(service.sqlSlots, request, reply, JSON_TYPE, (signal) => analytics.preview(order, signal));
  });
}

export function putSegment(service: AppDependencies): Handler {
  return handler(service, 'analytics:write', async (request, reply, { analytics, name }) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const body = await readJsonBody(service, request, ['condition', 'note']);
    if (body === null) return reply.hijack();
    if (isRefusal(body)) return refuse(reply, body);
    const note = checkNote(body.note);
    if (note instanceof Failure) return refuse(reply, badBody(`${note.reason}.`));
    const { organisation } = request.caller!;
    const refusal = await changeSegments(service, request, async ({ revision, segments }) => {
      const valid = await checkSegment(service.store, organisation, segments, name, body.condition);
      if (!('uses' in valid)) return notValid(valid);
      const definition = { name, note, conditionJson: JSON.stringify(body.condition), uses: valid.uses };
      return service.store.saveSegment(organisation, revision, definition, Date.now());
    });
    if (refusal !== null) return refuse(reply, refusal);
    return evaluateAndSend(service, analytics, request, reply, name);
  });
}

export function deleteSegment(service: AppDependencies): Handler {
  return handler(service, 'analytics:write', async (request, reply, { name }) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const refusal = await changeSegments(service, request, async ({ revision, segments }) => {
      if (!segments.some((segment) => segment.name === name)) return noSegment(name, segments);
      const failure = whyNotDeleted(name, segments);
      if (failure !== null) return { refusal: 'conflict', message: `${capitalised(failure.reason)}.` };
      return service.store.deleteSegment(request.caller!.organisation, revision, name);
    });
    return refusal === null ? reply.code(204).send() : refuse(reply, refusal);
  });
}

export function postRefresh(service: AppDependencies): Handler {
  return handler(service, 'analytics:write', async (request, reply, { analytics, name }) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const segment = await findSegment(service, request, name);
    if (isRefusal(segment)) return refuse(reply, segment);
    return evaluateAndSend(service, analytics, request, reply, name);
  });
}

export function getMembers(service: AppDependencies): Handler {
  return handler(service, 'analytics:read', async (request, reply, { name }) => {
    const query = readQuery(request, ['limit', 'cursor']);
    if (isRefusal(query)) return refuse(reply, query);
    const limit = readLimit(query.limit);
    if (isRefusal(limit)) return refuse(reply, limit);
    const cursor = query.cursor === undefined ? null : readCursor(query.cursor, [uuid, wholeNumber]);
    if (isRefusal(cursor)) return refuse(reply, cursor);
    const segment = await findSegment(service, request, name);
    if (isRefusal(segment)) return refuse(reply, segment);
    if (acceptsNdjson(request.headers)) return streamMembers(service, request, reply, segment, ndjsonMembers);
    if (acceptsCsv(request.headers)) return streamMembers(service, request, reply, segment, csvMembers);
    const after = cursor && { customerId: cursor[0]!, enteredSeq: Number(cursor[1]) };
    return sendPage(service, request, reply, async () => {
      const { organisation } = request.caller!;
      const page = await service.store.memberships(organisation, segment.segment, after, limit);
      const last = page.length < limit ? undefined : page.at(-1);
      return {
        members: currentOf(page).map(shownMember),
        next_cursor: last === undefined ? null : writeCursor([last.customerId, String(last.enteredSeq)]),
      };
    });
  });
}

export function explainMember(service: AppDependencies): Handler {
  return handler(service, 'analytics:read', async (request, reply, { analytics, name }) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const segment = await findSegment(service, request, name);
    if (isRefusal(segment)) return refuse(reply, segment);
    const customerId = pathId(request);
    if (customerId === null) return refuse(reply, noCustomer);
    const { organisation, orgId } = request.caller!;
    const { sqlTimeoutMs: timeoutMs } = service.sqlLimits;
    return inTurn(service.sqlSlots, tooManyQueries, request, reply, async () => {
      const order = { organisation, orgId, segment: name, customerId, timeoutMs };
      const answer = await analytics.explain(order, leftSignal(request));
      if ('kind' in answer) return refuse(reply, refusalOf(answer));
      if (answer.explanation === null) return refuse(reply, noCustomer);
      const { member, nodes } = answer.explanation;
      const sinceMs = await service.store.memberSince(organisation, segment.segment, customerId);
      return reply.send({
        member,
        since: sinceMs === null ? null : shownTime(sinceMs),
        nodes,
        as_of: answer.as_of,
      });
    });
  });
}

export function getMemberChanges(service: AppDependencies): Handler {
  return handler(service, 'analytics:read', async (request, reply, { name }) => {
    const query = readQuery(request, ['after', 'limit']);
    if (isRefusal(query)) return refuse(reply, query);
    const after = readWhole('after', query.after, 0, Number.MAX_SAFE_INTEGER, 0);
    if (isRefusal(after)) return refuse(reply, after);
    const limit = readWhole(
      'limit',
      query.limit,
      1,
      LARGEST_PAGE_MEMBER_CHANGES,
      DEFAULT_PAGE_MEMBER_CHANGES,
    );
    if (isRefusal(limit)) return refuse(reply, limit);
    const segment = await findSegment(service, request, name);
    if (isRefusal(segment)) return refuse(reply, segment);
    const afterSeq = query.after === undefined ? null : after;
    const { organisation } = request.caller!;
    return sendPage(service, request, reply, async () => {
      const read = await service.store.memberChanges(organisation, segment.segment, afterSeq, limit);
      if (read.kind === 'deleted') return noSegment(name, []);
      if (read.kind === 'gone') return changesGone(read.latest);
      return {
        changes: read.changes.map(({ seq, customerId, hasEntered, atMs }) => ({
          seq,
          customer_id: customerId,
          change: hasEntered ? 'entered' : 'left',
          at: shownTime(atMs),
        })),
        next: read.changes.at(-1)?.seq ?? afterSeq ?? segment.keptAfterSeq,
        latest: read.latest,
      };
    });
  });
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

async function findSegment(
  { store }: AppDependencies,
  request: FastifyRequest,
  name: string,
): Promise<Segment | Refusal> {
  const { segments } = await store.segments(request.caller!.organisation);
  return segments.find((segment) => segment.name === name) ?? noSegment(name, segments);
}

/** Evaluates a segment and sends it. If the evaluation fails, the segment says why. */
async function evaluateAndSend(
  service: AppDependencies,
  analytics: AnalyticsLink,
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
): Promise<FastifyReply> {
  const { organisation, orgId } = request.caller!;
  return inTurn(service.sqlSlots, tooManyQueries, request, reply, async () => {
    const timeoutMs = service.sqlLimits.sqlTimeoutMs;
    const order = { organisation, orgId, segments: [name], patienceMs: EVALUATION_PATIENCE_MS, timeoutMs };
    // If the client leaves, the evaluation goes on, because its result is stored.
    const outcome = await analytics.evaluate(order);
    if ('kind' in outcome) return refuse(reply, refusalOf(outcome));
    if (outcome.running.includes(name)) return refuse(reply, beingEvaluated);
    return sendSegment(service, request, reply, name);
  });
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

/** Streams all members. The store is read in steps, as fast as the client reads. */
function streamMembers(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  { segment }: Segment,
  { contentType, header, line }: MemberFormat,
): Promise<FastifyReply> {
  const { store, sqlSlots } = service;
  const { organisation } = request.caller!;
  const lines = async function* (): AsyncIterable<string> {
    if (header !== '') yield header;
    for (let last: Membership | null = null; ; ) {
      const page: readonly Membership[] = await store.memberships(
        organisation,
        segment,
        last,
        STREAMED_AT_ONCE,
      );
      const text = currentOf(page).map(line).join('');
      if (text !== '') yield text;
      if (page.length < STREAMED_AT_ONCE) return;
      last = page.at(-1)!;
    }
  };
  return inTurn(sqlSlots, tooManyQueries, request, reply, async () =>
    reply.type(contentType).send(Readable.from(lines())),
  );
}

interface MemberFormat {
  readonly contentType: string;
  readonly header: string;
  readonly line: (member: Membership) => string;
}

const ndjsonMembers: MemberFormat = {
  contentType: NDJSON_TYPE,
  header: '',
  line: (member) => `${JSON.stringify(shownMember(member))}\n`,
};

const csvMembers: MemberFormat = {
  contentType: CSV_TYPE,
  header: 'customer_id,since\n',
  line: ({ customerId, sinceMs }) => `${customerId},${shownTime(sinceMs)}\n`,
};

function currentOf(memberships: readonly Membership[]): readonly Membership[] {
  return memberships.filter(({ leftSeq }) => leftSeq === null);
}

function shownMember({ customerId, sinceMs }: Membership): object {
  return { customer_id: customerId, since: shownTime(sinceMs) };
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

function shownTime(ms: number): string {
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

export const noCustomer: Refusal = {
  refusal: 'not_found',
  message: 'There is no customer with this id in your organisation, or the customer is deleted.',
};

export function changesGone(latest: number): Refusal {
  return {
    refusal: 'gone',
    latest,
    message:
      `The changes after this number are not available: the server no longer keeps all of them, or the number is after ` +
      `the last one, ${latest}. To start over, read all members, then follow from after=${latest}.`,
  };
}

function capitalised(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}`;
}
