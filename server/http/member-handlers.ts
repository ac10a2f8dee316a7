// Handles the requests for the members of segments: who they are, why, and who entered and left.

import { Readable } from 'node:stream';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Membership } from '../store/segments.ts';
import { analyticsHandler, refusalOf } from './analytics-requests.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { tooManyQueries } from './fixed-refusals.ts';
import { acceptedType } from './header-values.ts';
import { readCursor, readLimit, readWhole, wholeNumber, writeCursor } from './query.ts';
import { type Handler, pathId, sendPage } from './read-handlers.ts';
import { CSV_TYPE, isRefusal, JSON_TYPE, NDJSON_TYPE, type Refusal, refuse } from './refusals.ts';
import { leftSignal } from './request-observation.ts';
import { findSegment, noSegment, shownTime } from './segment-handlers.ts';
import { inTurn } from './work-slots.ts';

export const memberTypes = [JSON_TYPE, NDJSON_TYPE, CSV_TYPE] as const;
export const LARGEST_PAGE_MEMBER_CHANGES = 5000;
const DEFAULT_PAGE_MEMBER_CHANGES = 1000;
/** How many memberships a step of a stream reads. Several streams may have a step in the same turn of the event loop. */
const STREAMED_AT_ONCE = 500;

export function getMembers(service: AppDependencies): Handler {
  return analyticsHandler(service, 'analytics:read', ['limit', 'cursor'], async (request, reply, given) => {
    const { query, name } = given;
    const limit = readLimit(query.limit);
    if (isRefusal(limit)) return refuse(reply, limit);
    const cursor = query.cursor === undefined ? null : readCursor(query.cursor, [uuid, wholeNumber]);
    if (isRefusal(cursor)) return refuse(reply, cursor);
    const type = acceptedType(request.headers, memberTypes);
    if (isRefusal(type)) return refuse(reply, type);
    if (type === NDJSON_TYPE) return streamMembers(service, request, reply, name, ndjsonMembers);
    if (type === CSV_TYPE) return streamMembers(service, request, reply, name, csvMembers);
    const after = cursor && { customerId: cursor[0]!, enteredSeq: Number(cursor[1]) };
    return sendPage(service, request, reply, async () => {
      const segment = await findSegment(service, request, name);
      if (isRefusal(segment)) return segment;
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
  return analyticsHandler(service, 'analytics:read', [], async (request, reply, { analytics, name }) => {
    const customerId = pathId(request);
    const { organisation, orgId } = request.caller!;
    const { sqlTimeoutMs: timeoutMs } = service.sqlLimits;
    return inTurn(service, service.sqlSlots, tooManyQueries, request, reply, async () => {
      const segment = await findSegment(service, request, name);
      if (isRefusal(segment)) return refuse(reply, segment);
      if (customerId === null) return refuse(reply, noCustomer);
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
  return analyticsHandler(service, 'analytics:read', ['after', 'limit'], async (request, reply, given) => {
    const { query, name } = given;
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
    const afterSeq = query.after === undefined ? null : after;
    const { organisation } = request.caller!;
    return sendPage(service, request, reply, async () => {
      const segment = await findSegment(service, request, name);
      if (isRefusal(segment)) return segment;
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

/** Streams all members. The store is read in steps, as fast as the client reads. */
function streamMembers(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
  { contentType, header, line }: MemberFormat,
): Promise<FastifyReply> {
  const { store, sqlSlots } = service;
  const { organisation } = request.caller!;
  const lines = async function* (segment: number): AsyncIterable<string> {
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
  return inTurn(service, sqlSlots, tooManyQueries, request, reply, async () => {
    const found = await findSegment(service, request, name);
    if (isRefusal(found)) return refuse(reply, found);
    return reply.type(contentType).send(Readable.from(lines(found.segment)));
  });
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
