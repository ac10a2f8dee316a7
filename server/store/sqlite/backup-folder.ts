// Manages the folder in which a backup is written until it has passed the check. A folder is used because a folder that
// holds only the names below was certainly left by a backup, and may be emptied. A file of the same name could be
// anything, even a database in use.

import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreUnusable } from '../store.ts';
import { companions } from './database-files.ts';
import { isBusy } from './errors.ts';

export interface PartialBackup {
  /** The path of the copy of the database. */
  readonly copy: string;
  /** Deletes the folder with its contents, so that another backup can use the name. */
  release(): void;
}

const COPY = 'copy.db';
/** A file that is locked while the backup runs. The lock ends with the process, even if the process is killed. */
const LOCK = 'lock';
const copyNames = ['', ...companions].map((suffix) => COPY + suffix);
const REMOVAL_TRIES = 10;

/**
 * Creates the folder, or empties a folder that a killed backup has left. Throws if another backup is using the folder,
 * or if it was not left by a backup.
 */
export function takePartial(folder: string): PartialBackup {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  const names = found?.isDirectory() ? readdirSync(folder) : [];
  if (found?.isDirectory() === false || names.some((name) => name !== LOCK && !copyNames.includes(name))) {
    throw new StoreUnusable(
      `${folder}, where the backup is written until it is complete, already exists, and was not left by a backup; ` +
        'move it away, or name another file',
    );
  }
  const isNew = mkdirSync(folder, { recursive: true }) !== undefined;
  let lock: DatabaseSync | null = null;
  try {
    lock = new DatabaseSync(join(folder, LOCK), { timeout: 0 });
    // Nothing is ever written to the lock, so its journal needs no file.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    lock?.close();
    if (isBusy(error)) {
      throw new StoreUnusable(
        `another backup is being written to ${folder}; wait for it, or name another file`,
      );
    }
    if (isNew) remove(folder);
    throw error;
  }
  for (const name of copyNames) rmSync(join(folder, name), { force: true });
  return {
    copy: join(folder, COPY),
    release() {
      if (!lock.isOpen) return;
      remove(folder);
      lock.close();
    },
  };
}

/** Retries, because the thread of an abandoned backup may still create a file while the folder is being deleted. */
function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: REMOVAL_TRIES, retryDelay: 1 });
}
