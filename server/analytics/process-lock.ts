// Makes sure that only one process does something. The lock is that of a SQLite file, which the operating system
// releases when the process ends, however it ends.

import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;
/** Node closes a database that nothing refers to. */
const locked = new Set<DatabaseSync>();

/** Returns a function that releases the lock, or null if another process still has it after `withinMs`. */
export function takeProcessLock(path: string, withinMs: number): (() => void) | null {
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA busy_timeout = ${withinMs}; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE`);
    locked.add(database);
    return () => {
      locked.delete(database);
      database.close();
    };
  } catch (error) {
    database.close();
    if ((error as { readonly errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    return null;
  }
}
