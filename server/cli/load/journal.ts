// The journal of an unfinished load. If the same command is run again, it resumes the load from the journal. The
// journal stores how much of each file is confirmed, the counts, and the sizes of the files of rejected records. Its
// first line is a digest of the rest, by which damage is detected. A lock beside it prevents two processes from running
// the same load at once. It is a file whose name contains the process id; that of a process that has ended is deleted.

import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../failure.ts';
import { makeFolder } from '../make-folder.ts';
import type { LoadType } from './file-types.ts';
import type { Tally } from './tally.ts';

/**
 * The part of a file that is confirmed: the server has accepted or rejected all records before the offset. The offset
 * counts uncompressed bytes, and the checksum of these bytes shows whether they have changed since.
 */
export interface Confirmed {
  readonly offset: number;
  readonly crc32: number;
  readonly isDone: boolean;
  /** The size of the file as stored, possibly compressed. */
  readonly sizeBytes: number;
}

export interface JournalEntry {
  /** The command line that resumes the load. */
  readonly command: string;
  /** The id of the API key, which is not secret. */
  readonly keyId: string;
  readonly files: { readonly [realPath: string]: Confirmed };
  readonly rejectedBytes: { readonly [Type in LoadType]?: number };
  readonly tally: Tally;
}

const VERSION = 3;
const journalName = /^\.load-([0-9a-f]+)\.json$/;

export class Journal {
  readonly #folder: string;
  readonly #loadId: string;

  constructor(folder: string, loadId: string) {
    this.#folder = folder;
    this.#loadId = loadId;
  }

  #pathWith(ending: string): string {
    return join(this.#folder, `.load-${this.#loadId}.${ending}`);
  }

  /** Returns null if there is no journal, and a Failure if it is damaged, for example by a full disk. */
  read(): JournalEntry | Failure | null {
    const path = this.#pathWith('json');
    if (!existsSync(path)) return null;
    const [digest, body] = readFileSync(path, 'utf8').split('\n', 2);
    return body !== undefined && digest === digestOf(body)
      ? (JSON.parse(body) as JournalEntry)
      : new Failure('the journal of an earlier run is damaged, or was written by another version');
  }

  write(entry: JournalEntry): void {
    makeFolder(this.#folder);
    const unfinished = this.#pathWith('json.new');
    const body = JSON.stringify(entry);
    writeFileSync(unfinished, `${digestOf(body)}\n${body}`);
    renameSync(unfinished, this.#pathWith('json'));
  }

  remove(): void {
    rmSync(this.#pathWith('json'), { force: true });
  }

  /**
   * Takes the lock and returns null, or returns the lock that another process holds. If two processes try at the same
   * time, it can happen that neither gets the lock, but never that both do.
   */
  lock(): HeldLock | null {
    makeFolder(this.#folder);
    writeFileSync(this.#pathWith(`${process.pid}.lock`), '');
    const held = this.heldByAnother();
    if (held !== null) this.unlock();
    return held;
  }

  unlock(): void {
    rmSync(this.#pathWith(`${process.pid}.lock`), { force: true });
  }

  /** Returns the lock of another process that runs the load, or null if there is none. */
  heldByAnother(): HeldLock | null {
    for (const name of readdirSync(this.#folder)) {
      const pid = Number(/\.(\d+)\.lock$/.exec(name)?.[1]);
      const path = join(this.#folder, name);
      if (path !== this.#pathWith(`${pid}.lock`) || pid === process.pid) continue;
      if (isRunning(pid)) return { pid, path };
      rmSync(path, { force: true });
    }
    return null;
  }
}

export interface HeldLock {
  readonly pid: number;
  readonly path: string;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM means that the process exists, but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Returns the ids of the loads that have a journal in the folder. */
export function loadIdsIn(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((name) => journalName.exec(name)?.[1] ?? []);
}

/** Returns the same id for the same files, server and options. */
export function loadIdOf(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(parts)).slice(0, 12);
}

function digestOf(body: string): string {
  return hash('sha256', `${VERSION} ${body}`);
}
