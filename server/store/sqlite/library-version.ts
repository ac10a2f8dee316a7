// Checks the version of SQLite that Node uses: its own, or the one of the system.

import { DatabaseSync } from 'node:sqlite';
import { StoreUnusable } from '../store.ts';

/**
 * In nearly all earlier releases, a commit at the moment in which the log restarts can lose earlier commits and damage
 * the file. The few earlier releases with the fix lack `wal_checkpoint(NOOP)`, which checks the log without copying it.
 */
const oldestSafe = [3, 51, 3] as const;

/** Asks the library itself, because Node only knows the version that it was built for. */
export function loadedSqlite(): string {
  const database = new DatabaseSync(':memory:');
  try {
    return String(database.prepare('SELECT sqlite_version() AS version').get()?.version);
  } finally {
    database.close();
  }
}

export function refuseUnsafeSqlite(version: string): void {
  const parts = version.split('.').map(Number);
  const differing = oldestSafe.findIndex((part, at) => parts[at] !== part);
  if (differing === -1 || parts[differing]! > oldestSafe[differing]!) return;
  throw new StoreUnusable(
    `Node ${process.versions.node} has SQLite ${version} here, which may lose committed rows; ` +
      `${oldestSafe.join('.')} or newer is needed: use a newer Node, or PostgreSQL`,
  );
}
