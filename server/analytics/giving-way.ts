// Lets orders go before the long ones of other organisations. While an organisation that had no order has one, the
// processes of those that have been busy for a while are stopped: for at most half of the time, and only for moments. So
// a small query hardly waits for queries that use all processors, and these take hardly longer.

import type { StartedReplicaProcess } from './started-replica-process.ts';

type Stoppable = Pick<StartedReplicaProcess, 'stop' | 'continue'>;

/** The longest time for which a process is stopped, and the shortest for which it runs before that. */
const STOPPED_MS = 100;

interface Busy {
  runsSinceMs: number;
  stop: { readonly for: Stoppable; readonly timer: NodeJS.Timeout } | null;
}

export class GivingWay {
  readonly #busy = new Map<Stoppable, Busy>();

  /** Call this when a process gets an order. If it had one already, nobody gives way. */
  begin(process: Stoppable): void {
    if (this.#busy.has(process)) return;
    const nowMs = performance.now();
    for (const [other, busy] of this.#busy) {
      if (busy.stop !== null || nowMs - busy.runsSinceMs < STOPPED_MS) continue;
      other.stop();
      const timer = setTimeout(() => this.#continue(other, busy), STOPPED_MS);
      busy.stop = { for: process, timer };
    }
    this.#busy.set(process, { runsSinceMs: nowMs, stop: null });
  }

  /** Call this when the process has no order any more. */
  end(process: Stoppable): void {
    for (const [other, busy] of this.#busy) {
      if (other === process || busy.stop?.for === process) this.#continue(other, busy);
    }
    this.#busy.delete(process);
  }

  #continue(process: Stoppable, busy: Busy): void {
    if (busy.stop === null) return;
    clearTimeout(busy.stop.timer);
    busy.stop = null;
    busy.runsSinceMs = performance.now();
    process.continue();
  }
}
