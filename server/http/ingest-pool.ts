// The serving thread's interface to the two ingest threads: it sends them requests with their bodies, and receives the
// responses. Small requests have their own thread, so that they never wait while a large request is parsed. A separate
// message for each small request would cost more than the work for the request, so the small requests of one event-loop
// turn are sent together.

import type { Worker } from 'node:worker_threads';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { Handling } from '../ingest/check-fields.ts';
import type { IdempotencyKey } from '../ingest/idempotency.ts';
import type { UploadLimits } from '../ingest/take-upload.ts';
import type { ThreadLabel } from '../observe/metrics.ts';
import { newWriteCount } from '../observe/work-watch.ts';
import { type OpenedStore, transferablesOf } from '../store/open-store.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { StoreUnavailable } from '../store/store.ts';
import { ingestThreadLimits } from '../thread-memory.ts';
import { PendingCalls } from '../workers/pending-calls.ts';
import { type StartedWorker, SupervisedWorker, startWorker } from '../workers/supervised-worker.ts';
import type { Body } from './body/read-body.ts';
import { isSmall, SMALL_BODY_BYTES } from './body/small-body.ts';
import type { IngestResponse } from './ingest-responses.ts';
import type { IngestJob, IngestJobs, IngestThreadData, JobResult, ResponseSent } from './ingest-thread.ts';

export interface IngestRequest {
  readonly requestId: string;
  readonly organisation: OrganisationNumber;
  /** The type of the uploaded records; null for an interaction. */
  readonly type: UploadTypeName | null;
  readonly handling: Handling;
  readonly dryRun: boolean;
  readonly idempotency: IdempotencyKey | null;
  readonly keyId: string;
  readonly receivedAtMs: number;
}

export interface IngestOptions {
  readonly limits: UploadLimits;
  readonly maxBodyBytes: number;
  readonly isTraced: boolean;
  onDeath(thread: ThreadLabel, error: Error): void;
}

/**
 * The most requests in one message. In one event-loop turn, a request can arrive on every connection. If all of them
 * were sent in one message, the serving thread would be idle until all are committed, and the ingest threads would then
 * be idle until the end of the serving thread's next turn.
 */
const MOST_JOBS_PER_MESSAGE = 16;
/** In the buffer of a message, every body begins at a multiple of this, so that it can be read four bytes at a time. */
const ALIGNMENT_BYTES = 4;

/** The threads that have made large responses. */
const makers = new WeakMap<IngestResponse, Worker>();

export class IngestPool {
  readonly #threads: Readonly<Record<ThreadLabel, IngestThread>>;

  constructor(store: OpenedStore, options: IngestOptions) {
    const start = (label: ThreadLabel): IngestThread => new IngestThread(label, store, options);
    this.#threads = { small: start('small'), large: start('large') };
  }

  /** Resolves to the response. The body's bytes are transferred to another thread and must not be used afterwards. */
  respondTo(request: IngestRequest, body: Body): Promise<IngestResponse> {
    const { small, large } = this.#threads;
    const { bytes, encoding } = body;
    if (encoding === null)
      return (isSmall(bytes) ? small : large).respondTo(request, body) as Promise<IngestResponse>;
    return bytes.byteLength <= SMALL_BODY_BYTES
      ? this.#respondToPacked(request, body)
      : (large.respondTo(request, body) as Promise<IngestResponse>);
  }

  /**
   * Sends a compressed body to the thread for small requests first, because only decompression shows whether a body is
   * small. If it is not, a copy goes to the thread for large requests.
   */
  async #respondToPacked(request: IngestRequest, body: Body): Promise<IngestResponse> {
    const { small, large } = this.#threads;
    const copy = { ...body, bytes: new Uint8Array(body.bytes) };
    return (
      (await small.respondTo(request, body)) ?? (large.respondTo(request, copy) as Promise<IngestResponse>)
    );
  }

  /** Must be called when a large response has been sent, or its connection was closed. */
  noteSent(response: IngestResponse, sent: ResponseSent): void {
    makers.get(response)?.postMessage(sent);
  }

  /** Returns the number of requests that were sent to the thread and are not finished. */
  jobsAt(thread: ThreadLabel): number {
    return this.#threads[thread].jobs;
  }

  /** Returns the number of the thread's writes that are not durable yet. */
  writesOf(thread: ThreadLabel): number {
    return this.#threads[thread].writes;
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#threads).map((thread) => thread.close()));
  }
}

