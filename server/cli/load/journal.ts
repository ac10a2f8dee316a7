// The notes of a load that is not finished, so that the same command can resume it: how much of each file is
// confirmed, what became of its records, and how long the files of rejected records were then. They begin with a digest.

import { hash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import type { LoadType } from './file-types.ts';
import type { Tally } from './tally.ts';

/** All unpacked bytes of a file before the offset are confirmed; the checksum recognises them. */
export interface Confirmed {
  readonly offset: number;
  readonly crc32: number;
  readonly isDone: boolean;
  /** The size of the whole file, as it is packed. */
  readonly sizeBytes: number;
}

export interface JournalEntry {
  /** As it is typed. */
  readonly command: string;
  /** Of the key, without its secret. */
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

  /** Null if none exists. A full disk or a loss of power can damage one, and another version may have written it. */
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

/** The loads that have a journal in the folder. */
export function loadIdsIn(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((name) => journalName.exec(name)?.[1] ?? []);
}

/** The same for the same files, sent to the same place in the same way. */
export function loadIdOf(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(parts)).slice(0, 12);
}

function digestOf(body: string): string {
  return hash('sha256', `${VERSION} ${body}`);
}
