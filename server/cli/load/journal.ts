// The journal of an unfinished load. If the same command is run again, it resumes the load from the journal. The
// journal stores how much of each file is confirmed, the counts, and the sizes of the files of rejected records. Its
// first line is a digest of the rest, by which damage is detected.

import { hash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
  readonly #path: string;

  constructor(folder: string, loadId: string) {
    this.#folder = folder;
    this.#path = join(folder, `.load-${loadId}.json`);
  }

  /**
   * Returns null if there is no journal. Returns 'unreadable' if the journal is damaged, for example by a full disk or
   * a power failure, or if another version has written it.
   */
  read(): JournalEntry | 'unreadable' | null {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    const [digest, body] = text.split('\n', 2);
    return body !== undefined && digest === digestOf(body)
      ? (JSON.parse(body) as JournalEntry)
      : 'unreadable';
  }

  write(entry: JournalEntry): void {
    makeFolder(this.#folder);
    const unfinished = `${this.#path}.new`;
    const body = JSON.stringify(entry);
    writeFileSync(unfinished, `${digestOf(body)}\n${body}`);
    renameSync(unfinished, this.#path);
  }

  remove(): void {
    rmSync(this.#path, { force: true });
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
