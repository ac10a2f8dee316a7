// Translates SQLite's errors, for all connections to a SQLite file.

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
