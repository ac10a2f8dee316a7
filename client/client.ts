// The Headgate client for Node and browsers. It uploads records, sends interactions, reads both, follows changes, and
// runs queries, reports and segments.

import type { Condition } from './condition.ts';
import {
  type ApiCall,
  Connection,
  type ConnectionOptions,
  type ReadOptions,
  randomKey,
} from './connection.ts';
import { GoneError } from './errors.ts';
import {
  type ChangesOptions,
  type ChangesPage,
  type ListUploadsOptions,
  positionPattern,
  type UploadEntry,
  type UploadEntryWithCauses,
} from './ledger.ts';
import { countFrom, shown } from './option-checks.ts';
import type { RecommendationsOptions, RecommendationsReport } from './recommendations.ts';
import {
  keyFields,
  type RecordTypeName,
  type SentInteraction,
  type SentUpload,
  type ShownInteraction,
  type ShownRecord,
  type UploadTypeName,
  uploadOrder,
} from './records.ts';
import {
  changesReader,
  itemReader,
  type Page,
  pageReader,
  readAsOf,
  readDeleted,
  readExplanation,
  readMemberChanges,
  readPreview,
  readRecommendations,
  readRecorded,
  readSaved,
  readSegments,
  sqlReader,
} from './responses.ts';
import type { UploadResult } from './result.ts';
import type {
  ListedSegment,
  ListMembersOptions,
  MemberChangesOptions,
  MemberChangesPage,
  MemberExplanation,
  Segment,
  SegmentDefinition,
  SegmentMember,
  SegmentPreview,
} from './segments.ts';
import {
  type SqlFormat,
  type SqlParam,
  type SqlResult,
  type SqlStream,
  type SqlStreamOptions,
  sqlMediaTypes,
} from './sql.ts';
import { Upload, type UploadLimits, type UploadOptions } from './upload.ts';

export type {
  AllCondition,
  AnyCondition,
  Condition,
  CountTests,
  CustomerCondition,
  DidCondition,
  DidConditionOf,
  Duration,
  EventType,
  NotCondition,
  NumberTests,
  SampleCondition,
  SegmentCondition,
  TextTests,
  Time,
  TimeTests,
} from './condition.ts';
export type { ConditionFields } from './condition-fields.ts';
export type { ReadOptions } from './connection.ts';
export {
  AbortedError,
  BrokenOffError,
  type FieldProblem,
  ForbiddenError,
  GoneError,
  HeadgateError,
  RefusedError,
  ResponseTooLargeError,
  UnauthorizedError,
  UnreachableError,
  UploadInterruptedError,
} from './errors.ts';
export type {
  Change,
  ChangesOptions,
  ChangesPage,
  ListUploadsOptions,
  UploadCause,
  UploadEntry,
  UploadEntryWithCauses,
  UploadFilters,
  UploadStatus,
} from './ledger.ts';
export type { RetryNotice, RetryOptions } from './patience.ts';
export type {
  HoldoutComparison,
  HoldoutDifference,
  HoldoutStudents,
  OrganicWindowFigures,
  RecommendationsCoverage,
  RecommendationsFilters,
  RecommendationsGroup,
  RecommendationsOptions,
  RecommendationsReport,
  ReportGrouping,
  TouchFigures,
  WindowDays,
  WindowFigures,
} from './recommendations.ts';
export * from './records.ts';
export type { Counts, UploadError, UploadResult, UploadWarning } from './result.ts';
export type {
  ExplainedNode,
  ListedSegment,
  ListMembersOptions,
  MemberChange,
  MemberChangesOptions,
  MemberChangesPage,
  MemberExplanation,
  Segment,
  SegmentDefinition,
  SegmentEvaluation,
  SegmentFailure,
  SegmentMember,
  SegmentPreview,
} from './segments.ts';
export type {
  AsOf,
  SqlColumn,
  SqlFormat,
  SqlParam,
  SqlResult,
  SqlStream,
  SqlStreamOptions,
} from './sql.ts';
export type { RejectedRecord, UploadedSlice, UploadOptions, UploadProgress } from './upload.ts';

export interface ClientOptions extends ConnectionOptions {
  /** The number of parallel upload requests. Default: 4. */
  concurrency?: number | undefined;
  /** The maximum number of records in one upload request. Default: 5000, which is also the server's default limit. */
  maxRecordsPerRequest?: number | undefined;
  /** The maximum number of bytes of JSON in one upload request. Default: 8 MiB. A larger record is sent alone. */
  maxBytesPerRequest?: number | undefined;
  /** Compresses the bodies of uploads. Default: null, for no compression, which is faster in a local network. */
  compression?: 'gzip' | null | undefined;
}

