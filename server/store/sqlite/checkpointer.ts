// Orders to the thread that copies the write-ahead log into the database file. How far it is can be seen without the event
// loop, which a writer that commits without pause reaches only after its next commit.

import { Worker } from 'node:worker_threads';

/** Passes of the log that a checkpointer has made, shared with its thread. */
export type PassesMade = Int32Array<SharedArrayBuffer>;

export class Checkpointer {
  readonly #worker: Worker;
  readonly #made: PassesMade = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #ordered = 0;

  /** A failure leaves the log as it was, and the orders that are left undone. */
  constructor(path: string, whenGone: () => void) {
    const workerData = { path, made: this.#made };
    this.#worker = new Worker(new URL('./checkpointer-thread.ts', import.meta.url), { workerData });
    this.#worker.on('error', () => {});
    this.#worker.on('exit', whenGone);
    this.#worker.unref();
  }

  get passesLeft(): number {
    return this.#ordered - Atomics.load(this.#made, 0);
  }

  /** One more pass, over all that the log holds when its turn comes. */
  orderPass(): void {
    this.#ordered++;
    this.#worker.postMessage(null);
  }

  /** Blocks the thread until all passes are made, or for so long. */
  waitForPasses(patienceMs: number): void {
    const deadlineMs = performance.now() + patienceMs;
    let made = Atomics.load(this.#made, 0);
    while (made < this.#ordered && performance.now() < deadlineMs) {
      Atomics.wait(this.#made, 0, made, deadlineMs - performance.now());
      made = Atomics.load(this.#made, 0);
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
