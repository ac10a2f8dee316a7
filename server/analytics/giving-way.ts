// Lets orders go before the long ones of other organisations. While an organisation that had no order has one, the
// processes of those that have been busy for a while are suspended: for moments, and for at most half of the time. So a
// small query hardly waits for queries that use all processors.

import type { StartedReplicaProcess } from './started-replica-process.ts';

type Suspendable = Pick<StartedReplicaProcess, 'suspend' | 'resume'>;

/** The longest time for which a process is suspended, and the shortest for which it runs before that. */
const SUSPENDED_MS = 100;

interface Busy {
  runsSinceMs: number;
  suspension: { readonly for: Suspendable; readonly timer: NodeJS.Timeout } | null;
}

export class GivingWay {
  readonly #busy = new Map<Suspendable, Busy>();

  /** Call this when a process gets an order. If it had one already, nobody gives way. */
  begin(process: Suspendable): void {
    if (this.#busy.has(process)) return;
    const nowMs = performance.now();
    for (const [other, busy] of this.#busy) {
      if (busy.suspension !== null || nowMs - busy.runsSinceMs < SUSPENDED_MS) continue;
      other.suspend();
      const timer = setTimeout(() => this.#resume(other, busy), SUSPENDED_MS);
      busy.suspension = { for: process, timer };
    }
    this.#busy.set(process, { runsSinceMs: nowMs, suspension: null });
  }

  /** Call this when the process has no order any more. */
  end(process: Suspendable): void {
    for (const [other, busy] of this.#busy) {
      if (other === process || busy.suspension?.for === process) this.#resume(other, busy);
    }
    this.#busy.delete(process);
  }

  #resume(process: Suspendable, busy: Busy): void {
    if (busy.suspension === null) return;
    clearTimeout(busy.suspension.timer);
    busy.suspension = null;
    busy.runsSinceMs = performance.now();
    process.resume();
  }
}
