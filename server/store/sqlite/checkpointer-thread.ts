// The thread that copies the write-ahead log into the database file whenever the writer asks for a pass. Copying blocks
// neither readers nor the writer.
//
// SQLite waits until the database file is on the disk only when it has copied all of the log. If the writer appends while
// the log is copied, this wait is left to the writer, which copies the rest before it restarts the log: it would wait for
// hundreds of megabytes. So a pass also copies what was appended meanwhile, until nothing is left.

import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { type CheckpointerData, GONE } from './checkpointer.ts';
import { FileWatch } from './file-identity.ts';

/** How often a pass copies. If uploads arrive without pause, something may be left each time. */
const MOST_COPIES = 5;

const { files, made } = workerData as CheckpointerData;
const watch = new FileWatch(files);

/**
 * Runs `work`, and marks the checkpointer as gone in shared memory if `work` throws. The event of the thread's end
 * would come too late for a writer that is blocked while it waits for a pass.
 */
function orSayGone<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    Atomics.store(made, 0, GONE);
    Atomics.notify(made, 0);
    throw error;
  }
}

const { copy, logFrames } = orSayGone(() => {
  watch.assertInPlace();
  const database = new DatabaseSync(files.path);
  database.exec('PRAGMA synchronous = FULL');
  return {
    copy: database.prepare('PRAGMA wal_checkpoint(PASSIVE)'),
    logFrames: database.prepare('PRAGMA wal_checkpoint(NOOP)'),
  };
});

function isAllCopied(): boolean {
  const frames = logFrames.get();
  return frames?.log === frames?.checkpointed;
}

function copyAll(): void {
  for (let copies = 0; copies < MOST_COPIES; copies++) {
    copy.get();
    if (isAllCopied()) return;
  }
}

parentPort!.on('message', () => {
  orSayGone(() => {
    // Checks the files before each pass, because the log of a replaced database would be copied into a file that the
    // log does not belong to.
    watch.assertInPlace();
    copyAll();
  });
  Atomics.add(made, 0, 1);
  Atomics.notify(made, 0);
});
