// The thread that copies the write-ahead log into the database file whenever the writer asks for a pass. Copying blocks
// neither readers nor the writer.

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { type CheckpointerData, GONE } from './checkpointer.ts';
import { FileWatch } from './file-identity.ts';

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

const checkpoint = orSayGone((): StatementSync => {
  watch.assertInPlace();
  const database = new DatabaseSync(files.path);
  database.exec('PRAGMA synchronous = FULL');
  return database.prepare('PRAGMA wal_checkpoint(PASSIVE)');
});

parentPort!.on('message', () => {
  orSayGone(() => {
    // Checks the files before each pass, because the log of a replaced database would be copied into a file that the
    // log does not belong to.
    watch.assertInPlace();
    checkpoint.get();
  });
  Atomics.add(made, 0, 1);
  Atomics.notify(made, 0);
});
