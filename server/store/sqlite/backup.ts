// Backs up a SQLite database into another file while servers read and write the database. A separate thread does the
// work, so that the caller can show progress and abandon the backup. If the backup fails, StoreUnusable is thrown with
// a message for the operator, and everything that the backup had written is removed.

import { accessSync, constants, lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { startWorker } from '../../workers/supervised-worker.ts';
import { StoreUnusable } from '../store.ts';
import { type PartialBackup, takePartial } from './backup-folder.ts';
import { companionOf, companions, filesOfDatabase, isSameFile } from './database-files.ts';
import { type CallResult, errorOf } from './thread-calls.ts';

export interface BackupOrder {
  readonly path: string;
  readonly file: string;
  /** The path at which the copy is written and checked, before it is renamed to `file`. */
  readonly copy: string;
  readonly replace: boolean;
}

/** The messages that the backup thread sends: its progress, and finally its result. */
export type BackupNews = BackupProgress | CallResult;

export interface BackupProgress {
  readonly kind: 'copying' | 'checking';
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface BackupSummary {
  readonly bytes: number;
  readonly schemaVersion: number;
  readonly organisations: number;
  readonly records: number;
  readonly interactions: number;
}

export interface RunningBackup {
  readonly ended: Promise<BackupSummary>;
  /**
   * Removes everything written so far. The thread is not stopped: it may be blocked in SQLite, and ends with the
   * process.
   */
  abandon(): void;
}

/**
 * Starts a backup of `database` into the file `backup`. If `replace` is true, an existing file of that name is
 * replaced.
 */
export function startBackup(
  database: string,
  backup: string,
  replace: boolean,
  onProgress: (progress: BackupProgress) => void,
): RunningBackup {
  const [path, file] = [resolve(database), resolve(backup)];
  const partial = startPartial(path, file, replace);
  return {
    ended: runThread({ path, file, copy: partial.copy, replace }, onProgress).finally(() =>
      partial.release(),
    ),
    abandon: () => partial.release(),
  };
}

function startPartial(path: string, file: string, replace: boolean): PartialBackup {
  try {
    const partial = `${file}.partial`;
    assertUsable(path, file, partial);
    assertFree(file, replace);
    return takePartial(partial);
  } catch (error) {
    // The operating system refuses, for example, a folder without permissions or a name that is too long.
    if (!isOfSystem(error)) throw error;
    throw new StoreUnusable(`the backup cannot be written to ${file}: ${error.message}`);
  }
}

/** Returns whether the error is about a disk or a file, and not a bug. */
export function isOfSystem(error: unknown): error is Error {
  return error instanceof Error && ('errcode' in error || 'syscall' in error);
}

function runThread(
  order: BackupOrder,
  onProgress: (progress: BackupProgress) => void,
): Promise<BackupSummary> {
  const script = new URL('./backup-thread.ts', import.meta.url);
  const { worker, ended } = startWorker(script, { workerData: order });
  const { promise, resolve, reject } = Promise.withResolvers<BackupSummary>();
  worker.on('message', (news: BackupNews) => {
    if ('doneBytes' in news) onProgress(news);
    else if (news.kind === 'done') resolve(news.value as BackupSummary);
    else reject(errorOf(news));
  });
  void ended.then(reject);
  return promise;
}

/**
 * Throws if there is no database at `path`, if no backup can be written to `file`, or if the backup would overwrite a
 * file that belongs to this or another database.
 */
function assertUsable(path: string, file: string, partial: string): void {
  const source = statSync(path, { throwIfNoEntry: false });
  if (source === undefined) {
    throw new StoreUnusable(`there is no database ${path}; name the one to back up with --database`);
  }
  if (!source.isFile()) throw new StoreUnusable(`the database ${path} is not a file`);
  const folder = dirname(file);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new StoreUnusable(`there is no folder ${folder} to put the backup into; make it first`);
  }
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) {
    throw new StoreUnusable(`${file} is not a file; name another one for the backup`);
  }
  const owned = filesOfDatabase(path);
  const owner = owned.some((own) => isSame(own, file)) ? 'itself' : companionOf(file);
  if (owner !== null) {
    throw new StoreUnusable(`${file} belongs to the database ${owner}; name another file for the backup`);
  }
  if ([dirname(owned[0]!), ...owned].some((own) => isSame(own, partial))) {
    throw new StoreUnusable(
      `${partial}, where the backup is written until it is complete, belongs to the database itself; ` +
        'name another file for the backup',
    );
  }
  accessSync(folder, constants.W_OK | constants.X_OK);
}

/**
 * Throws if the name of the backup is taken. This is checked before the copy and again before the copy gets the name,
 * because another process may take the name at any time.
 */
export function assertFree(file: string, replace: boolean): void {
  if (exists(file) && !replace) {
    throw new StoreUnusable(`${file} already exists; name another file, or give --force to replace it`);
  }
  // SQLite would treat an existing log or journal of that name as a part of the backup, and apply it when the backup is
  // opened.
  const companion = companions.map((suffix) => file + suffix).find(exists);
  if (companion === undefined) return;
  throw new StoreUnusable(
    `${companion} exists, from a database that is in use as ${file} or was not closed, and would spoil the backup; ` +
      'name another file for the backup',
  );
}

/** Returns whether both paths lead to the same file. The file need not exist yet. */
function isSame(one: string, other: string): boolean {
  const realName = (path: string): string => join(realpathSync(dirname(path)), basename(path));
  return isSameFile(one, other) || realName(one) === realName(other);
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
