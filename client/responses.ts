// Reads the server's responses. Each reader returns undefined for a response that it does not recognise, because a
// proxy between client and server may send its own responses.

import type { FieldProblem, Refusal, RefusedError } from './errors.ts';
import type { Change, ChangesPage } from './ledger.ts';
import type { RecommendationsReport } from './recommendations.ts';
import type { ShownInteraction, UploadTypeName } from './records.ts';
import type { Counts, UploadError, UploadWarning } from './result.ts';
import type {
  ListedSegment,
  MemberChange,
  MemberChangesPage,
  MemberExplanation,
  Segment,
  SegmentPreview,
} from './segments.ts';
import type { AsOf, SqlResult } from './sql.ts';

export interface Page<Item> {
  readonly items: readonly Item[];
  /** The cursor of the next page, or null if this is the last page. */
  readonly nextCursor: string | null;
}

/** The result of one upload request or of one batch of it. Indices are positions among the records of the request. */
interface BatchResponse {
  readonly counts: Counts;
  readonly errors: readonly UploadError[];
  readonly warnings: readonly UploadWarning[];
}

export interface UploadResponse extends BatchResponse {
  readonly requestId: string;
  /** The number of the entry in the ledger. Null in a dry run, or if nothing could be stored. */
  readonly seq: number | null;
}

/** Returns the result of a call, or undefined if the response is not valid for this call. */
export type Reader<Result> = (status: number, body: unknown) => Result | undefined;

type Json = Readonly<Record<string, unknown>>;

const OK_STATUS = 200;
const CREATED_STATUS = 201;
const NO_CONTENT_STATUS = 204;
const BAD_REQUEST_STATUS = 400;
const NOT_FOUND_STATUS = 404;

/**
 * Returns a reader for the response to an upload of `recordCount` records. It ignores the status, because responses
 * with the statuses 200, 207, 400 and 500 all contain batches if the records were checked.
 */
export function uploadReader(recordCount: number): Reader<UploadResponse> {
  return (_, body) => {
    if (!isObject(body)) return undefined;
    const { request_id: requestId, seq = null, batches } = body;
    if (typeof requestId !== 'string' || !isArrayOf(batches, isBatch)) return undefined;
    if (seq !== null && !isCount(seq)) return undefined;
    const counts = sumOf(batches.map(({ data }) => data.counts));
    const errors = batches.flatMap(({ data }) => data.errors);
    if (counts.received !== recordCount || !areNamed(counts.rejected, errors, recordCount)) return undefined;
    const warnings = batches.flatMap(({ data }) => data.warnings);
    return { requestId, seq, counts, errors, warnings };
  };
}

