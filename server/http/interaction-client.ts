// The serving thread's end of the interaction thread. Interactions are small and many: those of one event-loop turn
// travel in one message, their bodies packed into one buffer, because a message for each would cost more than the
// work.

import type { InteractionRequest } from '../ingest/interaction.ts';
import { newWriteCount } from '../observe/work-watch.ts';
import { type OpenedStore, transferablesOf } from '../store/open-store.ts';
import type { Answer } from './answers.ts';
import type { InteractionJob, InteractionMessage, InteractionThreadData } from './interaction-thread.ts';
import { JobThread } from './job-thread.ts';

/**
 * A turn can bring in the next interaction of every connection. Were they all handed over at its end, this thread
 * would be idle until all are committed, and the others until the next turn's end.
 */
const MOST_JOBS_PER_MESSAGE = 16;
/** Where a body begins in the buffer, so that it can be read four bytes at a time. */
const ALIGNMENT_BYTES = 4;

export class InteractionClient {
  readonly #thread: JobThread<Answer>;
  #writeCount = newWriteCount();
  #jobs: InteractionJob[] = [];
  #bodies: Uint8Array[] = [];
  #packedBytes = 0;
  #flushing: NodeJS.Immediate | undefined;

  constructor(store: OpenedStore, isTraced: boolean, onDeath: (error: Error) => void) {
    this.#thread = new JobThread<Answer>({
      name: 'interaction',
      script: new URL('./interaction-thread.ts', import.meta.url),
      dataOf: () => {
        // A thread that died takes what it was writing with it; its successor counts from 0.
        this.#writeCount = newWriteCount();
        const writeCount = this.#writeCount;
        const handle = store.handle();
        const workerData: InteractionThreadData = { store: handle, writeCount, isTraced };
        return { workerData, transferList: transferablesOf(handle) };
      },
      onDeath,
    });
  }

  answer({ requestId, organisation, handling, idempotency, body }: InteractionRequest): Promise<Answer> {
    return this.#thread.begin((id) => {
      const start = this.#packedBytes;
      this.#packedBytes += Math.ceil(body.byteLength / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
      this.#bodies.push(body);
      this.#jobs.push([id, requestId, organisation, handling, idempotency, start, body.byteLength]);
      if (this.#jobs.length === 1) this.#flushing = setImmediate(() => this.#flush());
      else if (this.#jobs.length === MOST_JOBS_PER_MESSAGE) this.#flush();
    });
  }

  get jobs(): number {
    return this.#thread.jobs;
  }

  /** Writes that the store has been asked for and that are not durable yet. */
  get writes(): number {
    return Atomics.load(this.#writeCount, 0);
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #flush(): void {
    clearImmediate(this.#flushing);
    const bytes = new Uint8Array(this.#packedBytes);
    for (const [at, body] of this.#bodies.entries()) bytes.set(body, this.#jobs[at]![5]);
    const message: InteractionMessage = { jobsJson: JSON.stringify(this.#jobs), bytes };
    this.#jobs = [];
    this.#bodies = [];
    this.#packedBytes = 0;
    this.#thread.send(message, [bytes.buffer]);
  }
}
