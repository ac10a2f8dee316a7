// The client of Headgate: uploads records, records interactions, reads both back. For Node and browsers.

import {
  type Page,
  readInteraction,
  readInteractionsPage,
  readRecorded,
  readRecordsPage,
  recordReader,
} from './answers.ts';
import { type Call, Connection } from './connection.ts';
import { checkedIdempotencyKey, randomKey } from './idempotency-key.ts';
import { countFrom, shown } from './option-checks.ts';
import type { RetryNotice, RetryOptions } from './patience.ts';
import {
  type RecordTypeName,
  type SentInteraction,
  type SentRecord,
  type ShownInteraction,
  type ShownRecord,
  uploadOrder,
} from './records.ts';
import type { UploadResult } from './result.ts';
import { Upload, type UploadOptions } from './upload.ts';

export {
  AbortedError,
  type FieldProblem,
  ForbiddenError,
  HeadgateError,
  RefusedError,
  UnauthorizedError,
  UnreachableError,
  UploadInterruptedError,
} from './errors.ts';
export type { RetryNotice, RetryOptions } from './patience.ts';
export * from './records.ts';
export type { Counts, UploadError, UploadResult, UploadWarning } from './result.ts';
export type { RejectedRecord, UploadedSlice, UploadOptions, UploadProgress } from './upload.ts';

export interface ClientOptions {
  /** Where Headgate is, such as `https://data.example.com`; a path in front of its own is kept. */
  url: string | URL;
  apiKey: string;
  /** Instead of the platform's own. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Upload requests that are under way at once: 4. */
  concurrency?: number | undefined;
  /** The most records of an upload in one request: 5000, as many as a server takes unless it is told otherwise. */
  maxRecordsPerRequest?: number | undefined;
  /** The most bytes of JSON in one request: 8 MiB. A record that is larger by itself goes alone. */
  maxBytesPerRequest?: number | undefined;
  /** Compresses the bodies of uploads. Null, which is the default, is faster in a local network. */
  compression?: 'gzip' | null | undefined;
  retry?: RetryOptions | undefined;
  /** How long one try may take until its answer is read: 2 minutes. */
  requestTimeoutMs?: number | undefined;
  /** Sent with every request, except by browsers, which send their own. */
  userAgent?: string | undefined;
}

export interface RecordOptions {
  /** The same key within 24 hours records the same interaction once; a random one unless given. */
  idempotencyKey?: string | undefined;
  /** Fields that interactions do not have are dropped instead of refusing the interaction. */
  lenient?: boolean | undefined;
  /**
   * Called where the key had been used for this interaction before, so that nothing was recorded this time: by an
   * earlier call, or by a try of this one whose answer was lost.
   */
  onReplayed?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
  onRetry?: ((retry: RetryNotice) => void) | undefined;
}

export interface ReadOptions {
  signal?: AbortSignal | undefined;
  onRetry?: ((retry: RetryNotice) => void) | undefined;
}

export interface ListOptions extends ReadOptions {
  /** Records that are marked as deleted come, too. */
  includeDeleted?: boolean | undefined;
  /** The most records of one page, at most 1000, which is the default. A page may have fewer before the end. */
  pageSize?: number | undefined;
}

export interface InteractionFilters {
  student_id?: string | undefined;
  user_id?: string | undefined;
  item_type?: SentInteraction['item_type'] | undefined;
  item_id?: string | undefined;
  interaction_type?: SentInteraction['interaction_type'] | undefined;
  source?: NonNullable<SentInteraction['source']> | undefined;
  /** Interactions that occurred at this moment or later. */
  from?: string | Date | undefined;
  /** Interactions that occurred before this moment. */
  to?: string | Date | undefined;
}

export interface ListInteractionsOptions extends InteractionFilters, ReadOptions {
  /** The most interactions of one page, at most 1000, which is the default. A page may have fewer before the end. */
  pageSize?: number | undefined;
}

const DEFAULT_CONCURRENCY = 4;
const DEFAULT_RECORDS_PER_REQUEST = 5000;
const DEFAULT_BYTES_PER_REQUEST = 8 * 1024 * 1024;
const DEFAULT_PAGE_RECORDS = 1000;

export class HeadgateClient {
  readonly #connection: Connection;
  readonly #concurrency: number;
  readonly #maxRecordsPerRequest: number;
  readonly #maxBytesPerRequest: number;
  readonly #compression: 'gzip' | null;