/** Returns whether every rejected record has at least one error, and every error belongs to a rejected record. */
function areNamed(rejected: number, errors: readonly UploadError[], recordCount: number): boolean {
  const named = new Set(errors.map(({ index }) => index));
  return named.size === rejected && errors.every(({ index }) => index < recordCount);
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

/** Returns a reader that returns null if Headgate itself responded 404, and undefined if a proxy did. */
export function itemReader<Item>(key: string): Reader<Item | null> {
  return (status, body) => {
    if (status === OK_STATUS && isObject(body) && typeof body[key] === 'string') return body as Item;
    return status === NOT_FOUND_STATUS && readRefusal(status, body) !== undefined ? null : undefined;
  };
}

export function pageReader<Item>(
  name: 'records' | 'interactions' | 'uploads' | 'members',
): Reader<Page<Item>> {
  return (status, body) => {
    if (status !== OK_STATUS || !isObject(body) || !isArrayOf(body[name], isObject)) return undefined;
    const { next_cursor: nextCursor } = body;
    return isTextOrNull(nextCursor) ? { items: body[name] as readonly Item[], nextCursor } : undefined;
  };
}

export function changesReader<T extends UploadTypeName>(): Reader<ChangesPage<T>> {
  return (status, body) => {
    if (status !== OK_STATUS || !isObject(body) || !isArrayOf(body.changes, isChange)) return undefined;
    const { next, latest } = body;
    if (typeof next !== 'string' || !isCount(latest)) return undefined;
    return { changes: body.changes as unknown as readonly Change<T>[], next, latest };
  };
}

export function sqlReader<Row extends readonly unknown[]>(): Reader<SqlResult<Row>> {
  return (status, body) => {
    if (status !== OK_STATUS || !isObject(body)) return undefined;
    const { columns, rows, as_of: asOf } = body;
    const isResult = isArrayOf(columns, isObject) && Array.isArray(rows) && isObject(asOf);
    return isResult ? (body as unknown as SqlResult<Row>) : undefined;
  };
}

/** Returns what a query has seen, or null if a proxy has removed or changed the header. */
export function readAsOf(headers: Headers): AsOf | null {
  try {
    return JSON.parse(headers.get('Headgate-As-Of') ?? 'null') as AsOf | null;
  } catch {
    return null;
  }
}

export function readRecommendations(status: number, body: unknown): RecommendationsReport | undefined {
  if (status !== OK_STATUS || !isObject(body)) return undefined;
  const { coverage, groups, as_of: asOf, notes } = body;
  const isReport =
    isObject(coverage) && isArrayOf(groups, isObject) && isObject(asOf) && Array.isArray(notes);
  return isReport ? (body as unknown as RecommendationsReport) : undefined;
}

export function readSegments(status: number, body: unknown): readonly ListedSegment[] | undefined {
  if (status !== OK_STATUS || !isObject(body) || !isArrayOf(body.segments, isObject)) return undefined;
  return body.segments as unknown as readonly ListedSegment[];
}

export function readSaved(status: number, body: unknown): Segment | undefined {
  return status === OK_STATUS && isObject(body) && typeof body.name === 'string'
    ? (body as unknown as Segment)
    : undefined;
}

/** Returns false if Headgate itself responded 404, and undefined if a proxy did. */
export function readDeleted(status: number, body: unknown): boolean | undefined {
  if (status === NO_CONTENT_STATUS) return true;
  return status === NOT_FOUND_STATUS && readRefusal(status, body) !== undefined ? false : undefined;
}

export function readPreview(status: number, body: unknown): SegmentPreview | undefined {
  if (status !== OK_STATUS || !isObject(body)) return undefined;
  const { count, nodes, sample } = body;
  const isPreview = isCount(count) && isArrayOf(nodes, isObject) && Array.isArray(sample);
  return isPreview ? (body as unknown as SegmentPreview) : undefined;
}

/** Returns null if Headgate itself responded 404, and undefined if a proxy did. */
export function readExplanation(status: number, body: unknown): MemberExplanation | null | undefined {
  if (status === NOT_FOUND_STATUS) return readRefusal(status, body) === undefined ? undefined : null;
  if (status !== OK_STATUS || !isObject(body)) return undefined;
  const isExplanation = typeof body.member === 'boolean' && isArrayOf(body.nodes, isObject);
  return isExplanation ? (body as unknown as MemberExplanation) : undefined;
}

export function readMemberChanges(status: number, body: unknown): MemberChangesPage | undefined {
  if (status !== OK_STATUS || !isObject(body) || !isArrayOf(body.changes, isObject)) return undefined;
  const { next, latest } = body;
  if (!isCount(next) || !isCount(latest)) return undefined;
  return { changes: body.changes as unknown as readonly MemberChange[], next, latest };
}

export function readRefusal(status: number, body: unknown): Refusal | undefined {
  if (!isObject(body)) return undefined;
  const { error, message, request_id: requestId, details, latest, position, path } = body;
  if (typeof error !== 'string' || typeof message !== 'string' || typeof requestId !== 'string')
    return undefined;
  return {
    status,
    error,
    message,
    requestId,
    details: isArrayOf(details, isFieldProblem) ? details : [],
    ...(isCount(latest) ? { latest } : {}),
    ...(isCount(position) ? { position } : {}),
    ...(typeof path === 'string' ? { path } : {}),
  };
}

/** The server's messages for an upload with too many records. They contain the limit. */
const recordLimits = [
  /^"records" has \d+ records; send at most (\d+) in one request\.$/,
  /^The body holds more than \d+ (?:keys(?: and elements)?|objects and arrays); send at most (\d+) records in one request\.$/,
];

/** Returns the maximum number of records in a request, or null if the refusal has another reason. */
export function recordLimitIn({ status, message }: RefusedError): number | null {
  if (status !== BAD_REQUEST_STATUS) return null;
  for (const sentence of recordLimits) {
    const limit = Number(sentence.exec(message)?.[1]);
    if (limit >= 1) return limit;
  }
  return null;
}

function isBatch(value: unknown): value is { readonly data: BatchResponse } {
  if (!isObject(value) || !isObject(value.data)) return false;
  const { counts, errors, warnings } = value.data;
  return isCounts(counts) && isArrayOf(errors, isUploadError) && isArrayOf(warnings, isUploadWarning);
}

function isCounts(value: unknown): value is Counts {
  if (!isObject(value)) return false;
  const { received, created, updated, unchanged, rejected } = value;
  const parts = [created, updated, unchanged, rejected];
  return parts.every(isCount) && parts.reduce((sum, part) => sum + part, 0) === received;
}

function isUploadError(value: unknown): value is UploadError {
  if (!isObject(value) || !isFieldProblem(value)) return false;
  const { index, id, retryable } = value as Json;
  return isCount(index) && isTextOrNull(id) && typeof retryable === 'boolean';
}

/** Accepts any code, because a newer server may send codes that this client does not have. */
function isFieldProblem(value: unknown): value is FieldProblem {
  if (!isObject(value)) return false;
  const { field, code, message } = value;
  return isTextOrNull(field) && typeof code === 'string' && typeof message === 'string';
}

function isUploadWarning(value: unknown): value is UploadWarning {
  if (!isObject(value)) return false;
  const { code, field, count, message } = value;
  return typeof code === 'string' && isTextOrNull(field) && isCount(count) && typeof message === 'string';
}

function isChange(value: unknown): value is Json {
  if (!isObject(value)) return false;
  const { seq, type, id, record } = value;
  return isCount(seq) && typeof type === 'string' && typeof id === 'string' && typeof record === 'object';
}

function isArrayOf<Item>(value: unknown, isItem: (item: unknown) => item is Item): value is readonly Item[] {
  return Array.isArray(value) && value.every(isItem);
}

/** Returns whether the value is a count or a position, which can both be 0. */
function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
