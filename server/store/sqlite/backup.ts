// Backs a SQLite file up into another file, while servers read and write it. The work is done by a thread of its
// own, so that whoever asked for it stays able to show progress and to stop it.

import { accessSync, constants, lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { startWorker } from '../../workers/supervised-worker.ts';
import { type PartialBackup, partialOf, takePartial } from './backup-partial.ts';
import { errorOf, type Outcome } from './calls.ts';
import { companionOf, companions, filesOfDatabase, isSameFile } from './database-files.ts';

/** What the thread is told. */
export interface BackupOrder {
  readonly path: string;
  readonly file: string;
  /** The folder of the backup while it is not yet known to be good, and the copy of the database in it. */
  readonly partial: string;
  readonly copy: string;
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
  const partial = startPartial(path, file, replace);
  if (typeof partial === 'string') {
    return { ended: Promise.resolve({ kind: 'refused', reason: partial }), abandon() {} };
  }
  const order: BackupOrder = { path, file, partial: partialOf(file), copy: partial.copy, replace };
  return {
    ended: runThread(order, onProgress).finally(() => partial.release()),
    abandon: () => partial.release(),
  };
}

/** A sentence where no backup of the database can be made under the name. */
function startPartial(path: string, file: string, replace: boolean): PartialBackup | string {
  try {
    return whyNot(path, file, replace) ?? takePartial(partialOf(file));
  } catch (error) {
    // Folders that may not be looked into or written to, names that are too long, and the like.
    if (!isOfSystem(error)) throw error;
    return `the backup cannot be written to ${file}: ${error.message}`;
  }
}

/** Whether the error tells of a disk or a file, and not of a mistake of ours. */
export function isOfSystem(error: unknown): error is Error {
  return error instanceof Error && ('errcode' in error || 'syscall' in error);
}

async function runThread(
  order: BackupOrder,
  onProgress: (progress: BackupProgress) => void,
): Promise<BackedUp> {
  const script = new URL('./backup-thread.ts', import.meta.url);
  const { worker, ended } = startWorker(script, { workerData: order });
  const { promise, resolve, reject } = Promise.withResolvers<BackedUp>();
  worker.on('message', (news: BackupNews) => {
    if (news.kind === 'progress') onProgress(news.progress);
    else if (news.outcome.kind === 'done') resolve(news.outcome.value as BackedUp);
    else reject(errorOf(news.outcome));
  });
  void ended.then(reject);
  return promise;
}

function whyNot(path: string, file: string, replace: boolean): string | null {
  const source = statSync(path, { throwIfNoEntry: false });
  if (source === undefined) return `there is no database ${path}; name the one to back up with --database`;
  if (!source.isFile()) return `the database ${path} is not a file`;
  const folder = dirname(file);
  if (!isFolder(folder)) return `there is no folder ${folder} to put the backup into; make it first`;
  const taken = statSync(file, { throwIfNoEntry: false });
  if (taken !== undefined && !taken.isFile()) return `${file} is not a file; name another one for the backup`;
  const databaseFiles = filesOfDatabase(path);
  if (databaseFiles.some((own) => isSame(own, file))) {
    return `${file} belongs to the database itself; name another file for the backup`;
  }
  const owner = companionOf(file);
  if (owner !== null) return `${file} belongs to the database ${owner}; name another file for the backup`;
  const partial = partialOf(file);
  if ([dirname(databaseFiles[0]!), ...databaseFiles].some((own) => isSame(own, partial))) {
    return (
      `${partial}, where the backup is written until it is complete, belongs to the database itself; ` +
      'name another file for the backup'
    );
  }
  accessSync(folder, constants.W_OK | constants.X_OK);
  return whyTaken(file, replace);
}

/** A sentence on why the name cannot become that of a backup, or null. Others may take it at any time. */
export function whyTaken(file: string, replace: boolean): string | null {
  if (isThere(file) && !replace) {
    return `${file} is there already; name another file, or give --force to replace it`;
  }
  // SQLite would take it for a part of the backup, and carry it out as soon as that is opened.
  const companion = companions.map((suffix) => file + suffix).find(isThere);
  if (companion === undefined) return null;
  return (
    `${companion} is there, of a database that is in use as ${file} or was not closed, and would spoil the backup; ` +
    'name another file for the backup'
  );
}

/** Whether the two are one, by whatever paths they are named, also if it does not exist yet. */
function isSame(one: string, other: string): boolean {
  return isSameFile(one, other) || realName(one) === realName(other);
}

function realName(path: string): string {
  return join(realpathSync(dirname(path)), basename(path));
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
