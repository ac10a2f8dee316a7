// Keeps the write-ahead log from growing without limit, and keeps as much of the copying into the database file as
// possible off the writer's thread.
//
// SQLite can restart the log from its beginning only when all of the log has been copied. The checkpointer copies on
// its own thread, but never catches up with a writer that keeps appending. Once the log is over its limit, the
// checkpointer therefore runs pass after pass, until only the part added since the last check is left. Then large
// uploads wait for one more pass, and the writer copies the part that small uploads have added in the meantime. So an
// upload never waits longer than it takes to copy about as much data as the upload itself adds.

import type { DatabaseSync } from 'node:sqlite';
import { Checkpointer } from './checkpointer.ts';
import type { OpenedFiles } from './file-identity.ts';
import type { Tuning } from './tuning.ts';

/** The log is checked only after this many rows, so that a command that writes one key does not pay for a check. */
const ROWS_BETWEEN_LOOKS = 1000;
const FRAME_HEADER_BYTES = 24;
/** How long the writer waits for readers of old pages to finish before it lets the log keep growing. */
const READERS_PATIENCE_MS = 100;
/** If the log is larger than this many times its limit, the checkpointer is too slow, and large uploads wait for it. */
const OUTRUN_FACTOR = 2;
/**
 * How long large uploads wait for the checkpointer at first. If a wait was too short, the next one may take twice as
 * long. On a disk that copies more slowly than it commits, uploads then slow down to the speed of the copying.
 */
const CHECKPOINTER_PATIENCE_MS = 500;
const LONGEST_CHECKPOINTER_PATIENCE_MS = 15_000;
/**
 * How many passes may be ordered at once: one runs and one is queued, so that the checkpointer never waits for the
 * writer's next check.
 */
const PASSES_IN_A_ROW = 2;
/**
 * The first and the longest pause before another attempt to restart the log. The pauses grow, because an analyst's
 * query may read old pages for minutes.
 */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5000;

export interface WalKeeper {
  noteCommitted(rows: number): void;
  keepInBounds(): void;
  /** Returns true while large uploads have to wait, because the log has to be copied before much is added to it. */
  isBehind(): boolean;
  /** Copies all of the log into the database file now. Returns false if the log cannot be copied. */
  copyAll(): boolean;
  close(): Promise<void>;
}

interface LogState {
  readonly walBytes: number;
  readonly copiedBytes: number;
  /** The size of the log at the last check. */
  readonly walBytesBefore: number;
}

export type Step = 'nothing' | 'copy' | 'wait for copying' | 'start anew';

export function stepFor(
  { walBytes, copiedBytes, walBytesBefore }: LogState,
  { checkpointAfterBytes, walLimitBytes }: Tuning,
): Step {
  const restBytes = walBytes - copiedBytes;
  if (walBytes <= walLimitBytes) return restBytes > checkpointAfterBytes ? 'copy' : 'nothing';
  // A log that has become smaller was restarted, so all of it is new.
  const addedBytes = walBytes >= walBytesBefore ? walBytes - walBytesBefore : walBytes;
  // If nothing was added, the log is unchanged since the last check, and there is no newest part for the writer to
  // copy.
  if (addedBytes > 0 && restBytes <= addedBytes) return 'start anew';
  if (restBytes === 0) return 'nothing';
  return walBytes > OUTRUN_FACTOR * walLimitBytes ? 'wait for copying' : 'copy';
}

/**
 * Returns how long the next wait for the checkpointer may take. `patienceMs` is the limit of the last wait, and
 * `wasEnough` is true if the checkpointer finished within it.
 */
export function patienceAfter(patienceMs: number, wasEnough: boolean): number {
  return wasEnough ? CHECKPOINTER_PATIENCE_MS : Math.min(2 * patienceMs, LONGEST_CHECKPOINTER_PATIENCE_MS);
}

