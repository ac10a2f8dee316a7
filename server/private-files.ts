// What Headgate writes is for its owner's eyes only: databases, copies, exports and rejected records hold what
// organisations have uploaded.

import { statSync } from 'node:fs';

const GROUP_AND_OTHERS = 0o077;

/**
 * Makes every file that this process creates from now on 600 and every folder 700. The umask does that for
 * SQLite, too. Files and folders that exist keep their modes.
 */
export function keepNewFilesPrivate(): void {
  process.umask(GROUP_AND_OTHERS);
}

/** Returns those of the files that exist and that group or others may use in any way. */
export function openToOthers(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return found !== undefined && (found.mode & GROUP_AND_OTHERS) !== 0;
  });
}
