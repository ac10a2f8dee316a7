// Uploads an input of any length: cuts the input into slices, sends a few slices at the same time, and reports their
// results in the order of the input.

import { type Connection, type Control, newUuid, randomKey } from './connection.ts';
import { AbortedError, HeadgateError, RefusedError, UploadInterruptedError } from './errors.ts';
import type { Patience, RetryNotice } from './patience.ts';
import { keyFields, type SentUpload, type UploadTypeName } from './records.ts';
import { recordLimitIn, sumOf, type UploadResponse, uploadReader } from './responses.ts';
import type { Counts, UploadError, UploadResult, UploadWarning } from './result.ts';
import { jsonTextOf, type Slice, type SliceLimits, Slicer } from './slices.ts';

export interface RejectedRecord<T extends UploadTypeName> {
  readonly index: number;
  /** The same object that the caller passed in. */
  readonly record: SentUpload<T>;
  readonly errors: readonly UploadError[];
}

export interface UploadedSlice<T extends UploadTypeName> {
  /** The position in the input of the slice's first record. */
  readonly firstIndex: number;
  readonly count: number;
  readonly counts: Counts;
  readonly rejected: readonly RejectedRecord<T>[];
  readonly warnings: readonly UploadWarning[];
  readonly requestIds: readonly string[];
  /** The number of the last entry that the slice added to the ledger. Null in a dry run. */
  readonly lastSeq: number | null;
}

/** The totals so far. A record that is sent again, because the server could not store it, counts once. */
export interface UploadProgress extends Counts {
  /** The number of records sent, including those without a response yet. */
  readonly sent: number;
  /** The number of retries. */
  readonly retries: number;
}

export interface UploadOptions<T extends UploadTypeName = UploadTypeName> {
  /** Stores nothing. The result shows what an upload would have done. */
  dryRun?: boolean | undefined;
  /** Drops unknown fields and reports them as warnings, instead of rejecting the record. */
  lenient?: boolean | undefined;
  /** The number of parallel requests. Default: the client's option. */
  concurrency?: number | undefined;
  /** Aborts the upload and its requests at once. */
  signal?: AbortSignal | undefined;
  /** Called after each response, in any order, and awaited. */
  onProgress?: ((progress: UploadProgress) => void) | undefined;
  /**
   * Called for each slice, in the order of the input, and awaited. If this option is given, the errors, warnings and
   * request ids are passed to it and are not part of the result, so that memory use stays constant.
   */
  onSlice?: ((slice: UploadedSlice<T>) => void | Promise<void>) | undefined;
  /** Called before each pause that precedes a retry, and awaited. */
  onRetry?: ((retry: RetryNotice) => void) | undefined;
}

export interface UploadLimits extends SliceLimits {
  readonly concurrency: number;
}

/** The result of a slice, or of all slices so far. Indices are positions in the input. */
interface Outcome {
  counts: Counts;
  readonly errors: UploadError[];
  warnings: readonly UploadWarning[];
  readonly requestIds: string[];
  lastSeq: number | null;
}

/** A slice that is being sent. */
interface Sending<T extends UploadTypeName> {
  readonly slice: Slice<SentUpload<T>>;
  readonly signal: AbortSignal;
  readonly outcome: Outcome;
}

const noCounts: Counts = { received: 0, created: 0, updated: 0, unchanged: 0, rejected: 0 };

/**
 * The maximum number of slices in memory for each parallel request. It is more than 1, because a finished slice may
 * have to wait for an earlier one.
 */
const HELD_PER_REQUEST = 2;
const CONTENT_TOO_LARGE_STATUS = 413;

/** One upload. */
export class Upload<T extends UploadTypeName> {
  readonly #connection: Connection;
  readonly #type: T;
  readonly #slicer: Slicer<SentUpload<T>>;
  /** `records` and `bytes` are reduced if the server refuses a request as too large. */
  readonly #limits: { readonly concurrency: number; records: number; bytes: number };
  readonly #compression: 'gzip' | null;
  readonly #options: UploadOptions<T>;

  readonly #underway = new Map<number, AbortController>();
  /** The ids of the records in requests in flight. */
  readonly #ids = new Set<string>();
  #held = 0;
  /** Resolves when all slices so far are handed over, in the order of the input. */
  #handingOver: Promise<void> = Promise.resolve();
  #wake: () => void = () => {};

