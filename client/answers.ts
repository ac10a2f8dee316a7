// What the server's answers mean. Each reader returns undefined for an answer that is none of its kind: between client
// and server there may be a proxy with answers of its own.

import type { FieldProblem, Refusal } from './errors.ts';
import { keyFields, type RecordTypeName, type ShownInteraction, type ShownRecord } from './records.ts';
import type { Counts, UploadError, UploadWarning } from './result.ts';

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
}

/** The outcome of one request; indices are positions in its records. */
export interface UploadAnswer {
  readonly requestId: string;
  readonly counts: Counts;
  readonly errors: readonly UploadError[];
  readonly warnings: readonly UploadWarning[];
}

type Json = Readonly<Record<string, unknown>>;

interface Batch {
  readonly data: {
    readonly counts: Counts;
    readonly errors: readonly UploadError[];
    readonly warnings: readonly UploadWarning[];
  };
}

const OK_STATUS = 200;
const CREATED_STATUS = 201;
const NOT_FOUND_STATUS = 404;

/** Whatever the status: 200, 207, 400 and 500 all carry batches where the records were looked at. */
export function uploadReader(
  recordCount: number,
): (status: number, body: unknown) => UploadAnswer | undefined {
  return (_, body) => {
    if (!isObject(body) || typeof body.request_id !== 'string' || !Array.isArray(body.batches))
      return undefined;
    if (!body.batches.every(isBatch)) return undefined;
    const batches: readonly Batch[] = body.batches;
    const counts = sumOf(batches.map(({ data }) => data.counts));
    if (counts.received !== recordCount) return undefined;
    return {
      requestId: body.request_id,
      counts,
      errors: batches.flatMap(({ data }) => data.errors),
      warnings: batches.flatMap(({ data }) => data.warnings),
    };
  };
}

export function sumOf(all: readonly Counts[]): Counts {
  const sum = (name: keyof Counts): number => all.reduce((total, counts) => total + counts[name], 0);
  return {
    received: sum('received'),
    created: sum('created'),
    updated: sum('updated'),
    unchanged: sum('unchanged'),
    rejected: sum('rejected'),
  };
}

export function readRecorded(status: number, body: unknown): ShownInteraction | undefined {
  return status === CREATED_STATUS && isObject(body) && typeof body.interaction_id === 'string'
    ? (body as unknown as ShownInteraction)
    : undefined;
}

export function recordReader<T extends RecordTypeName>(
  type: T,
): (status: number, body: unknown) => ShownRecord<T> | null | undefined {
  return (status, body) => readOne<ShownRecord<T>>(status, body, keyFields[type]);
}

export function readInteraction(status: number, body: unknown): ShownInteraction | null | undefined {
  return readOne<ShownInteraction>(status, body, 'interaction_id');
}

/** Null only where Headgate itself says that there is none. */
function readOne<Item>(status: number, body: unknown, key: string): Item | null | undefined {
  if (status === OK_STATUS && isObject(body) && typeof body[key] === 'string') return body as Item;
  return status === NOT_FOUND_STATUS && readRefusal(status, body) !== undefined ? null : undefined;
}

export function readRecordsPage<T extends RecordTypeName>(
  status: number,
  body: unknown,
): Page<ShownRecord<T>> | undefined {
  return readPage(status, body, 'records');
}

export function readInteractionsPage(status: number, body: unknown): Page<ShownInteraction> | undefined {
  return readPage(status, body, 'interactions');
}

function readPage<Item>(status: number, body: unknown, name: string): Page<Item> | undefined {
  if (status !== OK_STATUS || !isObject(body) || !Array.isArray(body[name])) return undefined;
  const { next_cursor: nextCursor } = body;
  if (nextCursor !== null && typeof nextCursor !== 'string') return undefined;
  return { items: body[name] as Item[], nextCursor };
}

export function readRefusal(status: number, body: unknown): Refusal | undefined {
  if (!isObject(body)) return undefined;
  const { error, message, request_id: requestId, details } = body;
  if (typeof error !== 'string' || typeof message !== 'string' || typeof requestId !== 'string')
    return undefined;
  return {
    status,
    error,
    message,
    requestId,
    details: Array.isArray(details) ? (details as FieldProblem[]) : [],
  };
}

function isBatch(value: unknown): value is Batch {
  if (!isObject(value) || !isObject(value.data)) return false;
  const { counts, errors, warnings } = value.data;
  return isObject(counts) && Array.isArray(errors) && Array.isArray(warnings);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
