// Remembers which files the store has open, to notice if one of them is deleted, moved or replaced while it is in use.
//
// SQLite keeps reading and writing a file that is no longer at its path, and everything written there is lost once the
// file is closed. SQLite's own file descriptor is not accessible. Opening a second descriptor is not safe, because
// closing it would release the process's locks on the file. The store therefore checks the path before and after it
// opens the file, and remembers the file's device and inode number. No other file can get the same two numbers while
// the file is open.

import { type BigIntStats, realpathSync, renameSync, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { StoreUnavailable } from '../store.ts';

/**
 * The identities of a database's files, in memory that threads share. They are 0 until the first thread has opened the
 * files.
 */
export interface OpenedFiles {
  readonly path: string;
  readonly identities: BigInt64Array<SharedArrayBuffer>;
}

/** The suffixes of the database, its write-ahead log, and the index of the log. */
const suffixes = ['', '-wal', '-shm'] as const;
const DATABASE = 0;
const companionFiles = [1, 2] as const;
const NUMBERS_PER_FILE = 2;
/** A file that is replaced while it is being opened is opened once more. A second replacement is an error. */
const OPENING_ATTEMPTS = 2;

export function newOpenedFiles(path: string): OpenedFiles {
  const bytes = suffixes.length * NUMBERS_PER_FILE * BigInt64Array.BYTES_PER_ELEMENT;
  return { path, identities: new BigInt64Array(new SharedArrayBuffer(bytes)) };
}

export interface Loss {
  /**
   * - `gone`: nothing is at the database's path.
   * - `replaced`: another file is at the database's path.
   * - `log gone`, `log replaced`: the database is in place, but a file beside it is gone or replaced.
   * - `unseen`: the path cannot be checked.
   */
  readonly kind: 'gone' | 'replaced' | 'log gone' | 'log replaced' | 'unseen';
  /** Tells the operator what happened and what to do. */
  readonly message: string;
}

/** What is at a path: a file, nothing, or the error of a path that cannot be checked. */
type Seen = BigIntStats | undefined | Error;

export class FileWatch {
  readonly #path: string;
  readonly #identities: BigInt64Array<SharedArrayBuffer>;
  /**
   * The path of the database without symbolic links, beside which SQLite keeps its other files. Null until it is
   * needed.
   */
  #realPath: string | null = null;

  constructor({ path, identities }: OpenedFiles) {
    this.#path = path;
    this.#identities = identities;
  }

  /**
   * Opens the database and remembers its files. Throws if an earlier thread had opened another file.
   */
  open<Database extends { close(): void }>(openDatabase: () => Database): Database {
    // Checks the path before opening, because SQLite would create a new file if the database is gone.
    assertNoLoss(this.#lossOf(DATABASE, this.#look(DATABASE)));
    for (let attempt = 1; attempt <= OPENING_ATTEMPTS; attempt++) {
      const before = this.#look(DATABASE);
      const database = openDatabase();
      const after = this.#look(DATABASE);
      if (isFile(after) && (!isFile(before) || (before.dev === after.dev && before.ino === after.ino))) {
        this.#remember(DATABASE, after);
        for (const file of companionFiles) this.#remember(file, this.#look(file));
        return database;
      }
      database.close();
    }
    throw new StoreUnavailable(`the database ${this.#path} was replaced while it was being opened`);
  }

  /** Throws StoreUnavailable if one of the files is not the one that the writer opened. */
  assertInPlace(): void {
    assertNoLoss(this.loss());
  }

  /** Returns null if the files that the writer opened are at their paths. */
  loss(): Loss | null {
    for (const file of suffixes.keys()) {
      const loss = this.#lossOf(file, this.#look(file));
      if (loss !== null) return loss;
    }
    return null;
  }

  /** Does the same as `loss`, but does not block the thread if the disk hangs. */
  async lossSoon(): Promise<Loss | null> {
    for (const file of suffixes.keys()) {
      const loss = this.#lossOf(file, await this.#lookSoon(file));
      if (loss !== null) return loss;
    }
    return null;
  }

  /**
   * Renames the log of a database that is no longer at its path, because SQLite would apply the log to any file that is
   * put at that path. The renamed log can still be put back beside its own database. Returns the new name of the log,
   * or null if there is no log.
   */
  setLogAside(): string | null {
    let logAside: string | null = null;
    for (const file of companionFiles) {
      const seen = this.#look(file);
      if (!isFile(seen) || this.#lossOf(file, seen) !== null) continue;
      const path = this.#pathOf(file);
      const aside = `${path}.of-lost-database-${Date.now()}`;
      renameSync(path, aside);
      logAside ??= aside;
    }
    return logAside;
  }

  #pathOf(file: number): string {
    if (file === DATABASE) return this.#path;
    this.#realPath ??= realpathSync(this.#path);
    return this.#realPath + suffixes[file]!;
  }

  #look(file: number): Seen {
    try {
      return statSync(this.#pathOf(file), { bigint: true, throwIfNoEntry: false });
    } catch (error) {
      return seenInstead(error as Error);
    }
  }

  async #lookSoon(file: number): Promise<Seen> {
    try {
      return await stat(this.#pathOf(file), { bigint: true });
    } catch (error) {
      return seenInstead(error as Error);
    }
  }

  #remember(file: number, seen: Seen): void {
    if (isFile(seen)) this.#identities.set([seen.dev, seen.ino], file * NUMBERS_PER_FILE);
  }

  #lossOf(file: number, seen: Seen): Loss | null {
    const at = file * NUMBERS_PER_FILE;
    const [dev, ino] = [this.#identities[at], this.#identities[at + 1]];
    if (ino === 0n) return null;
    if (isFile(seen) && seen.dev === dev && seen.ino === ino) return null;
    if (seen instanceof Error) {
      return { kind: 'unseen', message: `the database ${this.#path} cannot be checked: ${seen.message}` };
    }
    const kind = seen === undefined ? 'gone' : 'replaced';
    if (file === DATABASE) return { kind, message: lossMessages[kind](this.#path) };
    const what = kind === 'gone' ? 'deleted or moved away' : 'replaced';
    const message =
      `${this.#path}${suffixes[file]!}, a part of the database, was ${what} while it was in use: nothing is read or ` +
      'written; restart the server';
    return { kind: `log ${kind}`, message };
  }
}

const lossMessages = {
  gone: (path: string) =>
    `the database ${path} was deleted or moved away while it was in use: nothing is read or written until the ` +
    'same file is back; to start with a new one, restart the server',
  replaced: (path: string) =>
    `another file was put in the place of the database ${path} while it was in use: nothing is read or ` +
    'written; to use that file, restart the server',
};

function assertNoLoss(loss: Loss | null): void {
  if (loss !== null) throw new StoreUnavailable(loss.message);
}

function isFile(seen: Seen): seen is BigIntStats {
  return seen !== undefined && !(seen instanceof Error);
}

function seenInstead(error: NodeJS.ErrnoException): Error | undefined {
  return error.code === 'ENOENT' || error.code === 'ENOTDIR' ? undefined : error;
}
