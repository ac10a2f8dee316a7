// Holds the lock that every write of an answer needs, so that a test can look at a request while it is being written.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';

/** Resolves, once the lock is held, to the function that gives it back. */
export async function holdWrites(database: string): Promise<() => Promise<void>> {
  if (!/^postgres(ql)?:/.test(database)) {
    const connection = new DatabaseSync(database);
    connection.exec('BEGIN IMMEDIATE');
    return async () => {
      connection.exec('ROLLBACK');
      connection.close();
    };
  }
  const client = new pg.Client(database);
  await client.connect();
  await client.query('BEGIN; LOCK TABLE idempotency_answers IN EXCLUSIVE MODE');
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}
