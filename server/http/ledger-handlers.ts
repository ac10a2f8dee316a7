// Handles the GET requests that read the ledger: the history of uploads, the feed of changes, and the usage.

import { setTimeout as sleep } from 'node:timers/promises';
import { dateTime, dateTimeFromMs } from '@headgate/catalogue/kinds/date-time.ts';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  INTERACTIONS,
  isUploadTypeName,
  type UploadTypeName,
  uploadTypeNames,
} from '@headgate/catalogue/record-types.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { permits } from '../access/scopes.ts';
import { Failure } from '../failure.ts';
import type { Cause } from '../ingest/rejections.ts';
import { summedUsage, usageGroups, usagePeriod } from '../ledger/usage.ts';
import type { ApiKey } from '../store/keys.ts';
import {
  type ChangePosition,
  type ChangesPage,
  type ChangesRead,
  entryAt,
  type LedgerEntry,
  uploadStatuses,
  uploadStatusOf,
} from '../store/ledger.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { StoreBusy } from '../store/store.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { listBusy, tooManyFollowers, tooManyLists, tooManyLookUps } from './fixed-refusals.ts';
import { isStillAllowed, unauthorized } from './gate.ts';
import { acceptedType } from './header-values.ts';
import { unknownType } from './path-parameters.ts';
import {
  badQuery,
  readChoice,
  readCursor,
  readFilter,
  readLimit,
  readQuery,
  readWhole,
  wholeNumber,
  writeCursor,
} from './query.ts';
import { type Handler, pathId, sendPage } from './read-handlers.ts';
import { isRefusal, JSON_TYPE, NDJSON_TYPE, type Refusal, refuse } from './refusals.ts';
import { whenClosed, whenLeft } from './request-observation.ts';
import { inTurn } from './work-slots.ts';

export const DEFAULT_PAGE_CHANGES = 1000;
export const LARGEST_PAGE_CHANGES = 10_000;
export const LONGEST_WAIT_S = 30;
const PAUSE_MS = 50;

const keyIdPattern = /^[0-9A-Za-z-]{1,64}$/;

type Actions = 'read' | 'read or write';

function mayRead({ scopes }: Pick<ApiKey, 'scopes'>, type: UploadTypeName): boolean {
  return type === INTERACTIONS ? permits(scopes, 'interactions:read') : permits(scopes, 'data:read', type);
}

function mayWrite({ scopes }: Pick<ApiKey, 'scopes'>, type: UploadTypeName): boolean {
  return type === INTERACTIONS ? permits(scopes, 'interactions:write') : permits(scopes, 'data:write', type);
}

/** Returns the types that the request asks for, or a refusal if the key has no scope for them. */
export function allowedTypes(
  caller: Pick<ApiKey, 'scopes'>,
  actions: Actions,
  wanted: string | undefined,
): readonly UploadTypeName[] | Refusal {
  const types = uploadTypeNames.filter(
    (type) => mayRead(caller, type) || (actions === 'read or write' && mayWrite(caller, type)),
  );
  if (wanted === undefined) {
    return types.length > 0
      ? types
      : { refusal: 'forbidden', message: `This key lacks a scope to ${actions} anything.` };
  }
  if (!isUploadTypeName(wanted)) {
    return { refusal: 'bad_request', message: unknownType(wanted, uploadTypeNames).message };
  }
  if (types.includes(wanted)) return [wanted];
  return { refusal: 'forbidden', message: `This key lacks a scope to ${actions} ${wanted}.` };
}

/**
 * A key sees the uploads of the types that it may read. Of those that it may only write, it sees its own: the key of a
 * web page must not show everybody what the organisation uploads.
 */
function maySee(caller: ApiKey, { type, keyId }: Pick<LedgerEntry, 'type' | 'keyId'>): boolean {
  return mayRead(caller, type) || (mayWrite(caller, type) && keyId === caller.keyId);
}