export interface RecordOptions extends ReadOptions {
  /** If calls within 24 hours have the same key, only the first records an interaction. Default: a random key. */
  idempotencyKey?: string | undefined;
  /** Drops unknown fields instead of refusing the interaction. */
  lenient?: boolean | undefined;
  /**
   * Called if the interaction had already been recorded with this key: by an earlier call, or by an attempt of this
   * call whose response was lost.
   */
  onReplayed?: (() => void) | undefined;
}

export interface ListOptions extends ReadOptions {
  /** Includes records that are marked as deleted. */
  includeDeleted?: boolean | undefined;
  /** The maximum number of records per request, up to 1000. Default: 1000. */
  pageSize?: number | undefined;
}

export interface InteractionFilters {
  student_id?: string | undefined;
  user_id?: string | undefined;
  item_type?: SentInteraction['item_type'] | undefined;
  item_id?: string | undefined;
  interaction_type?: SentInteraction['interaction_type'] | undefined;
  source?: NonNullable<SentInteraction['source']> | undefined;
  /** Only interactions that occurred at this time or later. */
  from?: string | Date | undefined;
  /** Only interactions that occurred before this time. */
  to?: string | Date | undefined;
}

export interface ListInteractionsOptions extends InteractionFilters, ReadOptions {
  /** The maximum number of interactions per request, up to 1000. Default: 1000. */
  pageSize?: number | undefined;
}

const DEFAULT_CONCURRENCY = 4;
const DEFAULT_RECORDS_PER_REQUEST = 5000;
const DEFAULT_BYTES_PER_REQUEST = 8 * 1024 * 1024;
const DEFAULT_PAGE_RECORDS = 1000;
/** How long a request for changes waits for some. */
const WAIT_S = 30;

export class HeadgateClient {
  readonly #connection: Connection;
  readonly #limits: UploadLimits;
  readonly #compression: 'gzip' | null;

