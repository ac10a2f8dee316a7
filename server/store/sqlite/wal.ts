// Keeps the write-ahead log from growing without end, and the copying of it into the database file away
// from the writer as far as can be.
//
// The checkpointer copies on a thread of its own while the writer goes on appending, so it never catches up
// entirely, and a log that is not copied to its end cannot start anew from its beginning. Once the log is
// over its limit and the checkpointer is done, the writer therefore copies the rest itself, between two
// commits.

import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import type { Tuning } from './tuning.ts';

/** A log of fewer rows than this is not worth looking at, least of all by a command that writes one key. */
const ROWS_BETWEEN_LOOKS = 1000;
const FRAME_HEADER_BYTES = 24;
/** How long the writer waits for readers of old pages to finish before it lets the log grow on. */
const READERS_PATIENCE_MS = 50;
/** Readers that take longer, such as an analyst's query, are not waited for again at once. */
const NEXT_TRY_MS = 1000;

export interface WalKeeper {
  afterCommit(rows: number): void;
  close(): Promise<void>;
}

export function keepWal(database: DatabaseSync, path: string, tuning: Tuning): WalKeeper {
  const pageBytes = Number(database.prepare('PRAGMA page_size').get()?.page_size);
  const frameBytes = pageBytes + FRAME_HEADER_BYTES;
  const look = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  let rowsSinceLook = 0;
  let checkpointer: Worker | null = null;
  let isCheckpointing = false;
  let nextTryAtMs = 0;

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
      nextTryAtMs = performance.now() + NEXT_TRY_MS;
    });
    worker.unref();
    return worker;
  };

  const copyRest = (): void => {
    database.exec(`PRAGMA busy_timeout = ${READERS_PATIENCE_MS}`);
    try {
      const result = database.prepare('PRAGMA wal_checkpoint(RESTART)').get();
      if (result?.busy !== 0) nextTryAtMs = performance.now() + NEXT_TRY_MS;
    } catch {
      // What hinders the copying (a full disk) will hinder a commit too, and its caller is told.
      nextTryAtMs = performance.now() + NEXT_TRY_MS;
    } finally {
      database.exec('PRAGMA busy_timeout = 0');
    }
  };

  return {
    afterCommit(rows) {
      rowsSinceLook += rows;
      if (rowsSinceLook < ROWS_BETWEEN_LOOKS || isCheckpointing || performance.now() < nextTryAtMs) return;
      rowsSinceLook = 0;
      const state = look.get();
      const walBytes = Number(state?.log) * frameBytes;
      const copiedBytes = Number(state?.checkpointed) * frameBytes;
      if (walBytes > tuning.walLimitBytes) copyRest();
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
