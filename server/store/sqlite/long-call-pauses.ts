// Makes an organisation pause after large calls that took long, for as long as they took. Otherwise the next large call
// would begin as soon as the small calls that already wait are done, and another organisation, whose requests follow one
// another, would wait for a large call each time.

import type { OrganisationNumber } from '../rows.ts';
import { isLarge, type Weighed } from './call-queue.ts';

const LONG_MS = 200;
/** How long after its last call an organisation counts as active. Nobody pauses unless another one is active. */
const ACTIVE_FOR_MS = 1000;

export class LongCallPauses {
  /** When a call of each organisation ended last, the oldest first. */
  readonly #lastEndedAtMs = new Map<OrganisationNumber, number>();
  #paused: { readonly organisations: ReadonlySet<OrganisationNumber>; readonly untilMs: number } | null =
    null;

  groupEnded(calls: readonly Weighed[], tookMs: number, nowMs: number): void {
    for (const { organisation } of calls) {
      if (organisation === null) continue;
      this.#lastEndedAtMs.delete(organisation);
      this.#lastEndedAtMs.set(organisation, nowMs);
    }
    for (const [organisation, endedAtMs] of this.#lastEndedAtMs) {
      if (endedAtMs + tookMs + ACTIVE_FOR_MS >= nowMs) break;
      this.#lastEndedAtMs.delete(organisation);
    }
    if (tookMs < LONG_MS || !calls.some(isLarge)) return;
    const organisations = new Set(calls.map(({ organisation }) => organisation!));
    this.#paused = { organisations, untilMs: nowMs + tookMs };
  }

  /** Returns whether a large call of the organisation has to wait. */
  isPausing(organisation: OrganisationNumber, nowMs: number): boolean {
    if (this.#paused === null) return false;
    const { organisations, untilMs } = this.#paused;
    if (nowMs >= untilMs) this.#paused = null;
    else if (organisations.has(organisation)) {
      return this.#lastEndedAtMs.keys().some((active) => !organisations.has(active));
    }
    return false;
  }
}