  #isStopped = false;
  /** The first failure in the order of the input. */
  #failure: { readonly error: unknown } | null = null;
  /** The first error that a callback threw. */
  #thrown: { readonly error: unknown } | null = null;

  readonly #progress = { sent: 0, retries: 0, ...noCounts };
  readonly #total = newOutcome();
  #nextIndex = 0;

  constructor(
    connection: Connection,
    type: T,
    records: Iterable<SentUpload<T>> | AsyncIterable<SentUpload<T>>,
    limits: UploadLimits,
    compression: 'gzip' | null,
    options: UploadOptions<T>,
  ) {
    this.#connection = connection;
    this.#type = type;
    this.#limits = { ...limits };
    this.#slicer = new Slicer(records, this.#limits, type === 'interactions' ? identifiedTextOf : jsonTextOf);
    this.#compression = compression;
    this.#options = options;
  }

  async run(): Promise<UploadResult> {
    const { signal } = this.#options;
    const abort = (): void => this.#stop(signal!.reason);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    let isWhole = false;
    let inputFailure: { readonly error: unknown } | null = null;
    try {
      isWhole = await this.#sendAll();
    } catch (error) {
      inputFailure = { error };
    }
    await this.#slicer.close();
    await this.#handingOver;
    signal?.removeEventListener('abort', abort);
    if (this.#thrown !== null) throw this.#thrown.error;
    const failure = this.#failure ?? inputFailure;
    if (failure !== null) throw this.#interrupted(failure.error);
    if (!isWhole) throw this.#interrupted(new AbortedError(signal!.reason));
    return this.#result();
  }

  /** Resolves to whether the whole input was sent. Throws the error of an input that cannot be read. */
  async #sendAll(): Promise<boolean> {
    for (;;) {
      await this.#until(() => this.#hasPlace());
      const next = this.#isStopped ? 'stopped' : await this.#read();
      if (next === null) return true;
      if (next === 'stopped') return false;
      const ids = this.#idsOf(next);
      // Parallel requests are stored in any order, so records with the same id must not be in flight together.
      if (ids.some((id) => this.#ids.has(id))) await this.#until(() => this.#underway.size === 0);
      if (this.#isStopped) return false;
      this.#start(next, ids);
    }
  }

  #hasPlace(): boolean {
    const { concurrency } = this.#limits;
    return this.#underway.size < concurrency && this.#held < concurrency * HELD_PER_REQUEST;
  }

  /** Resolves when the condition is true or the upload is stopped. */
  async #until(isSo: () => boolean): Promise<void> {
    while (!this.#isStopped && !isSo()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Resolves to the next slice. A stop resolves it to 'stopped' at once, because the input may never yield again. */
  #read(): Promise<Slice<SentUpload<T>> | null | 'stopped'> {
    return new Promise((resolve, reject) => {
      this.#wake = () => {
        if (this.#isStopped) resolve('stopped');
      };
      this.#slicer.next().then(resolve, reject);
    });
  }

  #idsOf({ records }: Slice<SentUpload<T>>): readonly string[] {
    if (this.#options.dryRun) return [];
    const ids: string[] = [];
    for (const record of records) {
      const id = this.#idOf(record);
      if (id !== null) ids.push(id.toLowerCase());
    }
    return ids;
  }

  /** Returns the id of a record, or null if it has none. The record may be any value, as the input is not checked. */
  #idOf(record: unknown): string | null {
    const id = (record as Readonly<Record<string, unknown>> | null | undefined)?.[keyFields[this.#type]];
    return typeof id === 'string' ? id : null;
  }

  #start(slice: Slice<SentUpload<T>>, ids: readonly string[]): void {
    const { firstIndex, records } = slice;
    const controller = new AbortController();
    this.#underway.set(firstIndex, controller);
    for (const id of ids) this.#ids.add(id);
    this.#held++;
    this.#progress.sent += records.length;
    const settled = this.#send(slice, controller.signal)
      .then(
        (outcome) => ({ outcome }),
        (error: unknown) => {
          this.#stop(undefined, firstIndex);
          return { error };
        },
      )
      .finally(() => {
        this.#underway.delete(firstIndex);
        slice.release();
        for (const id of ids) this.#ids.delete(id);
        this.#wake();
      });
    this.#handingOver = this.#handingOver.then(async () => {
      const result = await settled;
      if ('error' in result) this.#failure ??= result;
      else if (this.#failure === null && this.#thrown === null) await this.#handOver(slice, result.outcome);
      this.#held--;
      this.#wake();
    });
  }

  /** Starts no more requests, and aborts those for slices after the index. Requests for earlier slices may succeed. */
  #stop(reason: unknown, afterIndex = -1): void {
    this.#isStopped = true;
    for (const [firstIndex, controller] of this.#underway) {
      if (firstIndex > afterIndex) controller.abort(reason);
    }
    this.#wake();
  }

