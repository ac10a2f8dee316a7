// Backs a SQLite file up into another file, while servers read and write it. The work is done by a thread of its
// own, so that whoever asked for it stays able to show progress and to stop it.

import { accessSync, constants, existsSync, rmSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { errorOf, type Outcome } from './calls.ts';

/** What the thread is told. */
export interface BackupOrder {
  readonly path: string;
  readonly file: string;
  /** The name of the backup while it is not yet known to be good. */
  readonly partial: string;
  readonly replace: boolean;
}

/** What the thread tells. */
export type BackupNews =
  | { readonly kind: 'progress'; readonly progress: BackupProgress }
  | { readonly kind: 'ended'; readonly outcome: Outcome };

export interface BackupProgress {
  readonly doing: 'copying' | 'checking';
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface BackupFacts {
  readonly bytes: number;
  readonly schemaVersion: number;
  readonly organisations: number;
  readonly records: number;
  readonly interactions: number;
}

/** Where it is refused, nothing was written, or what was written is gone again. */
export type BackedUp =
  | { readonly kind: 'done'; readonly facts: BackupFacts }
  | { readonly kind: 'refused'; readonly reason: string };

export interface RunningBackup {
  readonly ended: Promise<BackedUp>;
  /** Removes what was written so far. The thread may be deep in SQLite; it ends with the process. */
  abandon(): void;
}

/** `replace`: whether a backup that is there under the name may give way to the new one. */
export function startBackup(
  database: string,
  backup: string,
  replace: boolean,
  onProgress: (progress: BackupProgress) => void,
): RunningBackup {
  const [path, file] = [resolve(database), resolve(backup)];
  const reason = refusalOf(path, file, replace);
  if (reason !== null) {
    return { ended: Promise.resolve({ kind: 'refused', reason }), abandon() {} };
  }
  const order: BackupOrder = { path, file, partial: partialOf(file), replace };
  return {
    ended: runThread(order, onProgress),
    abandon: () => removePartial(order.partial),
  };
}

async function runThread(
  order: BackupOrder,
  onProgress: (progress: BackupProgress) => void,
): Promise<BackedUp> {
  const { promise, resolve, reject } = Promise.withResolvers<BackedUp>();
  const worker = new Worker(new URL('./backup-thread.ts', import.meta.url), { workerData: order });
  worker.on('message', (news: BackupNews) => {
    if (news.kind === 'progress') onProgress(news.progress);
    else if (news.outcome.kind === 'done') resolve(news.outcome.value as BackedUp);
    else reject(errorOf(news.outcome));
  });
  worker.on('error', reject);
  worker.on('exit', (code) => reject(new Error(`the backup's thread ended early, with ${code}`)));
  return promise;
}

/** In the same folder, so that it can be renamed. */
function partialOf(file: string): string {
  return join(dirname(file), `${basename(file)}.partial`);
}

/** SQLite keeps files of its own beside the one that it writes. */
const companions = ['-journal', '-wal', '-shm'] as const;

export function removePartial(partial: string): void {
  for (const suffix of ['', ...companions]) rmSync(partial + suffix, { force: true });
}

/** A sentence on why no backup of the database can be made under the name, or null. */
function refusalOf(path: string, file: string, replace: boolean): string | null {
  try {
    return whyNot(path, file, replace);
  } catch (error) {
    // Folders that may not be looked into, names that are too long, and the like.
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    return `the backup cannot be made: ${error.message}`;
  }
}

function whyNot(path: string, file: string, replace: boolean): string | null {
  const source = statSync(path, { throwIfNoEntry: false });
  if (source === undefined) return `there is no database ${path}; name the one to back up with --database`;
  if (!source.isFile()) return `the database ${path} is not a file`;
  const folder = dirname(file);
  if (!isFolder(folder)) return `there is no folder ${folder} to put the backup into; make it first`;
  const taken = statSync(file, { throwIfNoEntry: false });
  if (isPartOf(path, file) || (taken?.ino === source.ino && taken.dev === source.dev)) {
    return `${file} belongs to the database itself; name another file for the backup`;
  }
  if (taken !== undefined && !taken.isFile()) return `${file} is not a file; name another one for the backup`;
  if (taken !== undefined && !replace) {
    return `${file} is there already; name another file, or give --force to replace it`;
  }
  // A log beside it would be taken for the log of the backup, and spoil it as soon as it is opened.
  if (existsSync(`${file}-wal`)) {
    return `${file}-wal shows that ${file} is in use as a database; name another file for the backup`;
  }
  accessSync(folder, constants.W_OK | constants.X_OK);
  return whyNoRoom(folder, source.size);
}

/** Asked before, because a disk that the backup fills may be the one that the server needs. */
function whyNoRoom(folder: string, neededBytes: number): string | null {
  const { blocks, bavail, bsize } = statfsSync(folder);
  const freeBytes = bavail * bsize;
  // Some network file systems keep their size to themselves.
  if (blocks === 0 || freeBytes >= neededBytes) return null;
  return (
    `there is no room for the backup in ${folder}: the database has ${neededBytes} bytes, ` +
    `and ${freeBytes} are free; make room, or name a file on another disk`
  );
}

function isPartOf(path: string, file: string): boolean {
  return companions.some((suffix) => file === path + suffix);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
