// The serving thread's end of the ingest thread: hands over uploads with their bytes, gets answers back.

import type { UploadLimits } from '../ingest/upload.ts';
import { newWriteCount } from '../observe/work-watch.ts';
import { type OpenedStore, transferablesOf } from '../store/open-store.ts';
import { ingestThreadLimits } from '../thread-memory.ts';
import type { Answer } from './answers.ts';
import type { IngestJob, IngestThreadData, Work } from './ingest-thread.ts';
import { JobThread } from './job-thread.ts';
import type { Body } from './read-body.ts';

export class IngestClient {
  readonly #thread: JobThread<Answer>;
  #writeCount = newWriteCount();

  constructor(
    store: OpenedStore,
    limits: UploadLimits,
    maxBodyBytes: number,
    isTraced: boolean,
    onDeath: (error: Error) => void,
  ) {
    this.#thread = new JobThread<Answer>({
      name: 'ingest',
      script: new URL('./ingest-thread.ts', import.meta.url),
      dataOf: () => {
        // A thread that died takes what it was writing with it; its successor counts from 0.
        this.#writeCount = newWriteCount();
        const writeCount = this.#writeCount;
        const handle = store.handle();
        const workerData: IngestThreadData = { store: handle, limits, maxBodyBytes, writeCount, isTraced };
        return {
          workerData,
          transferList: transferablesOf(handle),
          resourceLimits: ingestThreadLimits[handle.kind],
        };
      },
      onDeath,
    });
  }

  /** Takes the body's bytes away: they are another thread's from now on. */
  answer(work: Work, { bytes: given, encoding }: Body): Promise<Answer> {
    const bytes = given.byteLength === given.buffer.byteLength ? given : new Uint8Array(given);
    return this.#thread.begin((id) => {
      const job: IngestJob = { id, work, body: { bytes, encoding } };
      this.#thread.send(job, [bytes.buffer]);
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
}
