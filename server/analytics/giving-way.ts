// Lets orders go before the long ones of other organisations. While an organisation has an order that has just begun, the
// processes that were busy before it are suspended half of the time. So a small query hardly waits for queries that use
// all processors.

import type { StartedReplicaProcess } from './started-replica-process.ts';

type Suspendable = Pick<StartedReplicaProcess, 'suspend' | 'resume'>;

/** How long a process is suspended, and how long it runs before that. */
const TURN_MS = 100;
/** An order that takes longer is a long one itself. */
const GIVEN_WAY_FOR_MS = 1000;

interface Busy {
  readonly sinceMs: number;
  isSuspended: boolean;
  /** When it was last resumed, or else became busy. */
  runsSinceMs: number;
  timer: NodeJS.Timeout | undefined;
}

export class GivingWay {
  readonly #busy = new Map<Suspendable, Busy>();

  /** Call this when a process gets an order. If it had one already, nobody gives way. */
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
    clearTimeout(ended.timer);
    if (ended.isSuspended) process.resume();
    this.#busy.delete(process);
    for (const [other, busy] of this.#busy) {
      if (busy.isSuspended && !this.#mustGiveWay(busy)) this.#resume(other, busy);
    }
  }

  /** Suspends the process now or when it has had its turn, if it must give way. */
  #giveWay(process: Suspendable, busy: Busy): void {
    if (busy.isSuspended || !this.#mustGiveWay(busy)) return;
    const turnEndsInMs = busy.runsSinceMs + TURN_MS - performance.now();
    clearTimeout(busy.timer);
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
    busy.isSuspended = false;
    busy.runsSinceMs = performance.now();
    process.resume();
  }

  /** Returns whether another organisation has an order that has just begun, and began later by a turn or more. */
  #mustGiveWay({ sinceMs }: Busy): boolean {
    const afterMs = Math.max(sinceMs + TURN_MS, performance.now() - GIVEN_WAY_FOR_MS);
    return [...this.#busy.values()].some((other) => other.sinceMs >= afterMs);
  }
}
