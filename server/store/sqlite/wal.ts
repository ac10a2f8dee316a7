// Keeps the write-ahead log from growing without end, and the copying of it into the database file away
// from the writer as far as can be.
//
// A log can start anew from its beginning only when all of it has been copied, and the checkpointer, on a thread of
// its own, never catches up with a writer that goes on appending. Once the log is over its limit the checkpointer
// therefore makes pass after pass, until only the last commit is missing, and the writer copies that itself before
// the next.

import type { DatabaseSync } from 'node:sqlite';
import { Checkpointer } from './checkpointer.ts';
import type { Tuning } from './tuning.ts';

/** A log of fewer rows than this is not worth looking at, least of all by a command that writes one key. */
const ROWS_BETWEEN_LOOKS = 1000;
const FRAME_HEADER_BYTES = 24;
/** How long the writer waits for readers of old pages to finish before it lets the log grow on. */
const READERS_PATIENCE_MS = 100;
/** A log this many times over its limit shows that the checkpointer is too slow: the writer has to wait for it. */
const OUTRUN_FACTOR = 2;
const CHECKPOINTER_PATIENCE_MS = 5000;
/** One under way and the next behind it, so that the checkpointer never waits for the writer's next look. */
const PASSES_IN_A_ROW = 2;
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
  let walBytesAtLook = 0;
  let checkpointer: Checkpointer | null = null;
  let pauseMs = FIRST_PAUSE_MS;
  let nextTryAtMs = 0;

  const pauseAfterFailure = (): void => {
    nextTryAtMs = performance.now() + pauseMs;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  };

  const startCheckpointer = (): Checkpointer => {
    const started = new Checkpointer(path, () => {
      if (checkpointer === started) checkpointer = null;
      pauseAfterFailure();
    });
    return started;
  };

  /** False where readers of old pages, or another process's checkpoint, are in the way. */
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

  const startAnew = (): void => {
    checkpointer?.waitForPasses(CHECKPOINTER_PATIENCE_MS);
    if (copyRest()) pauseMs = FIRST_PAUSE_MS;
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
      const restBytes = walBytes - Number(state?.checkpointed) * frameBytes;
      const addedBytes = walBytes > walBytesAtLook ? walBytes - walBytesAtLook : walBytes;
      walBytesAtLook = walBytes;
      const isOverLimit = walBytes > tuning.walLimitBytes;
      const isAllButNewestCopied = restBytes <= addedBytes;
      const isOutrun = walBytes > OUTRUN_FACTOR * tuning.walLimitBytes;
      if (isOutrun || (isOverLimit && isAllButNewestCopied)) startAnew();
      else if (isOverLimit || restBytes > tuning.checkpointAfterBytes) {
        checkpointer ??= startCheckpointer();
        if (checkpointer.passesLeft < (isOverLimit ? PASSES_IN_A_ROW : 1)) checkpointer.orderPass();
      }
    },

    async close() {
      await checkpointer?.close();
    },
  };
}
