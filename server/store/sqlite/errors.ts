// Waits for locks and translates SQLite's errors, for all connections to a SQLite file.

import { StoreUnavailable, StoreUnusable } from '../store.ts';

/** SQLite's primary result codes for problems with the disk, the file or another process, as opposed to bugs. */
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
/**
 * The codes of problems that are permanent if they occur while a file is opened: PERM, READONLY, CORRUPT, CANTOPEN,
 * NOLFS.
 */
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

/**
 * Returns the error that callers of the store handle. Any error that is not about the disk, the file or a lock is
 * returned unchanged.
 */
export function asStoreError(error: unknown): Error {
  const code = primaryCodeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (code === BUSY) {
    return new StoreUnavailable(`another process has kept the database locked: ${message}`);
  }
  if (code !== null && unavailableCodes.has(code)) return new StoreUnavailable(message);
  return error instanceof Error ? error : new Error(message);
}

/** Returns the error for a file that cannot be opened, with a message for the operator. */
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

/** Blocks the thread. Use it only in threads that have nothing else to do. */
export function sleep(ms: number): void {
  Atomics.wait(neverWoken, 0, 0, ms);
}

/**
 * Retries every millisecond while another process holds the lock, until the timeout. SQLite's own busy handler is not
 * used, because its pauses grow to 100 ms: it rarely finds the short gaps between the commits of a busy server.
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
