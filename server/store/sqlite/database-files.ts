// Which files a SQLite database consists of, and how to recognise one among the files of others.

import { closeSync, openSync, readSync, realpathSync, statSync } from 'node:fs';

/** SQLite keeps files of its own beside the one that it writes. */
export const companions = ['-journal', '-wal', '-shm'] as const;

/** What every SQLite database begins with. */
const HEADER = Buffer.from('SQLite format 3\0', 'latin1');

/** Returns the file of the database and its companions, which are beside that file and not beside a link to it. */
export function filesOfDatabase(path: string): readonly string[] {
  const file = realpathSync(path);
  return [file, ...companions.map((suffix) => file + suffix)];
}

/** Whether both exist and are one file, by whatever paths, symbolic links or hard links they are named. */
export function isSameFile(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return first !== undefined && first.dev === second?.dev && first.ino === second.ino;
}

/** Returns the database of which the path is a companion, or would be if it existed; null for any other path. */
export function companionOf(path: string): string | null {
  const suffix = companions.find((ending) => path.endsWith(ending));
  if (suffix === undefined) return null;
  const database = path.slice(0, -suffix.length);
  return isDatabase(database) ? database : null;
}

/** Returns whether the file begins as a database does. What is not a file is no database. */
export function isDatabase(path: string): boolean {
  // A pipe must not be opened: that would wait for its other end.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false;
  const file = openSync(path, 'r');
  try {
    const start = Buffer.alloc(HEADER.length);
    return readSync(file, start, 0, HEADER.length, 0) === HEADER.length && start.equals(HEADER);
  } finally {
    closeSync(file);
  }
}
