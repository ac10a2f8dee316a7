// Lets orders go before the long ones of other organisations. While an organisation has an order that has just begun, the
// processes that were busy before it are suspended half of the time. So a small query hardly waits for queries that use
// all processors.

import type { StartedReplicaProcess } from './started-replica-process.ts';

type Suspendable = Pick<StartedReplicaProcess, 'suspend' | 'resume'>;

/** The longest time for which a process is suspended, and the shortest for which it runs before that. */
const TURN_MS = 100;
/** For how long others give way to an order. One that takes longer is a long one itself. */
const GIVE_WAY_FOR_MS = 1000;

interface Busy {
  readonly sinceMs: number;
  isSuspended: boolean;
  /** When it was last resumed, or else became busy. */
  runsSinceMs: number;
  timer: NodeJS.Timeout | undefined;
}

export class GivingWay {
  readonly #busy = new Map<Suspendable, Busy>();

  /** Call this when a process gets an order. If it had one already, this changes nothing. */
  begin(process: Suspendable): void {
    if (this.#busy.has(process)) return;
    const nowMs = performance.now();
    this.#busy.set(process, { sinceMs: nowMs, isSuspended: false, runsSinceMs: nowMs, timer: undefined });
    for (const [other, busy] of this.#busy) this.#giveWay(other, busy);
  }

  /** Call this when the process has no order any more. */
  end(process: Suspendable): void {
    const ended = this.#busy.get(process);
    if (ended === undefined) return;
    this.#busy.delete(process);
    this.#resume(process, ended);
    for (const [other, busy] of this.#busy) if (!this.#mustGiveWay(busy)) this.#resume(other, busy);
  }

  /** Suspends the process if it must give way, but only after it has run for a turn. */
  #giveWay(process: Suspendable, busy: Busy): void {
    if (busy.isSuspended || !this.#mustGiveWay(busy)) return;
    clearTimeout(busy.timer);
    const turnEndsInMs = busy.runsSinceMs + TURN_MS - performance.now();
    if (turnEndsInMs > 0) {
      busy.timer = setTimeout(() => this.#giveWay(process, busy), turnEndsInMs);
      return;
    }
    process.suspend();
    busy.isSuspended = true;
    busy.timer = setTimeout(() => {
      this.#resume(process, busy);
      this.#giveWay(process, busy);
    }, TURN_MS);
  }

  #resume(process: Suspendable, busy: Busy): void {
    clearTimeout(busy.timer);
    if (!busy.isSuspended) return;
    busy.isSuspended = false;
    busy.runsSinceMs = performance.now();
    process.resume();
  }

  /** Returns whether another process got its order within the last second, and at least a turn after this one. */
  #mustGiveWay({ sinceMs }: Busy): boolean {
    const nowMs = performance.now();
    return [...this.#busy.values()].some(
      (other) => other.sinceMs - sinceMs >= TURN_MS && nowMs - other.sinceMs < GIVE_WAY_FOR_MS,
    );
  }
}
