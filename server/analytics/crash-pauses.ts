// Pauses the analytics of an organisation for a while after its queries have ended their process, because to start
// processes and to fill memory again and again takes time that queries of others need.

import type { OrderRefusal } from './analytics-orders.ts';

const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 10 * 60_000;
/** How long after a pause the next one is twice as long. */
const REMEMBERED_MS = 5 * 60_000;

interface Pause {
  readonly lengthMs: number;
  readonly untilMs: number;
}

export class CrashPauses {
  readonly #nowMs: () => number;
  readonly #pauses = new Map<string, Pause>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Pauses the analytics of an organisation. Returns for how long. */
  pause(orgId: string): number {
    const nowMs = this.#nowMs();
    for (const [other, { untilMs }] of this.#pauses) {
      if (untilMs + REMEMBERED_MS <= nowMs) this.#pauses.delete(other);
    }
    const last = this.#pauses.get(orgId);
    const lengthMs = last === undefined ? FIRST_PAUSE_MS : Math.min(last.lengthMs * 2, LONGEST_PAUSE_MS);
    this.#pauses.set(orgId, { lengthMs, untilMs: nowMs + lengthMs });
    return lengthMs;
  }

  /** Returns why the organisation cannot use its replica at the moment, or null. */
  refusalOf(orgId: string): OrderRefusal | null {
    const pausedMs = (this.#pauses.get(orgId)?.untilMs ?? 0) - this.#nowMs();
    if (pausedMs <= 0) return null;
    const retryAfterS = Math.ceil(pausedMs / 1000);
    const message = `A query of this organisation ended the process that runs its queries: it probably needed too much memory, or could not be stopped. Analytics is paused for this organisation for ${retryAfterS} s. Change the query, or the condition of the segment, before you try again.`;
    return { kind: 'unavailable', message, position: null, retryAfterS };
  }
}
