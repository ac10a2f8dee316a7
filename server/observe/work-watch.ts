// Measures one request's work on the ingest thread. `WorkWatch` wraps the store and records when a write began and when
// it was durable.

import type { IdempotencyRecordKey, StoredResponse, Written } from '../store/idempotency-records.ts';
import type { InteractionWrite } from '../store/interactions.ts';
import type { Upload, UploadedRows } from '../store/records.ts';
import type { OrganisationNumber, Tally } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { WorkTimes } from './ended-request.ts';
import { epochMs } from './epoch-ms.ts';

type WatchedCalls = Pick<Store, 'storedResponse' | 'write' | 'dryRun' | 'writeInteraction' | 'entryNumber'>;

/** The number of an ingest thread's writes that are not durable yet. The memory is shared with the serving thread. */
export type WriteCount = Int32Array<SharedArrayBuffer>;

export function newWriteCount(): WriteCount {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

export class WorkWatch implements WatchedCalls {
  readonly #store: WatchedCalls;
  readonly #writeCount: WriteCount;
  readonly #beganAtMs = epochMs();
  #writeAskedAtMs = 0;
  #writtenAtMs = 0;

  constructor(store: WatchedCalls, writeCount: WriteCount) {
    this.#store = store;
    this.#writeCount = writeCount;
  }

  storedResponse(key: IdempotencyRecordKey, nowMs: number): Promise<StoredResponse | null> {
    return this.#store.storedResponse(key, nowMs);
  }

  entryNumber(organisation: OrganisationNumber, requestId: string): Promise<number | null> {
    return this.#store.entryNumber(organisation, requestId);
  }

  dryRun(upload: UploadedRows): Promise<readonly Tally[]> {
    return this.#store.dryRun(upload);
  }

  write(upload: Upload): Promise<Written> {
    this.#writeAskedAtMs = epochMs();
    return this.#whenDurable(this.#store.write(upload));
  }

  writeInteraction(write: InteractionWrite): Promise<Written> {
    this.#writeAskedAtMs = epochMs();
    return this.#whenDurable(this.#store.writeInteraction(write));
  }

  /** Returns how long the write took, or null if nothing was written. */
  writeMs(): number | null {
    return this.#writtenAtMs === 0 ? null : this.#writtenAtMs - this.#writeAskedAtMs;
  }

  times(): WorkTimes {
    return {
      beganAtMs: this.#beganAtMs,
      writeAskedAtMs: this.#writeAskedAtMs,
      writtenAtMs: this.#writtenAtMs,
      endedAtMs: epochMs(),
    };
  }

  async #whenDurable(writing: Promise<Written>): Promise<Written> {
    Atomics.add(this.#writeCount, 0, 1);
    try {
      const written = await writing;
      this.#writtenAtMs = epochMs();
      return written;
    } finally {
      Atomics.sub(this.#writeCount, 0, 1);
    }
  }
}
