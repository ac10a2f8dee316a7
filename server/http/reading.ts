// GET: records and interactions as they are stored, one or page by page.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import { Flaw, type Kind } from '@headgate/catalogue/kinds/kind.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import {
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  type ShownRecord,
  storedInteraction,
} from '@headgate/catalogue/record-types.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { presentInteraction } from '../ingest/interaction.ts';
import { presenterOf } from '../ingest/present.ts';
import type { Row } from '../store/store.ts';
import { lacksScope } from './gate.ts';
import { readCursor, readFilter, readFlag, readLimit, readQuery, writeCursor } from './query.ts';
import { recordTypeOf } from './record-type.ts';
import { isRefusal, type Refusal, refuse } from './refusals.ts';
import type { Service } from './service.ts';

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

const presenters = Object.fromEntries(
  recordTypeNames.map((type) => [type, presenterOf<ShownRecord>(recordTypes[type].fields)]),
) as Record<RecordTypeName, (row: Row) => ShownRecord>;

export const filterFields = [
  'student_id',
  'user_id',
  'item_type',
  'item_id',
  'interaction_type',
  'source',
] as const;
const interactionColumns = Object.keys(storedInteraction);
const occurredAtColumn = interactionColumns.indexOf('occurred_at');
const interactionIdColumn = interactionColumns.indexOf('interaction_id');
const interactionCursor = [dateTime, uuid] as const;

export function getRecord(service: Service): Handler {
  return async (request, reply) => {
    const type = readableType(request);
    if (isRefusal(type)) return refuse(reply, type);
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const id = pathId(request);
    const row = id && (await service.store.record(request.caller!.organisation, type, id));
    if (!row) return refuse(reply, notFound(recordTypes[type].title.toLowerCase()));
    return reply.send(presenters[type](row));
  };
}

export function getRecords(service: Service): Handler {
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
    const rows = await service.store.records(request.caller!.organisation, type, {
      afterId: after[0]!,
      limit: limit + 1,
      includeDeleted,
    });
    const keyColumn = Object.keys(recordTypes[type].fields).indexOf(recordTypes[type].key);
    const { shown, next } = cutPage(rows, limit, (last) => [last[keyColumn] as string]);
    return reply.send({ type, records: shown.map(presenters[type]), next_cursor: next });
  };
}

export function getInteraction(service: Service): Handler {
  return async (request, reply) => {
    const lack = lacksScope(request.caller!, 'interactions:read');
    if (lack !== null) return refuse(reply, lack);
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const id = pathId(request);
    const row = id && (await service.store.interaction(request.caller!.organisation, id));
    return row ? reply.send(presentInteraction(row)) : refuse(reply, notFound('interaction'));
  };
}

export function getInteractions(service: Service): Handler {
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
    const rows = await service.store.interactions(request.caller!.organisation, {
      equal,
      from,
      to,
      before: cursor && { occurredAt: cursor[0]!, interactionId: cursor[1]! },
      limit: limit + 1,
    });
    const { shown, next } = cutPage(rows, limit, (last) => [
      last[occurredAtColumn] as string,
      last[interactionIdColumn] as string,
    ]);
    return reply.send({ interactions: shown.map(presentInteraction), next_cursor: next });
  };
}

function readableType(request: FastifyRequest): RecordTypeName | Refusal {
  const type = recordTypeOf(request);
  return isRefusal(type) ? type : (lacksScope(request.caller!, 'data:read', type) ?? type);
}

/** Null where the path holds no UUID: then there is nothing that it could name. */
function pathId(request: FastifyRequest): string | null {
  const id = uuid.check((request.params as { id: string }).id, true);
  return id instanceof Flaw ? null : (id as string);
}

function notFound(what: string): Refusal {
  return { refusal: 'not_found', message: `There is no ${what} with this id in your organisation.` };
}

/** One row more than the page was asked for tells whether there is a next page. */
function cutPage(
  rows: readonly Row[],
  limit: number,
  cursorOf: (last: Row) => readonly string[],
): { shown: readonly Row[]; next: string | null } {
  if (rows.length <= limit) return { shown: rows, next: null };
  const shown = rows.slice(0, limit);
  return { shown, next: writeCursor(cursorOf(shown[limit - 1]!)) };
}
