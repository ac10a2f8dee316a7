// What all our connections to a SQLite file share: how a lock is waited for, and what its errors mean.

import { StoreUnavailable, StoreUnusable } from '../store.ts';

/** SQLite's primary result codes that tell of the disk, the file or another process, not of a mistake of ours. */
const unavailableCodes: ReadonlySet<number> = new Set([
  3, // PERM
  4, // ABORT
  5, // BUSY
  6, // LOCKED
  7, // NOMEM
  8, // READONLY
  9, // INTERRUPT
  10, // IOERR
  11, // CORRUPT
  13, // FULL
  14, // CANTOPEN
  15, // PROTOCOL
  22, // NOLFS
  26, // NOTADB
]);
const BUSY = 5;
const FULL = 13;
const NOT_A_DATABASE = 26;
/** While a file is opened these will not pass by themselves: PERM, READONLY, CORRUPT, CANTOPEN, NOLFS. */
const unusableCodes: ReadonlySet<number> = new Set([3, 8, 11, 14, 22]);

const LOCK_PATIENCE_MS = 30_000;
const LOCK_RETRY_MS = 1;

function primaryCodeOf(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null;
  return error.errcode & 0xff;
}

export function isBusy(error: unknown): boolean {
  return primaryCodeOf(error) === BUSY;
}

export function isFull(error: unknown): boolean {
  return primaryCodeOf(error) === FULL;
}

/** The error as callers of the store know it. Anything but a fault of disk, file or lock stays what it is. */
export function asStoreError(error: unknown): Error {
  const code = primaryCodeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (code === BUSY) {
    return new StoreUnavailable(`another process has kept the database locked: ${message}`);
  }
  if (code !== null && unavailableCodes.has(code)) return new StoreUnavailable(message);
  return error instanceof Error ? error : new Error(message);
}

/** The error of opening the file, as the operator should read it. */
export function asOpeningError(path: string, error: unknown): Error {
  const code = primaryCodeOf(error);
  if (code === NOT_A_DATABASE) return new StoreUnusable(`${path} is not a SQLite database`);
  const message = error instanceof Error ? error.message : String(error);
  if (code !== null && unusableCodes.has(code)) {
    return new StoreUnusable(`the database ${path} cannot be opened for writing: ${message}`);
  }
  return asStoreError(error);
}

const neverWoken = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the thread; only for threads that have nothing else to do. */
export function sleep(ms: number): void {
  Atomics.wait(neverWoken, 0, 0, ms);
}

/**
 * Tries until no other process is in the way. SQLite's own busy handler backs off to pauses of 100 ms and
 * starves beside a server that commits without pause; trying each millisecond finds the gaps it leaves.
 */
export function retryWhileLocked<T>(attempt: () => T, patienceMs: number = LOCK_PATIENCE_MS): T {
  const deadlineMs = performance.now() + patienceMs;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadlineMs) throw error;
      sleep(LOCK_RETRY_MS);
    }
  }
}