  constructor(options: ClientOptions) {
    this.#connection = new Connection(options);
    this.#concurrency = countFrom('concurrency', options.concurrency, DEFAULT_CONCURRENCY);
    this.#maxRecordsPerRequest = countFrom(
      'maxRecordsPerRequest',
      options.maxRecordsPerRequest,
      DEFAULT_RECORDS_PER_REQUEST,
    );
    this.#maxBytesPerRequest = countFrom(
      'maxBytesPerRequest',
      options.maxBytesPerRequest,
      DEFAULT_BYTES_PER_REQUEST,
    );
    this.#compression = checkedCompression(options.compression);
  }

  /**
   * Uploads any number of records, in as many requests as it takes, and tells what became of them. Of records with the
   * same id the later one stays. Rejected records do not stop an upload; what does is thrown as an
   * UploadInterruptedError.
   */
  async upload<T extends RecordTypeName>(
    type: T,
    records: Iterable<SentRecord<T>> | AsyncIterable<SentRecord<T>>,
    options: UploadOptions<T> = {},
  ): Promise<UploadResult> {
    const limits = {
      concurrency: countFrom('concurrency', options.concurrency, this.#concurrency),
      records: this.#maxRecordsPerRequest,
      bytes: this.#maxBytesPerRequest,
    };
    const upload = new Upload(this.#connection, type, records, limits, this.#compression, options);
    return upload.run();
  }

  /** Records one interaction, once, and answers it as it is stored. */
  async record(interaction: SentInteraction, options: RecordOptions = {}): Promise<ShownInteraction> {
    const { idempotencyKey, lenient, ...others } = options;
    return this.#connection.call({
      path: 'user-interactions',
      body: new TextEncoder().encode(JSON.stringify(interaction) ?? 'null'),
      idempotencyKey: idempotencyKey === undefined ? randomKey() : checkedIdempotencyKey(idempotencyKey),
      lenient,
      read: readRecorded,
      ...others,
    });
  }

  /** One record; null where there is none with this id. */
  async get<T extends RecordTypeName>(
    type: T,
    id: string,
    options: ReadOptions = {},
  ): Promise<ShownRecord<T> | null> {
    // The server's 404 means both that there is no such record and no such type.
    if (!uploadOrder.includes(type))
      throw new TypeError(`${type} is no record type; there are ${uploadOrder.join(', ')}`);
    const path = `v1/data/${type}/${encodeURIComponent(id)}`;
    return this.#connection.call({ path, read: recordReader(type), ...options });
  }

  /** All records of a type in the order of their ids, page by page as they are taken. */
  list<T extends RecordTypeName>(type: T, options: ListOptions = {}): AsyncIterable<ShownRecord<T>> {
    const { includeDeleted = false, pageSize, ...others } = options;
    const path = `v1/data/${encodeURIComponent(type)}`;
    const query = { limit: limitFrom(pageSize), ...(includeDeleted ? { include_deleted: 'true' } : {}) };
    return this.#pages({ path, query, read: readRecordsPage<T>, ...others });
  }

  /** One interaction; null where there is none with this id. */
  getInteraction(id: string, options: ReadOptions = {}): Promise<ShownInteraction | null> {
    const path = `user-interactions/${encodeURIComponent(id)}`;
    return this.#connection.call({ path, read: readInteraction, ...options });
  }

  /** Interactions, newest first, page by page as they are taken. */
  interactions(options: ListInteractionsOptions = {}): AsyncIterable<ShownInteraction> {
    const { pageSize, signal, onRetry, ...filters } = options;
    const query: Record<string, string> = { limit: limitFrom(pageSize) };
    for (const [name, value] of Object.entries(filters)) {
      if (value !== undefined) query[name] = filterText(name, value);
    }
    return this.#pages({ path: 'user-interactions', query, read: readInteractionsPage, signal, onRetry });
  }

  /** Only a missing cursor is the end: pages before it may be short or empty. */
  async *#pages<Item>(first: Call<Page<Item>>): AsyncIterable<Item> {
    let call = first;
    for (;;) {
      const { items, nextCursor } = await this.#connection.call(call);
      yield* items;
      if (nextCursor === null) return;
      call = { ...first, query: { ...first.query, cursor: nextCursor } };
    }
  }
}

/** How many of a page are asked for; the server says where it is too many. */
function limitFrom(pageSize: number | undefined): string {
  return String(countFrom('pageSize', pageSize, DEFAULT_PAGE_RECORDS));
}

function filterText(name: string, value: string | Date): string {
  if (typeof value === 'string') return value;
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
  const meant = name === 'from' || name === 'to' ? 'a date-time as text, or a valid Date' : 'text';
  throw new TypeError(`${name} must be ${meant}, not ${shown(value)}`);
}

function checkedCompression(given: 'gzip' | null | undefined): 'gzip' | null {
  const compression = given ?? null;
  if (compression === null || compression === 'gzip') return compression;
  throw new TypeError(`compression must be 'gzip' or null, not ${shown(compression)}`);
}