export function getUploads(service: AppDependencies): Handler {
  return async (request, reply) => {
    const query = readQuery(request, ['type', 'status', 'key_id', 'from', 'to', 'limit', 'cursor']);
    if (isRefusal(query)) return refuse(reply, query);
    const types = allowedTypes(request.caller!, 'read or write', query.type);
    if (isRefusal(types)) return refuse(reply, types);
    const status = readChoice('status', uploadStatuses, query.status);
    if (isRefusal(status)) return refuse(reply, status);
    const fromMs = readMoment('from', query.from);
    if (isRefusal(fromMs)) return refuse(reply, fromMs);
    const toMs = readMoment('to', query.to);
    if (isRefusal(toMs)) return refuse(reply, toMs);
    if (query.key_id !== undefined && !keyIdPattern.test(query.key_id)) {
      return refuse(reply, badQuery(`key_id must be the id of a key, not ${quote(query.key_id)}.`));
    }
    const limit = readLimit(query.limit);
    if (isRefusal(limit)) return refuse(reply, limit);
    const before = query.cursor === undefined ? null : readSeqCursor(query.cursor);
    if (isRefusal(before)) return refuse(reply, before);
    const caller = request.caller!;
    const { organisation } = caller;
    const readable = types.filter((type) => mayRead(caller, type));
    const own = { keyId: caller.keyId, types: types.filter((type) => !mayRead(caller, type)) };
    return sendPage(service, request, reply, async () => {
      const page = { types: readable, own, status, keyId: query.key_id ?? null, fromMs, toMs, before, limit };
      const { entries, next } = await service.store.entries(organisation, page);
      const names = await keyNames(service, organisation);
      return {
        uploads: entries.map((entry) => shownUpload(entry, names)),
        next_cursor: next === null ? null : writeCursor([String(next)]),
      };
    });
  };
}

export function getUpload(service: AppDependencies): Handler {
  return async (request, reply) => {
    const query = readQuery(request, []);
    if (isRefusal(query)) return refuse(reply, query);
    const types = allowedTypes(request.caller!, 'read or write', undefined);
    if (isRefusal(types)) return refuse(reply, types);
    const { organisation } = request.caller!;
    return inTurn(service, service.lookUpSlots, tooManyLookUps, request, reply, async () => {
      const requestId = pathId(request) ?? (await requestIdOf(service, request));
      const entry = requestId === null ? null : await service.store.entry(organisation, requestId);
      if (entry === null || !maySee(request.caller!, entry)) return refuse(reply, noSuchUpload);
      const causes = JSON.parse(entry.causesJson ?? '[]') as readonly Cause[];
      return reply.send({ ...shownUpload(entry, await keyNames(service, organisation)), causes });
    });
  };
}

/** Returns the request id of the entry whose number is in the path, or null if there is none. */
async function requestIdOf({ store }: AppDependencies, request: FastifyRequest): Promise<string | null> {
  const { id } = request.params as { readonly id: string };
  if (!/^[1-9]\d{0,14}$/.test(id)) return null;
  return (await entryAt(store, request.caller!.organisation, Number(id)))?.requestId ?? null;
}

export const noSuchUpload: Refusal = {
  refusal: 'not_found',
  message: 'There is no upload with this request id or number that your key may see.',
};

async function keyNames(
  { store }: AppDependencies,
  organisation: OrganisationNumber,
): Promise<ReadonlyMap<string, string | null>> {
  return new Map((await store.keysOf(organisation)).map(({ keyId, name }) => [keyId, name]));
}

export function shownUpload(entry: LedgerEntry, names: ReadonlyMap<string, string | null>): object {
  const { seq, requestId, type, keyId, receivedAtMs, bytes, ms } = entry;
  const { received, created, updated, unchanged, rejected } = entry;
  return {
    seq,
    request_id: requestId,
    type,
    key_id: keyId,
    key_name: names.get(keyId) ?? null,
    received_at: dateTime.present(dateTimeFromMs(receivedAtMs)),
    status: uploadStatusOf(entry),
    counts: { received, created, updated, unchanged, rejected },
    bytes,
    ms,
  };
}

