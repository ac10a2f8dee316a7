// The thread that copies the write-ahead log into the database file whenever the writer asks. It blocks neither readers
// nor the writer.

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { type CheckpointerData, GONE } from './checkpointer.ts';
import { FileWatch } from './file-identity.ts';

const { files, made } = workerData as CheckpointerData;
const watch = new FileWatch(files);

/**
 * Marks the checkpointer as gone if `work` throws. The writer may be blocked in a wait, and receives the event of the
 * thread's end only afterwards.
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
    // If the file was replaced, the log would be copied into a file that it does not belong to.
    watch.assertInPlace();
    checkpoint.get();
  });
  Atomics.add(made, 0, 1);
  Atomics.notify(made, 0);
});