class IngestThread {
  readonly #name: string;
  readonly #worker: SupervisedWorker;
  readonly #pending = new PendingCalls<IngestResponse | null>();
  #writeCount = newWriteCount();
  #jobs: IngestJob[] = [];
  #bodies: Uint8Array[] = [];
  #packedBytes = 0;
  #flushing: NodeJS.Immediate | undefined;

  constructor(label: ThreadLabel, store: OpenedStore, options: IngestOptions) {
    this.#name = `ingest thread for ${label} requests`;
    this.#worker = new SupervisedWorker({
      start: () => this.#start(label, store, options),
      onReady: (worker) => {
        worker.on('message', (results: readonly JobResult[]) => {
          for (const result of results) this.#settle(result, worker);
        });
      },
      onLost: (reason) => {
        options.onDeath(label, reason);
        this.#pending.rejectAll(reason);
      },
    });
    void this.#worker.open();
  }

  #start(label: ThreadLabel, store: OpenedStore, options: IngestOptions): StartedWorker {
    const { limits, maxBodyBytes, isTraced } = options;
    // Every start gets a new count, because the count of a thread that ended would never fall to 0 again.
    this.#writeCount = newWriteCount();
    const writeCount = this.#writeCount;
    const handle = store.handle();
    const workerData: IngestThreadData = { label, store: handle, limits, maxBodyBytes, writeCount, isTraced };
    return startWorker(new URL('./ingest-thread.ts', import.meta.url), {
      workerData,
      transferList: transferablesOf(handle),
      ...(label === 'large' ? { resourceLimits: ingestThreadLimits[handle.kind] } : {}),
    });
  }

  #settle([id, response, bug]: JobResult, worker: Worker): void {
    if (response?.json instanceof Uint8Array) makers.set(response, worker);
    if (bug === undefined) this.#pending.resolve(id, response);
    else this.#pending.reject(id, new Error(`the ${this.#name} failed: ${bug}`));
  }

  /** Resolves to the response, or to null if this thread is for small requests and the body is too large for it. */
  respondTo(request: IngestRequest, { bytes, encoding }: Body): Promise<IngestResponse | null> {
    const { requestId, organisation, type, handling, dryRun, idempotency, keyId, receivedAtMs } = request;
    if (this.#worker.running === null) {
      return Promise.reject(new StoreUnavailable(`the ${this.#name} is being started again`));
    }
    const { id, promise } = this.#pending.begin(undefined);
    const travelsAlone = bytes.byteLength > SMALL_BODY_BYTES;
    if (travelsAlone) this.#flush();
    const start = this.#packedBytes;
    this.#packedBytes += Math.ceil(bytes.byteLength / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    this.#bodies.push(bytes);
    this.#jobs.push([
      id,
      requestId,
      organisation,
      type,
      handling,
      dryRun,
      idempotency,
      encoding,
      start,
      bytes.byteLength,
      keyId,
      receivedAtMs,
    ]);
    if (travelsAlone || this.#jobs.length === MOST_JOBS_PER_MESSAGE) this.#flush();
    else if (this.#jobs.length === 1) this.#flushing = setImmediate(() => this.#flush());
    return promise;
  }

  get jobs(): number {
    return this.#pending.size;
  }

  get writes(): number {
    return Atomics.load(this.#writeCount, 0);
  }

  close(): Promise<void> {
    return this.#worker.close();
  }

  #flush(): void {
    clearImmediate(this.#flushing);
    if (this.#jobs.length === 0) return;
    const bytes = this.#packed();
    const message: IngestJobs = { jobsJson: JSON.stringify(this.#jobs), bytes };
    this.#jobs = [];
    this.#bodies = [];
    this.#packedBytes = 0;
    // If the thread is not running, nothing is sent. The jobs have already been rejected.
    this.#worker.running?.postMessage(message, [bytes.buffer]);
  }

  /** Returns all bodies in one buffer. A single body that has its own buffer is not copied. */
  #packed(): Uint8Array<ArrayBuffer> {
    const [first] = this.#bodies as [Uint8Array<ArrayBuffer>];
    if (this.#bodies.length === 1 && first.byteLength === first.buffer.byteLength) return first;
    const bytes = new Uint8Array(this.#packedBytes);
    for (const [at, body] of this.#bodies.entries()) bytes.set(body, this.#jobs[at]![8]);
    return bytes;
  }
}
