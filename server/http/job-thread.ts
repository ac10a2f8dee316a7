// The serving thread's end of a thread that does jobs for it: gives them out, gets their results back, and starts
// the thread again should a job ever bring it down.

import { type Transferable, Worker, type WorkerOptions } from 'node:worker_threads';
import { StoreUnavailable } from '../store/store.ts';

/** `bug`: the job threw, which nothing a client sends should make it do. */
export type JobResult<Result> =
  | readonly [id: number, result: Result]
  | readonly [id: number, result: null, bug: string];

/** What a result tells of an error that nobody expected. */
export function bugOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

export interface JobThreadSetup {
  /** For messages: "the … ended". */
  readonly name: string;
  readonly script: URL;
  /** Made anew for every start. */
  dataOf(): WorkerOptions & { readonly workerData: unknown; transferList: Transferable[] };
  /** Told when the thread has ended by itself; it is being started again then. */
  onDeath(error: Error): void;
}

/** Long enough that a thread that dies at its start does not take the machine with it. */
const RESTART_AFTER_MS = 200;

interface Waiting<Result> {
  resolve(result: Result): void;
  reject(error: Error): void;
}

/** The thread answers a message of jobs with messages of their results, as JobResult[]. */
export class JobThread<Result> {
  readonly #setup: JobThreadSetup;
  readonly #waiting = new Map<number, Waiting<Result>>();
  /** Null between the end of a thread and the start of its successor. */
  #thread: Worker | null;
  #lastId = 0;
  #closing = false;

  constructor(setup: JobThreadSetup) {
    this.#setup = setup;
    this.#thread = this.#start();
  }

  /** `post` is called with the new job's id, and has to see that it reaches the thread by `send`. */
  begin(post: (id: number) => void): Promise<Result> {
    if (this.#thread === null) {
      return Promise.reject(new StoreUnavailable(`the ${this.#setup.name} is being started again`));
    }
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      post(id);
    });
  }

  /** What is sent while there is no thread is lost: its jobs have been rejected. */
  send(message: unknown, transferList: readonly Transferable[]): void {
    this.#thread?.postMessage(message, transferList);
  }

  /** Jobs that have been given and are not answered. */
  get jobs(): number {
    return this.#waiting.size;
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const { name, script, dataOf, onDeath } = this.#setup;
    const thread = new Worker(script, dataOf());
    let cause = new Error(`the ${name} ended`);
    thread.on('message', (results: readonly JobResult<Result>[]) => {
      for (const result of results) this.#settle(result);
    });
    thread.on('error', (error) => {
      cause = error instanceof Error ? error : new Error(String(error));
    });
    thread.on('exit', () => {
      if (this.#closing) return;
      onDeath(cause);
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

  #settle([id, result, bug]: JobResult<Result>): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) throw new Error(`the ${this.#setup.name} answered ${id}, which nobody asked`);
    this.#waiting.delete(id);
    if (bug === undefined) waiting.resolve(result as Result);
    else waiting.reject(new Error(`the ${this.#setup.name} failed: ${bug}`));
  }
}