/** Calls `reportTrouble` if the log cannot be copied, but not again before copying has succeeded. */
export function keepWal(
  database: DatabaseSync,
  files: OpenedFiles,
  tuning: Tuning,
  reportTrouble: (message: string) => void,
): WalKeeper {
  const pageBytes = Number(database.prepare('PRAGMA page_size').get()?.page_size);
  const frameBytes = pageBytes + FRAME_HEADER_BYTES;
  const logFrames = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  let rowsSinceLook = 0;
  let walBytesAtLook = Number(logFrames.get()?.log) * frameBytes;
  let checkpointer: Checkpointer | null = null;
  let nextCheckpointerAtMs = 0;
  let patienceMs = CHECKPOINTER_PATIENCE_MS;
  let isTroubled = false;
  let pauseMs = FIRST_PAUSE_MS;
  let nextRestartAtMs = 0;
  /** The current wait for the checkpointer's passes, or null. Small uploads continue during a wait. */
  let wait: { readonly untilMs: number; readonly whenOver: () => void } | null = null;

  const look = (): LogState => {
    const frames = logFrames.get();
    const walBytesBefore = walBytesAtLook;
    walBytesAtLook = Number(frames?.log) * frameBytes;
    const copiedBytes = Number(frames?.checkpointed) * frameBytes;
    if (copiedBytes === walBytesAtLook) isTroubled = false;
    return { walBytes: walBytesAtLook, copiedBytes, walBytesBefore };
  };

  const noteTrouble = (cause: unknown): void => {
    if (isTroubled) return;
    isTroubled = true;
    const message = cause instanceof Error ? cause.message : String(cause);
    reportTrouble(`the log of ${files.path} could not be copied into it; Headgate will retry: ${message}`);
  };

  const isCopying = (): boolean => (checkpointer?.passesLeft ?? 0) > 0;

  const noteWaited = (): void => {
    const wasEnough = !isCopying();
    if (!wasEnough && patienceMs === LONGEST_CHECKPOINTER_PATIENCE_MS) {
      noteTrouble(new Error('the disk copies the log more slowly than it commits'));
    }
    patienceMs = patienceAfter(patienceMs, wasEnough);
  };

  /**
   * Copies the rest of the log on this thread, so that the log can restart. Returns false if an error, readers of old
   * pages or a running checkpoint prevent this.
   */
  const copyRest = (): boolean => {
    database.exec(`PRAGMA busy_timeout = ${READERS_PATIENCE_MS}`);
    try {
      const isCopied = database.prepare('PRAGMA wal_checkpoint(RESTART)').get()?.busy === 0;
      if (isCopied) isTroubled = false;
      return isCopied;
    } catch (error) {
      noteTrouble(error);
      return false;
    } finally {
      database.exec('PRAGMA busy_timeout = 0');
    }
  };

  const mayStartAnew = (): boolean => performance.now() >= nextRestartAtMs;

  const startAnew = (): void => {
    if (copyRest()) pauseMs = FIRST_PAUSE_MS;
    else {
      nextRestartAtMs = performance.now() + pauseMs;
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  };

  const waitForCopying = (longestMs: number, whenOver: () => void): void => {
    wait = { untilMs: performance.now() + longestMs, whenOver };
    endWaiting();
  };

  const endWaiting = (): void => {
    if (wait === null || (isCopying() && performance.now() < wait.untilMs)) return;
    const { whenOver } = wait;
    wait = null;
    whenOver();
  };

  const copy = (passes: number): void => {
    if (checkpointer === null && performance.now() >= nextCheckpointerAtMs) {
      checkpointer = new Checkpointer(files, (reason) => {
        checkpointer = null;
        nextCheckpointerAtMs = performance.now() + LONGEST_PAUSE_MS;
        noteTrouble(reason);
      });
    }
    if (checkpointer !== null && checkpointer.passesLeft < passes) checkpointer.orderPass();
  };

  return {
    noteCommitted(rows) {
      rowsSinceLook += rows;
    },

    keepInBounds() {
      if (wait !== null || rowsSinceLook < ROWS_BETWEEN_LOOKS) return;
      rowsSinceLook = 0;
      const state = look();
      const step = stepFor(state, tuning);
      if (step === 'start anew' && mayStartAnew()) {
        copy(PASSES_IN_A_ROW);
        waitForCopying(CHECKPOINTER_PATIENCE_MS, startAnew);
      }
      if (step === 'copy') copy(state.walBytes > tuning.walLimitBytes ? PASSES_IN_A_ROW : 1);
      if (step === 'wait for copying') {
        copy(PASSES_IN_A_ROW);
        if (checkpointer !== null && !checkpointer.isGone) waitForCopying(patienceMs, noteWaited);
        // Without a checkpointer, the writer has to copy the log itself.
        else if (mayStartAnew()) startAnew();
      }
    },

    isBehind() {
      endWaiting();
      return wait !== null;
    },

    copyAll() {
      checkpointer?.waitForPasses(CHECKPOINTER_PATIENCE_MS);
      return copyRest();
    },

    async close() {
      await checkpointer?.close();
    },
  };
}
