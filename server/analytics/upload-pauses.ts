// Makes the replication yield to uploads: it pauses after work during which uploads arrived. The pauses are in
// proportion to the work and to the uploads, so the replication becomes slower but never stops, and a few small uploads
// hardly matter.

import { setTimeout as sleep } from 'node:timers/promises';
import type { LedgerSize, LedgerStore } from '../store/ledger.ts';

/** How long a pause lasts at most, compared with the work before it. */
const LONGEST_PAUSE_PER_WORK = 5;
/** Roughly the time that a store takes for an upload or interaction, and for each record that it stores. */
const UPLOAD_MS = 1;
const RECORD_MS = 0.02;

export class UploadPauses {
  readonly #store: Pick<LedgerStore, 'ledgerSize'>;
  readonly #signal: AbortSignal;
  readonly #undisturbedUntilMs: number;

  /** There are no pauses in the first `undisturbedMs`. The signal ends a pause. */
  constructor(store: Pick<LedgerStore, 'ledgerSize'>, undisturbedMs: number, signal: AbortSignal) {
    this.#store = store;
    this.#signal = signal;
    this.#undisturbedUntilMs = performance.now() + undisturbedMs;
  }

  /** Calls `work`. Resolves after a pause if uploads of any organisation arrived meanwhile. */
  async around(work: () => Promise<void>): Promise<void> {
    const before = await this.#store.ledgerSize();
    const beganAtMs = performance.now();
    await work();
    const nowMs = performance.now();
    if (nowMs < this.#undisturbedUntilMs) return;
    const workMs = nowMs - beganAtMs;
    const busy = Math.min(1, uploadMs(before, await this.#store.ledgerSize()) / workMs);
    if (busy === 0) return;
    await sleep(workMs * LONGEST_PAUSE_PER_WORK * busy, undefined, { signal: this.#signal }).catch(() => {});
  }
}

/** Returns roughly how long the store was busy with uploads between two looks at the ledger. Old entries may expire. */
function uploadMs(before: LedgerSize, after: LedgerSize): number {
  const ms = (after.entries - before.entries) * UPLOAD_MS + (after.ids - before.ids) * RECORD_MS;
  return Math.max(0, ms);
}