  async #send(slice: Slice<SentUpload<T>>, signal: AbortSignal): Promise<Outcome> {
    const outcome = newOutcome();
    await this.#sendPart({ slice, signal, outcome }, [...slice.records.keys()]);
    outcome.errors.sort((one, other) => one.index - other.index);
    return outcome;
  }

  /** Sends the records at these positions of the slice. Sends records again that the server could not store. */
  async #sendPart(sending: Sending<T>, positions: readonly number[]): Promise<void> {
    const patience = this.#connection.newPatience();
    const onRetry = (retry: RetryNotice): Promise<void> => this.#reportRetry(retry);
    const control = { signal: sending.signal, patience, onRetry };
    let open = positions;
    while (open.length > 0) {
      const { records: mostRecords } = this.#limits;
      if (open.length > mostRecords) return this.#sendInParts(sending, open, mostRecords);
      const body = sending.slice.bodyOf(open);
      const response = await this.#request(body, open.length, control);
      if (response === 'too large') {
        if (open.length === 1) return this.#settleTooLarge(sending, open[0]!);
        this.#limits.bytes = Math.min(this.#limits.bytes, Math.ceil(body.length / 2));
        return this.#sendInParts(sending, open, Math.ceil(open.length / 2));
      }
      if (response === 'too many') continue;
      open = await this.#settle(sending, open, response);
      if (open.length > 0) {
        const reason = `the server could not store ${open.length} of the records`;
        const failure = { reason, cause: new HeadgateError(reason), retryAfterMs: null };
        await this.#connection.pause(failure, control);
      }
    }
  }

  /** Sends the parts one after the other, because the last of several records with the same id must be stored last. */
  async #sendInParts(sending: Sending<T>, positions: readonly number[], mostRecords: number): Promise<void> {
    for (let from = 0; from < positions.length; from += mostRecords) {
      await this.#sendPart(sending, positions.slice(from, from + mostRecords));
    }
  }

  async #request(
    body: Uint8Array<ArrayBuffer>,
    recordCount: number,
    control: Control & { readonly patience: Patience },
  ): Promise<UploadResponse | 'too large' | 'too many'> {
    const { dryRun = false, lenient } = this.#options;
    const encoding = this.#compression;
    try {
      return await this.#connection.call({
        path: `v1/data/${encodeURIComponent(this.#type)}`,
        query: dryRun ? { dry_run: 'true' } : {},
        body: encoding === null ? body : await compressed(body, encoding),
        encoding,
        idempotencyKey: dryRun ? null : randomKey(),
        lenient,
        read: uploadReader(recordCount),
        ...control,
      });
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      if (error.status === CONTENT_TOO_LARGE_STATUS) return 'too large';
      const limit = recordLimitIn(error);
      // If the request did not exceed the limit, the error is thrown: sending the same request again would never end.
      if (limit === null || limit >= recordCount) throw error;
      this.#limits.records = Math.min(this.#limits.records, limit);
      return 'too many';
    }
  }

  /** Collects the final results, and returns the positions of the records to send again. */
  async #settle(
    { slice, outcome }: Sending<T>,
    positions: readonly number[],
    { requestId, seq, counts, errors, warnings }: UploadResponse,
  ): Promise<readonly number[]> {
    const finallyRejected = new Set(errors.filter(({ retryable }) => !retryable).map(({ index }) => index));
    const again = new Set<number>();
    for (const error of errors) {
      if (!finallyRejected.has(error.index)) again.add(error.index);
      else outcome.errors.push({ ...error, index: slice.firstIndex + positions[error.index]! });
    }
    outcome.requestIds.push(requestId);
    outcome.lastSeq = laterOf(outcome.lastSeq, seq);
    outcome.warnings = mergedWarnings(outcome.warnings, warnings);
    const received = counts.received - again.size;
    const rejected = counts.rejected - again.size;
    await this.#count(outcome, { ...counts, received, rejected });
    return [...again].sort((one, other) => one - other).map((index) => positions[index]!);
  }

  /** Rejects a record that is too large for a request of its own. */
  async #settleTooLarge({ slice, outcome }: Sending<T>, position: number): Promise<void> {
    outcome.errors.push({
      index: slice.firstIndex + position,
      id: this.#idOf(slice.records[position]),
      field: null,
      code: 'too_long',
      message: 'is larger than the maximum size of a request',
      retryable: false,
    });
    await this.#count(outcome, { ...noCounts, received: 1, rejected: 1 });
  }

  async #count(outcome: Outcome, counts: Counts): Promise<void> {
    outcome.counts = sumOf([outcome.counts, counts]);
    Object.assign(this.#progress, sumOf([this.#progress, counts]));
    await this.#callBack(() => this.#options.onProgress?.({ ...this.#progress }));
  }

  async #reportRetry(retry: RetryNotice): Promise<void> {
    this.#progress.retries++;
    await this.#callBack(() => this.#options.onRetry?.(retry));
  }

  /** Calls a function of the caller. If it throws, the upload stops, and `run` throws the same error. */
  async #callBack(call: () => void | Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.#thrown ??= { error };
      this.#stop(error);
      throw error;
    }
  }

  async #handOver(
    slice: Slice<SentUpload<T>>,
    { counts, errors, warnings, requestIds, lastSeq }: Outcome,
  ): Promise<void> {
    const { firstIndex, records } = slice;
    const total = this.#total;
    total.counts = sumOf([total.counts, counts]);
    total.lastSeq = laterOf(total.lastSeq, lastSeq);
    this.#nextIndex = firstIndex + records.length;
    const { onSlice } = this.#options;
    if (onSlice === undefined) {
      for (const error of errors) total.errors.push(error);
      total.warnings = mergedWarnings(total.warnings, warnings);
      total.requestIds.push(...requestIds);
      return;
    }
    const rejected = rejectedOf(slice, errors);
    const uploaded = { firstIndex, count: records.length, counts, rejected, warnings, requestIds, lastSeq };
    // `run` throws the error, so that later slices can still be settled.
    await this.#callBack(() => onSlice(uploaded)).catch(() => {});
  }

  #result(): UploadResult {
    return { type: this.#type, dryRun: this.#options.dryRun ?? false, ...this.#total };
  }

  #interrupted(cause: unknown): UploadInterruptedError {
    return new UploadInterruptedError(cause, this.#result(), this.#nextIndex);
  }
}