export const changesTypes = [JSON_TYPE, NDJSON_TYPE] as const;
type ChangesType = (typeof changesTypes)[number];

export function getChanges(service: AppDependencies): Handler {
  return async (request, reply) => {
    const query = readQuery(request, ['after', 'type', 'limit', 'wait']);
    if (isRefusal(query)) return refuse(reply, query);
    const types = allowedTypes(request.caller!, 'read', query.type);
    if (isRefusal(types)) return refuse(reply, types);
    const after = readPosition(query.after);
    if (isRefusal(after)) return refuse(reply, after);
    const limit = readWhole('limit', query.limit, 1, LARGEST_PAGE_CHANGES, DEFAULT_PAGE_CHANGES);
    if (isRefusal(limit)) return refuse(reply, limit);
    const waitS = readWhole('wait', query.wait, 0, LONGEST_WAIT_S, 0);
    if (isRefusal(waitS)) return refuse(reply, waitS);
    const contentType = acceptedType(request.headers, changesTypes);
    if (isRefusal(contentType)) return refuse(reply, contentType);
    try {
      return await follow(service, request, reply, { after, types, limit }, waitS * 1000, contentType);
    } catch (error) {
      if (!(error instanceof StoreBusy)) throw error;
      service.observer.metrics?.storeFailed('read');
      return refuse(reply, listBusy);
    }
  };
}

/**
 * Sends the next changes. If there are none, waits for some. A waiting request holds no slot, so that it does not keep
 * others of its organisation from reading.
 */
async function follow(
  service: AppDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  page: ChangesPage,
  waitMs: number,
  contentType: ChangesType,
): Promise<FastifyReply> {
  const { store, listSlots, followers, inFlight } = service;
  const { organisation } = request.caller!;
  const endsAtMs = performance.now() + waitMs;
  let { after } = page;
  let hasWaited = false;
  let endWait = (): void => {};
  whenLeft(request, () => endWait());
  for (;;) {
    const hasSlot = await listSlots.enter(organisation, (giveUp) => whenClosed(request, giveUp));
    if (!hasSlot) return request.watched!.isClosed ? reply.hijack() : refuse(reply, tooManyLists);
    let read: ChangesRead | null;
    try {
      // The key may have been revoked during a wait.
      const isAllowed = await isStillAllowed(service, request);
      read = isAllowed ? await store.changes(organisation, { ...page, after }) : null;
    } catch (error) {
      listSlots.leave(organisation);
      throw error;
    }
    if (read === null) {
      listSlots.leave(organisation);
      return refuse(reply, unauthorized);
    }
    const leftMs = endsAtMs - performance.now();
    const isOver = leftMs <= 0 || followers.isClosed || hasLeft(request);
    if (read.kind === 'gone' || read.lines.length > 0 || isOver) {
      whenClosed(request, () => listSlots.leave(organisation));
      return read.kind === 'gone'
        ? refuse(reply, gone(read.latest))
        : sendChanges(inFlight, request, reply, read, contentType);
    }
    listSlots.leave(organisation);
    after = read.next;
    if (after.seq < read.latest) continue;
    if (followers.isFull(organisation)) return refuse(reply, tooManyFollowers);
    // Entries without changes for this request may be added without pause. It must not read again for each of them.
    if (hasWaited) await sleep(PAUSE_MS);
    await followers.nextEntry(organisation, after.seq, leftMs, (end) => {
      endWait = end;
    });
    hasWaited = true;
  }
}

