// Handles the GET requests for stored records and interactions, both for a single one and for a page of a list.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import { Flaw, type Kind } from '@headgate/catalogue/kinds/kind.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import { presenters, presentInteraction } from '@headgate/catalogue/presentation.ts';
import { type RecordTypeName, recordTypes, storedInteraction } from '@headgate/catalogue/record-types.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { StoreBusy } from '../store/store.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { listBusy, tooManyLists, tooManyLookUps } from './fixed-refusals.ts';
import { lacksScope } from './gate.ts';
import { recordTypeOf } from './path-parameters.ts';
import { readCursor, readFilter, readFlag, readLimit, readQuery, writeCursor } from './query.ts';
import { isRefusal, JSON_TYPE, type Refusal, refuse } from './refusals.ts';
import { whenClosed } from './request-observation.ts';
import { inTurn } from './work-slots.ts';

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

export const filterFields = [
  'student_id',
  'user_id',
  'item_type',
  'item_id',
  'interaction_type',
  'source',
] as const;
const interactionCursor = [dateTime, uuid] as const;

export function getRecord(service: AppDependencies): Handler {
  return async (request, reply) => {
    const type = readableType(request);
    if (isRefusal(type)) return refuse(reply, type);
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const id = pathId(request);
    return inTurn(service, service.lookUpSlots, tooManyLookUps, request, reply, async () => {
      const row = id && (await service.store.record(request.caller!.organisation, type, id));
      if (!row) return refuse(reply, notFound(recordTypes[type].title.toLowerCase()));
      return reply.send(presenters[type](row));
    });
  };
}

export function getRecords(service: AppDependencies): Handler {
  return async (request, reply) => {
    const type = readableType(request);
    if (isRefusal(type)) return refuse(reply, type);
    const query = readQuery(request, ['limit', 'cursor', 'include_deleted']);
    if (isRefusal(query)) return refuse(reply, query);
    const limit = readLimit(query.limit);
    if (isRefusal(limit)) return refuse(reply, limit);
    const includeDeleted = readFlag('include_deleted', query.include_deleted);
    if (isRefusal(includeDeleted)) return refuse(reply, includeDeleted);
    const after = query.cursor === undefined ? [null] : readCursor(query.cursor, [uuid]);
    if (isRefusal(after)) return refuse(reply, after);
    const { organisation } = request.caller!;
    return sendPage(service, request, reply, async () => {
      const page = { afterId: after[0]!, limit, includeDeleted };
      const { rows, next } = await service.store.records(organisation, type, page);
      const records = rows.map(presenters[type]);
      return { type, records, next_cursor: next === null ? null : writeCursor([next]) };
    });
  };
}

export function getInteraction(service: AppDependencies): Handler {
  return async (request, reply) => {
    const lack = lacksScope(request.caller!, 'interactions:read');
    if (lack !== null) return refuse(reply, lack);
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const id = pathId(request);
    return inTurn(service, service.lookUpSlots, tooManyLookUps, request, reply, async () => {
      const row = id && (await service.store.interaction(request.caller!.organisation, id));
      return row ? reply.send(presentInteraction(row)) : refuse(reply, notFound('interaction'));
    });
  };
}

export function getInteractions(service: AppDependencies): Handler {
  return async (request, reply) => {
    const lack = lacksScope(request.caller!, 'interactions:read');
    if (lack !== null) return refuse(reply, lack);
    const query = readQuery(request, ['limit', 'cursor', 'from', 'to', ...filterFields]);
    if (isRefusal(query)) return refuse(reply, query);
    const limit = readLimit(query.limit);
    if (isRefusal(limit)) return refuse(reply, limit);
    const cursor = query.cursor === undefined ? null : readCursor(query.cursor, interactionCursor);
    if (isRefusal(cursor)) return refuse(reply, cursor);
    const equal: Record<string, string> = {};
    for (const name of filterFields) {
      const value = query[name];
      if (value === undefined) continue;
      const kind: Kind = storedInteraction[name].kind;
      const kept = readFilter(name, kind, value);
      if (isRefusal(kept)) return refuse(reply, kept);
      equal[name] = kept;
    }
    const from = query.from === undefined ? null : readFilter('from', dateTime, query.from);
    if (isRefusal(from)) return refuse(reply, from);
    const to = query.to === undefined ? null : readFilter('to', dateTime, query.to);
    if (isRefusal(to)) return refuse(reply, to);
    const { organisation } = request.caller!;
    const before = cursor && { occurredAt: cursor[0]!, interactionId: cursor[1]! };
    return sendPage(service, request, reply, async () => {
      const page = { equal, from, to, before, limit };
      const { rows, next } = await service.store.interactions(organisation, page);
      const nextCursor = next === null ? null : writeCursor([next.occurredAt, next.interactionId]);
      return { interactions: rows.map(presentInteraction), next_cursor: nextCursor };
    });
  };
}

export function sendPage(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  readPage: () => Promise<object | Refusal>,
): Promise<FastifyReply> {
  const { listSlots, inFlight, observer } = service;
  const { organisation } = request.caller!;
  return inTurn(service, listSlots, tooManyLists, request, reply, async () => {
    try {
      const page = await readPage();
      if (isRefusal(page)) return refuse(reply, page);
      const json = JSON.stringify(page);
      const bytes = Buffer.byteLength(json);
      inFlight.hold(organisation, bytes);
      whenClosed(request, () => inFlight.give(organisation, bytes));
      return reply.type(JSON_TYPE).send(json);
    } catch (error) {
      if (!(error instanceof StoreBusy)) throw error;
      observer.metrics?.storeFailed('read');
      return refuse(reply, listBusy);
    }
  });
}

function readableType(request: FastifyRequest): RecordTypeName | Refusal {
  const type = recordTypeOf(request);
  return isRefusal(type) ? type : (lacksScope(request.caller!, 'data:read', type) ?? type);
}

/** Returns the id in the path, or null if it is not a UUID. In that case no such record can exist. */
export function pathId(request: FastifyRequest): string | null {
  const id = uuid.check((request.params as { id: string }).id, true);
  return id instanceof Flaw ? null : (id as string);
}

function notFound(what: string): Refusal {
  return { refusal: 'not_found', message: `There is no ${what} with this id in your organisation.` };
}