function newOutcome(): Outcome {
  return { counts: { ...noCounts }, errors: [], warnings: [], requestIds: [], lastSeq: null };
}

function laterOf(seq: number | null, other: number | null): number | null {
  return seq === null || other === null ? (seq ?? other) : Math.max(seq, other);
}

/** Returns the JSON of an interaction with an id, so that it is recorded only once even if it is sent several times. */
function identifiedTextOf(interaction: unknown): string {
  const text = jsonTextOf(interaction);
  const id = (interaction as Readonly<Record<string, unknown>> | null | undefined)?.interaction_id ?? null;
  if (id !== null || !text.startsWith('{')) return text;
  const value = JSON.parse(text) as Record<string, unknown>;
  return JSON.stringify({ ...value, interaction_id: value.interaction_id ?? newUuid() });
}

/** Returns the rejected records of a slice with their errors, which are sorted by index. */
function rejectedOf<T extends UploadTypeName>(
  { firstIndex, records }: Slice<SentUpload<T>>,
  errors: readonly UploadError[],
): readonly RejectedRecord<T>[] {
  const rejected: (RejectedRecord<T> & { readonly errors: UploadError[] })[] = [];
  for (const error of errors) {
    const { index } = error;
    if (rejected.at(-1)?.index !== index) {
      rejected.push({ index, record: records[index - firstIndex]!, errors: [] });
    }
    rejected.at(-1)!.errors.push(error);
  }
  return rejected;
}

/** Returns one warning for each field, with the counts added up. */
function mergedWarnings(
  known: readonly UploadWarning[],
  more: readonly UploadWarning[],
): readonly UploadWarning[] {
  if (more.length === 0) return known;
  const merged = new Map<string, UploadWarning>();
  for (const warning of [...known, ...more]) {
    const key = `${warning.code} ${warning.field}`;
    merged.set(key, { ...warning, count: warning.count + (merged.get(key)?.count ?? 0) });
  }
  return [...merged.values()];
}

async function compressed(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: 'gzip',
): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream(encoding));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
