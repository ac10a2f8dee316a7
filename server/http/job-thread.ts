// The serving thread's end of a thread that does jobs for it: gives them out, gets their results back, and starts
// the thread again should a job ever bring it down.

import type { Transferable, WorkerOptions } from 'node:worker_threads';
import { StoreUnavailable } from '../store/store.ts';
import { SupervisedWorker, startWorker } from '../workers/supervised-worker.ts';

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

interface Waiting<Result> {
  resolve(result: Result): void;
  reject(error: Error): void;
}

/** The thread answers a message of jobs with messages of their results, as JobResult[]. */
export class JobThread<Result> {
  readonly #setup: JobThreadSetup;
  readonly #waiting = new Map<number, Waiting<Result>>();
  readonly #worker: SupervisedWorker;
  #lastId = 0;

  constructor(setup: JobThreadSetup) {
    this.#setup = setup;
    this.#worker = new SupervisedWorker({
      start: () => startWorker(setup.script, setup.dataOf()),
      onReady: (worker) => {
        worker.on('message', (results: readonly JobResult<Result>[]) => {
          for (const result of results) this.#settle(result);
        });
      },
      onLost: (reason) => this.#rejectAll(reason),
    });
    void this.#worker.open();
  }

  /** `post` is called with the new job's id, and has to see that it reaches the thread by `send`. */
  begin(post: (id: number) => void): Promise<Result> {
    if (this.#worker.running === null) {
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
    this.#worker.running?.postMessage(message, transferList);
  }

  /** Jobs that have been given and are not answered. */
  get jobs(): number {
    return this.#waiting.size;
  }

  close(): Promise<void> {
    return this.#worker.close();
  }

  #rejectAll(reason: Error): void {
    this.#setup.onDeath(reason);
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of lost) reject(reason);
  }

  #settle([id, result, bug]: JobResult<Result>): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) throw new Error(`the ${this.#setup.name} answered ${id}, which nobody asked`);
    this.#waiting.delete(id);
    if (bug === undefined) waiting.resolve(result as Result);
    else waiting.reject(new Error(`the ${this.#setup.name} failed: ${bug}`));
  }
}
