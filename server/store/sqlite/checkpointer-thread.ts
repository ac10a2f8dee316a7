// Copies the write-ahead log into the database file whenever the writer asks, without hindering anyone.

import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { PassesEnded } from './checkpointer.ts';

const { path, ended } = workerData as { readonly path: string; readonly ended: PassesEnded };
const database = new DatabaseSync(path);
database.exec('PRAGMA synchronous = FULL');
const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)');

parentPort!.on('message', () => {
  try {
    checkpoint.get();
  } finally {
    Atomics.add(ended, 0, 1);
    Atomics.notify(ended, 0);
  }
});
