// The SQLite that Node was built with, or that the system gives it.

import { DatabaseSync } from 'node:sqlite';
import { StoreUnusable } from '../store.ts';

/**
 * In nearly all releases before it a commit at the moment in which the log starts anew can lose what was committed before,
 * and leave the file damaged. The few that have the fix as well cannot look at the log without copying it.
 */
const oldestSafe = [3, 51, 3] as const;

/** Asked of the library itself: Node only knows which one it was built for. */
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