  constructor(options: ClientOptions) {
    const { concurrency, maxRecordsPerRequest, maxBytesPerRequest, compression = null } = options;
    this.#connection = new Connection(options);
    this.#limits = {
      concurrency: countFrom('concurrency', concurrency, DEFAULT_CONCURRENCY),
      records: countFrom('maxRecordsPerRequest', maxRecordsPerRequest, DEFAULT_RECORDS_PER_REQUEST),
      bytes: countFrom('maxBytesPerRequest', maxBytesPerRequest, DEFAULT_BYTES_PER_REQUEST),
    };
    if (compression !== null && compression !== 'gzip') {
      throw new TypeError(`compression must be 'gzip' or null, not ${shown(compression)}`);
    }
    this.#compression = compression;
  }

  /**
   * Uploads any number of records or interactions in as many requests as needed. If several records have the same id,
   * the last one is stored; of several interactions, the first. An interaction without an id gets one, so that it is
   * recorded only once even after retries. Rejected records do not stop the upload; they are listed in the result.
   * Throws an UploadInterruptedError if the upload cannot continue.
   */
  async upload<T extends UploadTypeName>(
    type: T,
    records: Iterable<SentUpload<T>> | AsyncIterable<SentUpload<T>>,
    options: UploadOptions<T> = {},
  ): Promise<UploadResult> {
    const concurrency = countFrom('concurrency', options.concurrency, this.#limits.concurrency);
    const limits = { ...this.#limits, concurrency };
    return new Upload(this.#connection, type, records, limits, this.#compression, options).run();
  }

  /** Records one interaction exactly once, even after retries. Resolves to the stored interaction. */
  async record(interaction: SentInteraction, options: RecordOptions = {}): Promise<ShownInteraction> {
    const { idempotencyKey = randomKey() } = options;
    if (typeof idempotencyKey !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
      throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters');
    }
    return this.#connection.call({
      path: 'user-interactions',
      body: new TextEncoder().encode(JSON.stringify(interaction) ?? 'null'),
      read: readRecorded,
      ...options,
      idempotencyKey,
    });
  }

  /** Resolves to the record with this id, or to null if there is none. */
  async get<T extends RecordTypeName>(
    type: T,
    id: string,
    options: ReadOptions = {},
  ): Promise<ShownRecord<T> | null> {
    // The type is checked here, because the server responds 404 to an unknown type as well as to an unknown record.
    if (!uploadOrder.includes(type))
      throw new TypeError(`${type} is not a record type; the types are ${uploadOrder.join(', ')}`);
    const path = `v1/data/${type}/${encodeURIComponent(id)}`;
    return this.#connection.call({ path, read: itemReader<ShownRecord<T>>(keyFields[type]), ...options });
  }

  /** Iterates over all records of a type in the order of their ids. Pages are requested as they are needed. */
  list<T extends RecordTypeName>(type: T, options: ListOptions = {}): AsyncIterable<ShownRecord<T>> {
    const { includeDeleted = false, pageSize, ...others } = options;
    const path = `v1/data/${encodeURIComponent(type)}`;
    const query = { limit: limitFrom(pageSize), ...(includeDeleted ? { include_deleted: 'true' } : {}) };
    return this.#pages({ path, query, read: pageReader<ShownRecord<T>>('records'), ...others });
  }

  /** Resolves to the interaction with this id, or to null if there is none. */
  getInteraction(id: string, options: ReadOptions = {}): Promise<ShownInteraction | null> {
    const path = `user-interactions/${encodeURIComponent(id)}`;
    return this.#connection.call({ path, read: itemReader<ShownInteraction>('interaction_id'), ...options });
  }

  /** Iterates over interactions, newest first. Pages are requested as they are needed. */
  interactions(options: ListInteractionsOptions = {}): AsyncIterable<ShownInteraction> {
    const { pageSize, signal, onRetry, ...filters } = options;
    const query = { limit: limitFrom(pageSize), ...filterQuery(filters) };
    const read = pageReader<ShownInteraction>('interactions');
    return this.#pages({ path: 'user-interactions', query, read, signal, onRetry });
  }

  /** Iterates over uploads, newest first. Pages are requested as they are needed. */
  uploads(options: ListUploadsOptions = {}): AsyncIterable<UploadEntry> {
    const { pageSize, signal, onRetry, ...filters } = options;
    const query = { limit: limitFrom(pageSize), ...filterQuery(filters) };
    return this.#pages({
      path: 'v1/uploads',
      query,
      read: pageReader<UploadEntry>('uploads'),
      signal,
      onRetry,
    });
  }

  /**
   * Resolves to the upload with this request id or this number (`seq`), and why records were rejected. Resolves to null if
   * there is none.
   */
  getUpload(id: string | number, options: ReadOptions = {}): Promise<UploadEntryWithCauses | null> {
    const path = `v1/uploads/${encodeURIComponent(id)}`;
    return this.#connection.call({ path, read: itemReader<UploadEntryWithCauses>('request_id'), ...options });
  }

  /**
   * Iterates over pages of changes, each with the current state of what has changed, and then waits for more. Retries
   * failed requests without end, unless the client's option `retry` has an end. Store `next` once a page is processed,
   * and pass it as `after` to continue. A page without changes is passed on only if `next` has moved. Throws a GoneError
   * if the changes after the position are not available.
   */
  changes<T extends UploadTypeName>(options: ChangesOptions<T> = {}): AsyncIterable<ChangesPage<T>> {
    const { after = 0, type, follow = true, pageSize, signal, onRetry } = options;
    const position = String(after);
    if (!positionPattern.test(position)) {
      throw new TypeError(`after must be a position in the ledger, such as 41, not ${shown(after)}`);
    }
    const query = {
      limit: limitFrom(pageSize),
      ...(type === undefined ? {} : { type }),
      ...(follow ? { wait: String(WAIT_S) } : {}),
    };
    const waitMs = follow ? WAIT_S * 1000 : 0;
    const call = { path: 'v1/changes', query, waitMs, read: changesReader<T>(), signal, onRetry };
    return this.#changes(call, position, follow);
  }

  async *#changes<T extends UploadTypeName>(
    call: ApiCall<ChangesPage<T>>,
    first: string,
    isEndless: boolean,
  ): AsyncIterable<ChangesPage<T>> {
    let after = first;
    for (;;) {
      const patience = isEndless ? this.#connection.newEndlessPatience() : this.#connection.newPatience();
      const page = await this.#connection.call({ ...call, query: { ...call.query, after }, patience });
      const { changes, next, latest } = page;
      if (changes.length > 0 || next !== after) yield page;
      if (!isEndless && next === String(latest)) return;
      after = next;
    }
  }

  /**
   * Resolves to the number of the ledger's last entry. To copy everything and keep the copy up to date, call this first,
   * then read everything, then follow the changes after this number.
   */
  async latest(options: ReadOptions = {}): Promise<number> {
    const query = { limit: '1' };
    try {
      const page = await this.#connection.call({
        path: 'v1/changes',
        query,
        read: changesReader(),
        ...options,
      });
      return page.latest;
    } catch (error) {
      if (error instanceof GoneError) return error.latest;
      throw error;
    }
  }

  /**
   * Runs a SELECT statement of DuckDB on everything that the organisation has uploaded. Each `?` in it stands for the
   * next of the parameters.
   */
  sql<Row extends readonly unknown[] = readonly unknown[]>(
    sql: string,
    params: readonly SqlParam[] = [],
    options: ReadOptions = {},
  ): Promise<SqlResult<Row>> {
    return this.#connection.call({
      path: 'v1/sql',
      body: jsonBody({ sql, params }),
      read: sqlReader<Row>(),
      ...options,
    });
  }

  /**
   * Runs a query like `sql`, and resolves to what it has seen, and to its result as bytes, which are passed on as they
   * arrive. CSV, NDJSON and Parquet have no limit of rows. If the query fails after its first rows, reading throws a
   * BrokenOffError.
   */
  async sqlStream(
    sql: string,
    params: readonly SqlParam[],
    format: SqlFormat,
    options: SqlStreamOptions = {},
  ): Promise<SqlStream> {
    const { spreadsheetSafe = false, ...others } = options;
    if (!Object.hasOwn(sqlMediaTypes, format)) {
      throw new TypeError(
        `format must be one of ${Object.keys(sqlMediaTypes).join(', ')}, not ${shown(format)}`,
      );
    }
    if (spreadsheetSafe && format !== 'csv') {
      throw new TypeError(`spreadsheetSafe is for the format csv, not ${shown(format)}`);
    }
    const accept = sqlMediaTypes[format];
    const query = spreadsheetSafe ? { spreadsheet_safe: 'true' } : {};
    const call = { path: 'v1/sql', query, body: jsonBody({ sql, params }), accept, ...others };
    const { headers, stream } = await this.#connection.stream(call);
    return { as_of: readAsOf(headers), stream };
  }

  /** Resolves to what students did and bought after recommendations and without them, in a period of days. */
  recommendationsReport(options: RecommendationsOptions = {}): Promise<RecommendationsReport> {
    const { signal, onRetry, ...filters } = options;
    return this.#connection.call({
      path: 'v1/reports/recommendations',
      query: filterQuery(filters),
      read: readRecommendations,
      signal,
      onRetry,
    });
  }

  /** Resolves to all segments, sorted by name, without their conditions. */
  segments(options: ReadOptions = {}): Promise<readonly ListedSegment[]> {
    return this.#connection.call({ path: 'v1/segments', read: readSegments, ...options });
  }

  /** Resolves to the segment with this name, or to null if there is none. */
  async getSegment(name: string, options: ReadOptions = {}): Promise<Segment | null> {
    return this.#connection.call({ path: segmentPath(name), read: itemReader<Segment>('name'), ...options });
  }

  /**
   * Saves a new segment or changes an existing one, and evaluates it. If the evaluation fails, the segment is saved all
   * the same, and its `failure` says why.
   */
  async saveSegment(
    name: string,
    { condition, note = null }: SegmentDefinition,
    options: ReadOptions = {},
  ): Promise<Segment> {
    return this.#connection.call({
      path: segmentPath(name),
      method: 'PUT',
      body: jsonBody({ condition, note }),
      read: readSaved,
      ...options,
    });
  }

  /**
   * Deletes a segment with its members. Resolves to false if there is none. If a request had to be repeated, resolves to
   * true even if there is none, because the first request may have deleted it.
   */
  async deleteSegment(name: string, options: ReadOptions = {}): Promise<boolean> {
    let isRepeated = false;
    const isDeleted = await this.#connection.call({
      path: segmentPath(name),
      method: 'DELETE',
      read: readDeleted,
      signal: options.signal,
      onRetry: (retry) => {
        isRepeated = true;
        return options.onRetry?.(retry);
      },
    });
    return isDeleted || isRepeated;
  }

  /** Evaluates a segment now. Resolves to the segment, or to null if there is none. */
  async refreshSegment(name: string, options: ReadOptions = {}): Promise<Segment | null> {
    return this.#connection.call({
      path: `${segmentPath(name)}/refresh`,
      method: 'POST',
      read: itemReader<Segment>('name'),
      ...options,
    });
  }

  /** Resolves to the number of customers for which a condition and each of its nodes hold. Saves nothing. */
  previewSegment(condition: Condition, options: ReadOptions = {}): Promise<SegmentPreview> {
    return this.#connection.call({
      path: 'v1/segments/preview',
      body: jsonBody({ condition }),
      read: readPreview,
      ...options,
    });
  }

  /**
   * Iterates over the members of a segment as of its last evaluation, in the order of their ids. Pages are requested as
   * they are needed.
   */
  segmentMembers(name: string, options: ListMembersOptions = {}): AsyncIterable<SegmentMember> {
    const { pageSize, ...others } = options;
    const path = `${segmentPath(name)}/members`;
    const query = { limit: limitFrom(pageSize) };
    return this.#pages({ path, query, read: pageReader<SegmentMember>('members'), ...others });
  }

  /**
   * Resolves to why a customer is a member of a segment or not, or to null if there is no such segment or customer.
   */
  async explainMember(
    name: string,
    customerId: string,
    options: ReadOptions = {},
  ): Promise<MemberExplanation | null> {
    const path = `${segmentPath(name)}/members/${encodeURIComponent(customerId)}`;
    return this.#connection.call({ path, read: readExplanation, ...options });
  }

  /**
   * Iterates over pages of who entered and left a segment, until it is up to date. Store `next` once a page is
   * processed, and pass it as `after` to continue later. Throws a GoneError if the changes after the position are not
   * available.
   */
  memberChanges(name: string, options: MemberChangesOptions = {}): AsyncIterable<MemberChangesPage> {
    const { after, pageSize, ...others } = options;
    if (after !== undefined && !(Number.isSafeInteger(after) && after >= 0)) {
      throw new TypeError(`after must be a whole number of 0 or more, not ${shown(after)}`);
    }
    const path = `${segmentPath(name)}/changes`;
    const query = { limit: limitFrom(pageSize) };
    return this.#memberChanges({ path, query, read: readMemberChanges, ...others }, after ?? null);
  }

  async *#memberChanges(
    call: ApiCall<MemberChangesPage>,
    first: number | null,
  ): AsyncIterable<MemberChangesPage> {
    let after = first;
    for (;;) {
      const query = { ...call.query, ...(after === null ? {} : { after: String(after) }) };
      const page = await this.#connection.call({ ...call, query });
      // A first page without changes is passed on if its position was not known.
      if (page.changes.length > 0 || after === null) yield page;
      if (page.next >= page.latest) return;
      after = page.next;
    }
  }

  /** Iterates over the items of all pages. A short or empty page is not the end: only the last page has no cursor. */
  async *#pages<Item>(first: ApiCall<Page<Item>>): AsyncIterable<Item> {
    let call = first;
    for (;;) {
      const { items, nextCursor } = await this.#connection.call(call);
      yield* items;
      if (nextCursor === null) return;
      call = { ...first, query: { ...first.query, cursor: nextCursor } };
    }
  }
}

function jsonBody(value: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Throws a TypeError for a name that would lead to another path. */
function segmentPath(name: string): string {
  // An empty segment of a path and the two that mean folders are resolved before the request is sent.
  if (typeof name !== 'string' || /^\.{0,2}$/.test(name)) {
    throw new TypeError(`name must be the name of a segment, not ${shown(name)}`);
  }
  return `v1/segments/${encodeURIComponent(name)}`;
}

/** Returns the page size as a query parameter. The maximum is not checked here, but by the server. */
function limitFrom(pageSize: number | undefined): string {
  return String(countFrom('pageSize', pageSize, DEFAULT_PAGE_RECORDS));
}

function filterQuery(filters: Readonly<Record<string, string | Date | undefined>>): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(filters)) {
    if (value !== undefined) query[name] = filterText(name, value);
  }
  return query;
}

function filterText(name: string, value: string | Date): string {
  if (typeof value === 'string') return value;
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
  const meant = name === 'from' || name === 'to' ? 'a date-time as text, or a valid Date' : 'text';
  throw new TypeError(`${name} must be ${meant}, not ${shown(value)}`);
}
