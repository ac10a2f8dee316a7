// The serving thread's end of the ingest thread: hands over work and bytes, gets answers back, and starts
// the thread again should a body ever bring it down.

import { Worker } from 'node:worker_threads';
import type { UploadLimits } from '../ingest/upload.ts';
import { type OpenedStore, transferablesOf } from '../store/open-store.ts';
import { StoreUnavailable } from '../store/store.ts';
import type { Answer } from './answers.ts';
import type { IngestThreadData, Job, JobDone, Work } from './ingest-thread.ts';
import type { Body } from './read-body.ts';

/** Long enough that a thread that dies at its start does not take the machine with it. */
const RESTART_AFTER_MS = 200;

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

export class IngestClient {
  readonly #store: OpenedStore;
  readonly #limits: UploadLimits;
  readonly #maxBodyBytes: number;
  readonly #onDeath: (error: Error) => void;
  readonly #waiting = new Map<number, Waiting>();
  /** Null between the end of a thread and the start of its successor. */
  #thread: Worker | null;
  #lastId = 0;
  #closing = false;

  constructor(
    store: OpenedStore,
    limits: UploadLimits,
    maxBodyBytes: number,
    onDeath: (error: Error) => void,
  ) {
    this.#store = store;
    this.#limits = limits;
    this.#maxBodyBytes = maxBodyBytes;
    this.#onDeath = onDeath;
    this.#thread = this.#start();
  }

  /** Takes the body's bytes away: they are another thread's from now on. */
  answer(work: Work, body: Body): Promise<Answer> {
    const thread = this.#thread;
    if (thread === null)
      return Promise.reject(new StoreUnavailable('the ingest thread is being started again'));
    const job: Job = { id: ++this.#lastId, work, body };
    return new Promise((resolve, reject) => {
      this.#waiting.set(job.id, { resolve, reject });
      thread.postMessage(job, [body.bytes.buffer]);
    });
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const handle = this.#store.handle();
    const workerData: IngestThreadData = {
      store: handle,
      limits: this.#limits,
      maxBodyBytes: this.#maxBodyBytes,
    };
    const thread = new Worker(new URL('./ingest-thread.ts', import.meta.url), {
      workerData,
      transferList: transferablesOf(handle),
    });
    let cause = new Error('the ingest thread ended');
    thread.on('message', (done: JobDone) => this.#settle(done));
    thread.on('error', (error) => {
      cause = error instanceof Error ? error : new Error(String(error));
    });
    thread.on('exit', () => {
      if (this.#closing) return;
      this.#onDeath(cause);
      this.#thread = null;
      setTimeout(() => {
        if (!this.#closing) this.#thread = this.#start();
      }, RESTART_AFTER_MS);
      const lost = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const { reject } of lost) reject(cause);
    });
    return thread;
  }

  #settle(done: JobDone): void {
    const waiting = this.#waiting.get(done.id)!;
    this.#waiting.delete(done.id);
    if ('answer' in done) waiting.resolve(done.answer);
    else waiting.reject(new Error(`ingest failed: ${done.bug}`));
  }
}
