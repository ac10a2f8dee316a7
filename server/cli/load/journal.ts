// What is known of a load that has not come to its end, so that the same command can go on with it: how much of each
// file is confirmed, what became of it, and how long the files of rejected records were then.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LoadType } from './file-types.ts';
import type { Tally } from './tally.ts';

/** How much of a file is confirmed: all of its unpacked bytes before the offset, whose checksum tells them again. */
export interface Confirmed {
  readonly offset: number;
  readonly crc32: number;
  readonly isDone: boolean;
  /** Of the whole file, packed as it is. */
  readonly sizeBytes: number;
}

export interface JournalEntry {
  readonly files: { readonly [realPath: string]: Confirmed };
  readonly rejectedBytes: { readonly [Type in LoadType]?: number };
  readonly tally: Tally;
}

const VERSION = 1;

export class Journal {
  readonly #folder: string;
  readonly #path: string;

  constructor(folder: string, loadId: string) {
    this.#folder = folder;
    this.#path = join(folder, `.load-${loadId}.json`);
  }

  /** Null where there is none, or where it is of another version: the load then begins anew. */
  read(): JournalEntry | null {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    const { version, ...entry } = JSON.parse(text) as JournalEntry & { version: number };
    return version === VERSION ? entry : null;
  }

  write(entry: JournalEntry): void {
    mkdirSync(this.#folder, { recursive: true });
    const unfinished = `${this.#path}.new`;
    writeFileSync(unfinished, JSON.stringify({ version: VERSION, ...entry }));
    renameSync(unfinished, this.#path);
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }
}

/** The same for the same files, sent to the same place, in the same way, for the same key. */
export function loadIdOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);
}
