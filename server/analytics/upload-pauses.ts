// Makes the replication yield to uploads: it pauses after work during which uploads arrived. The pauses are in
// proportion to the work, so the replication becomes slower but never stops.

import { setTimeout as sleep } from 'node:timers/promises';
import type { LedgerSize, LedgerStore } from '../store/ledger.ts';

/** How long a pause lasts, compared with the work before it. */
const PAUSE_PER_WORK = 5;

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
    if (nowMs < this.#undisturbedUntilMs || isSame(before, await this.#store.ledgerSize())) return;
    const pauseMs = (nowMs - beganAtMs) * PAUSE_PER_WORK;
    await sleep(pauseMs, undefined, { signal: this.#signal }).catch(() => {});
  }
}

function isSame(before: LedgerSize, after: LedgerSize): boolean {
  return before.entries === after.entries && before.ids === after.ids;
}
