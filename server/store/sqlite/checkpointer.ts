// Orders to the thread that copies the write-ahead log into the database file. How far it is can be seen without the event
// loop, which a writer that commits without pause reaches only after its next commit.

import { Worker } from 'node:worker_threads';

/** Passes over the log that a checkpointer has ended, whatever came of them, shared with its thread. */
export type PassesEnded = Int32Array<SharedArrayBuffer>;

export class Checkpointer {
  readonly #worker: Worker;
  readonly #ended: PassesEnded = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #ordered = 0;

  /** `whenGone` is told why, unless it was closed. */
  constructor(path: string, whenGone: (cause: unknown) => void) {
    const workerData = { path, ended: this.#ended };
    this.#worker = new Worker(new URL('./checkpointer-thread.ts', import.meta.url), { workerData });
    let cause: unknown = null;
    this.#worker.on('error', (error) => {
      cause = error;
    });
    this.#worker.on('exit', () => whenGone(cause));
    this.#worker.unref();
  }

  get passesLeft(): number {
    return this.#ordered - Atomics.load(this.#ended, 0);
  }

  /** One more pass, over all that the log holds when its turn comes. */
  orderPass(): void {
    this.#ordered++;
    this.#worker.postMessage(null);
  }

  /** Blocks the calling thread until all passes have ended, or for so long. */
  waitForPasses(patienceMs: number): void {
    const deadlineMs = performance.now() + patienceMs;
    let ended = Atomics.load(this.#ended, 0);
    while (ended < this.#ordered && performance.now() < deadlineMs) {
      Atomics.wait(this.#ended, 0, ended, deadlineMs - performance.now());
      ended = Atomics.load(this.#ended, 0);
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