function sendChanges(
  inFlight: AppDependencies['inFlight'],
  request: FastifyRequest,
  reply: FastifyReply,
  read: Changes,
  contentType: ChangesType,
): FastifyReply {
  const { organisation } = request.caller!;
  const body = contentType === NDJSON_TYPE ? ndjsonOf(read) : jsonOf(read);
  inFlight.hold(organisation, body.length);
  whenClosed(request, () => inFlight.give(organisation, body.length));
  return reply.type(contentType).send(body);
}

/** Returns whether the client has closed its side of the connection, as a client that was ended does. */
function hasLeft({ raw, watched }: FastifyRequest): boolean {
  return watched!.isClosed || raw.socket.readableEnded;
}

type Changes = Extract<ChangesRead, { kind: 'changes' }>;

function endOf({ next, latest }: Changes): { readonly next: string; readonly latest: number } {
  return { next: positionText(next), latest };
}

function ndjsonOf(read: Changes): Buffer {
  return Buffer.concat([read.lines, Buffer.from(`${JSON.stringify(endOf(read))}\n`)]);
}

const LINE_FEED = 0x0a;
const COMMA = 0x2c;

function jsonOf(read: Changes): Buffer {
  const { buffer, byteOffset, byteLength } = read.lines;
  const lines = Buffer.from(buffer, byteOffset, Math.max(0, byteLength - 1));
  // A line feed separates changes. Within a change it does not occur, because JSON escapes it.
  for (let at = lines.indexOf(LINE_FEED); at !== -1; at = lines.indexOf(LINE_FEED, at + 1)) lines[at] = COMMA;
  return Buffer.concat([
    Buffer.from('{"changes":['),
    lines,
    Buffer.from(`],${JSON.stringify(endOf(read)).slice(1)}`),
  ]);
}

export function gone(latest: number): Refusal {
  return {
    refusal: 'gone',
    latest,
    message:
      `The changes after this position are not available: the position is older than the server keeps changes, or ` +
      `beyond the last entry, ${latest}. To start over, read everything, then follow from after=${latest}.`,
  };
}

export function positionText({ seq, ids }: ChangePosition): string {
  return ids === null ? `${seq}` : `${seq}:${ids}`;
}

const positionPattern = /^(\d{1,15})(?::(\d{1,6}))?$/;

export function readPosition(value = '0'): ChangePosition | Refusal {
  const parts = positionPattern.exec(value);
  if (parts === null) {
    return badQuery(
      `after must be the number of an entry, or next of the previous page, not ${quote(value)}.`,
    );
  }
  return { seq: Number(parts[1]), ids: parts[2] === undefined ? null : Number(parts[2]) };
}

export function getUsage(service: AppDependencies): Handler {
  return async (request, reply) => {
    const query = readQuery(request, ['from', 'to', 'by']);
    if (isRefusal(query)) return refuse(reply, query);
    const types = allowedTypes(request.caller!, 'read or write', undefined);
    if (isRefusal(types)) return refuse(reply, types);
    const by = readChoice('by', usageGroups, query.by) ?? 'day';
    if (isRefusal(by)) return refuse(reply, by);
    const period = usagePeriod(query.from, query.to, Date.now());
    if (period instanceof Failure) return refuse(reply, badQuery(`${period.reason}.`));
    const { from, to } = period;
    const { organisation } = request.caller!;
    return sendPage(service, request, reply, async () => {
      const all = await service.store.usage(organisation, from, to);
      const usage = all.filter((one) => maySee(request.caller!, one));
      return { from, to, by, ...summedUsage(usage, by, await keyNames(service, organisation)) };
    });
  };
}

function readMoment(name: string, value: string | undefined): number | null | Refusal {
  if (value === undefined) return null;
  const moment = readFilter(name, dateTime, value);
  return isRefusal(moment) ? moment : Date.parse(moment);
}

function readSeqCursor(cursor: string): number | Refusal {
  const values = readCursor(cursor, [wholeNumber]);
  return isRefusal(values) ? values : Number(values[0]);
}
