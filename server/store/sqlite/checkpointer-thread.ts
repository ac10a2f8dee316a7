// Copies the write-ahead log into the database file whenever the writer asks, without hindering anyone.

import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { PassesMade } from './checkpointer.ts';

const { path, made } = workerData as { readonly path: string; readonly made: PassesMade };
const database = new DatabaseSync(path);
database.exec('PRAGMA synchronous = FULL');
const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)');

parentPort!.on('message', () => {
  try {
    checkpoint.get();
  } finally {
    Atomics.add(made, 0, 1);
    Atomics.notify(made, 0);
  }
});
