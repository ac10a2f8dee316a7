// Finds the files that belong to a SQLite database, recognises databases among other files, and syncs files to disk.

import { closeSync, fsyncSync, openSync, readSync, realpathSync, statSync } from 'node:fs';

/** The suffixes of the files that SQLite keeps beside a database. */
export const companions = ['-journal', '-wal', '-shm'] as const;

/** The first bytes of every SQLite database. */
const HEADER = Buffer.from('SQLite format 3\0', 'latin1');

/**
 * Returns the database file and its companions. Companions are beside the file itself, not beside a symbolic link to
 * it.
 */
export function filesOfDatabase(path: string): readonly string[] {
  const file = realpathSync(path);
  return [file, ...companions.map((suffix) => file + suffix)];
}

/** Returns whether both paths exist and lead to the same file, also through symbolic or hard links. */
export function isSameFile(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return first !== undefined && first.dev === second?.dev && first.ino === second.ino;
}

/**
 * Returns the path of the database of which `path` is a companion, or would be if it existed. Returns null if there is
 * no such database.
 */
export function companionOf(path: string): string | null {
  const suffix = companions.find((ending) => path.endsWith(ending));
  if (suffix === undefined) return null;
  const database = path.slice(0, -suffix.length);
  return isDatabase(database) ? database : null;
}

/** Returns whether the path is a file that begins like a SQLite database. */
export function isDatabase(path: string): boolean {
  // A pipe must not be opened, because that would block until its other end is opened.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false;
  const file = openSync(path, 'r');
  try {
    const start = Buffer.alloc(HEADER.length);
    return readSync(file, start, 0, HEADER.length, 0) === HEADER.length && start.equals(HEADER);
  } finally {
    closeSync(file);
  }
}

/** Waits until the file or folder is on disk. */
export function syncToDisk(path: string): void {
  const opened = openSync(path, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
