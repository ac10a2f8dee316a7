// Controls the checkpointer: the thread that copies the write-ahead log into the database file. The checkpointer's
// progress is in shared memory, because a writer that commits without pause would receive messages only after its next
// commit.

import type { Worker } from 'node:worker_threads';
import { startWorker } from '../../workers/supervised-worker.ts';
import type { OpenedFiles } from './file-identity.ts';

/**
 * The number of passes that the checkpointer has made, or GONE once the checkpointer has failed. The memory is shared
 * with the checkpointer's thread.
 */
export type PassesMade = Int32Array<SharedArrayBuffer>;
export const GONE = -1;

export interface CheckpointerData {
  readonly files: OpenedFiles;
  readonly made: PassesMade;
}

export class Checkpointer {
  readonly #worker: Worker;
  readonly #made: PassesMade = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #ordered = 0;
  #isClosing = false;

  /** Calls `whenGone` with the reason if the thread ends by itself. */
  constructor(files: OpenedFiles, whenGone: (reason: Error) => void) {
    const workerData: CheckpointerData = { files, made: this.#made };
    const { worker, ended } = startWorker(new URL('./checkpointer-thread.ts', import.meta.url), {
      workerData,
    });
    this.#worker = worker;
    worker.unref();
    void ended.then((reason) => {
      if (!this.#isClosing) whenGone(reason);
    });
  }

  /**
   * True once the thread has failed, so that the remaining passes will not run. `whenGone` is called later, after one
   * or more turns of the event loop.
   */
  get isGone(): boolean {
    return Atomics.load(this.#made, 0) === GONE;
  }

  get passesLeft(): number {
    return this.isGone ? 0 : this.#ordered - Atomics.load(this.#made, 0);
  }

  /** Queues one more pass. It copies what the log holds when it starts, and most of what is appended until it ends. */
  orderPass(): void {
    this.#ordered++;
    this.#worker.postMessage(null);
  }

  /** Blocks the calling thread until no pass is left, the checkpointer has failed, or the timeout is over. */
  waitForPasses(patienceMs: number): void {
    const deadlineMs = performance.now() + patienceMs;
    let made = Atomics.load(this.#made, 0);
    while (made !== GONE && made < this.#ordered && performance.now() < deadlineMs) {
      Atomics.wait(this.#made, 0, made, deadlineMs - performance.now());
      made = Atomics.load(this.#made, 0);
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#worker.terminate();
  }
}
