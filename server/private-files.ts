// Keeps the files that Headgate writes private to their owner, because databases, copies, exports and rejected records
// contain the data of organisations.

import { statSync } from 'node:fs';

const GROUP_AND_OTHERS = 0o077;

/**
 * Sets the umask, so that every file that this process creates from now on has the mode 600, and every folder 700. This
 * applies to the files that SQLite creates too. Existing files and folders keep their modes.
 */
export function keepNewFilesPrivate(): void {
  process.umask(GROUP_AND_OTHERS);
}

/** Returns the existing files to which the group or other users have any access. */
export function openToOthers(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return found !== undefined && (found.mode & GROUP_AND_OTHERS) !== 0;
  });
}
