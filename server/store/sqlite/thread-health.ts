// Keeps the health of a store thread in memory that every thread can read. A health check therefore need not ask the
// thread itself, which may be busy for many seconds without having failed, for example with a long commit.

import type { ThreadService } from './thread-loop.ts';

export type ThreadHealth = Int32Array<SharedArrayBuffer>;

const IS_BUSY = 0;
/** The time of the last progress, in seconds of the process's monotonic clock, which all threads share. */
const PROGRESS_AT_S = 1;
const HAS_FAILED = 2;
const FIELDS = 3;

/**
 * A busy thread that makes no progress for longer than this counts as stalled. The writer waits equally long for the
 * locks of other processes, and no operation on a healthy disk takes this long.
 */
export const STALLED_AFTER_S = 30;

export function newThreadHealth(): ThreadHealth {
  return new Int32Array(new SharedArrayBuffer(FIELDS * Int32Array.BYTES_PER_ELEMENT));
}

/** Records the time of the last progress. Must be called at every step of a group of calls. */
export function noteProgress(health: ThreadHealth): void {
  Atomics.store(health, PROGRESS_AT_S, nowS());
}

export function noteFailed(health: ThreadHealth, hasFailed: boolean): void {
  Atomics.store(health, HAS_FAILED, hasFailed ? 1 : 0);
}

export function hasFailed(health: ThreadHealth): boolean {
  return Atomics.load(health, HAS_FAILED) === 1;
}

/** Returns how many seconds the thread has been at one step, or null if it is idle or not stalled. */
export function stalledForS(health: ThreadHealth, atS: number = nowS()): number | null {
  if (Atomics.load(health, IS_BUSY) === 0) return null;
  const stalledS = atS - Atomics.load(health, PROGRESS_AT_S);
  return stalledS > STALLED_AFTER_S ? stalledS : null;
}

/** Returns a service that does the same work, and records in `health` when it is busy and when it has made progress. */
export function withHealth(service: ThreadService, health: ThreadHealth): ThreadService {
  // A new thread must not inherit the health of its predecessor.
  health.fill(0);
  return {
    ...service,
    run(calls, isOtherWaiting) {
      noteProgress(health);
      Atomics.store(health, IS_BUSY, 1);
      return service.run(calls, isOtherWaiting);
    },
    betweenGroups() {
      noteProgress(health);
      service.betweenGroups();
      Atomics.store(health, IS_BUSY, 0);
    },
  };
}

function nowS(): number {
  return process.hrtime()[0];
}
