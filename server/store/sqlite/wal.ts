// Keeps the write-ahead log from growing without end, and the copying of it into the database file away
// from the writer as far as can be.
//
// The checkpointer copies on a thread of its own while the writer goes on appending, so it never catches up
// entirely, and a log that is not copied to its end cannot start anew from its beginning. Once the log is
// over its limit and the checkpointer is done, the writer therefore copies the rest itself, between two
// commits.

import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { sleep } from './database.ts';
import type { Tuning } from './tuning.ts';

/** A log of fewer rows than this is not worth looking at, least of all by a command that writes one key. */
const ROWS_BETWEEN_LOOKS = 1000;
const FRAME_HEADER_BYTES = 24;
/** How long the writer waits for readers of old pages to finish before it lets the log grow on. */
const READERS_PATIENCE_MS = 100;
/** A log this many times over its limit shows that the checkpointer is too slow: the writer has to wait for it. */
const OUTRUN_FACTOR = 2;
const CHECKPOINTER_PATIENCE_MS = 5000;
const CHECKPOINTER_RETRY_MS = 5;
/** After a failure the next try comes after a pause, longer each time: an analyst's query may take minutes. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5000;

export interface WalKeeper {
  noteCommitted(rows: number): void;
  keepInBounds(): void;
  close(): Promise<void>;
}

export function keepWal(database: DatabaseSync, path: string, tuning: Tuning): WalKeeper {
  const pageBytes = Number(database.prepare('PRAGMA page_size').get()?.page_size);
  const frameBytes = pageBytes + FRAME_HEADER_BYTES;
  const look = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  let rowsSinceLook = 0;
  let checkpointer: Worker | null = null;
  let isCheckpointing = false;
  let pauseMs = FIRST_PAUSE_MS;
  let nextTryAtMs = 0;

  const pauseAfterFailure = (): void => {
    nextTryAtMs = performance.now() + pauseMs;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  };

  const startCheckpointer = (): Worker => {
    const worker = new Worker(new URL('./checkpointer-thread.ts', import.meta.url), { workerData: { path } });
    worker.on('message', () => {
      isCheckpointing = false;
    });
    // A checkpointer that fails leaves the log as it was: the next look starts another one.
    worker.on('error', () => {});
    worker.on('exit', () => {
      if (checkpointer === worker) checkpointer = null;
      isCheckpointing = false;
      pauseAfterFailure();
    });
    worker.unref();
    return worker;
  };

  /** False where readers of old pages, or another checkpoint, are in the way. */
  const copyRest = (): boolean => {
    database.exec(`PRAGMA busy_timeout = ${READERS_PATIENCE_MS}`);
    try {
      return database.prepare('PRAGMA wal_checkpoint(RESTART)').get()?.busy === 0;
    } catch {
      // What hinders the copying (a full disk) will hinder a commit too, and its caller is told.
      return false;
    } finally {
      database.exec('PRAGMA busy_timeout = 0');
    }
  };

  const startAnew = (patienceMs: number): void => {
    const deadlineMs = performance.now() + patienceMs;
    let isCopied = copyRest();
    while (!isCopied && performance.now() < deadlineMs) {
      sleep(CHECKPOINTER_RETRY_MS);
      isCopied = copyRest();
    }
    if (isCopied) pauseMs = FIRST_PAUSE_MS;
    else pauseAfterFailure();
  };

  return {
    noteCommitted(rows) {
      rowsSinceLook += rows;
    },

    keepInBounds() {
      if (rowsSinceLook < ROWS_BETWEEN_LOOKS || performance.now() < nextTryAtMs) return;
      rowsSinceLook = 0;
      const state = look.get();
      const walBytes = Number(state?.log) * frameBytes;
      const copiedBytes = Number(state?.checkpointed) * frameBytes;
      if (isCheckpointing) {
        if (walBytes > OUTRUN_FACTOR * tuning.walLimitBytes) startAnew(CHECKPOINTER_PATIENCE_MS);
      } else if (walBytes > tuning.walLimitBytes) startAnew(0);
      else if (walBytes - copiedBytes > tuning.checkpointAfterBytes) {
        checkpointer ??= startCheckpointer();
        isCheckpointing = true;
        checkpointer.postMessage('checkpoint');
      }
    },

    async close() {
      await checkpointer?.terminate();
    },
  };
}
