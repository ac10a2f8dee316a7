// Copies the write-ahead log into the database file whenever the writer asks, without hindering anyone.

import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

const { path } = workerData as { readonly path: string };
const database = new DatabaseSync(path);
database.exec('PRAGMA synchronous = FULL');
const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)');

parentPort!.on('message', () => {
  checkpoint.get();
  parentPort!.postMessage('done');
});
