// Checks the version of the SQLite library that Node uses, which is either Node's own or the system's.

import { DatabaseSync } from 'node:sqlite';
import { StoreUnusable } from '../store.ts';

/**
 * The oldest release that is safe. Before 3.51.3, a commit at the moment in which the log restarts can lose earlier
 * commits and damage the file. Before 3.53, SQLite may shorten numbers to 15 digits when it writes JSON, which Headgate
 * uses to compare and to return records.
 */
const oldestSafe = [3, 53, 0] as const;

/** Returns the version that the library itself reports, because Node only knows the version that it was built for. */
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
    `Node ${process.versions.node} has SQLite ${version} here, which may lose committed rows or shorten numbers; ` +
      `${oldestSafe.join('.')} or newer is needed: use a newer Node, or PostgreSQL`,
  );
}
