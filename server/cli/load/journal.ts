// What is known of a load that has not come to its end, so that the same command can go on with it: how much of each
// file is confirmed, what became of it, and how long the files of rejected records were then.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
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
  /** As it is typed. */
  readonly command: string;
  /** Of the key, without its secret. */
  readonly keyId: string;
  readonly files: { readonly [realPath: string]: Confirmed };
  readonly rejectedBytes: { readonly [Type in LoadType]?: number };
  readonly tally: Tally;
}

const VERSION = 2;
const journalName = /^\.load-([0-9a-f]+)\.json$/;

export class Journal {
  readonly #folder: string;
  readonly #path: string;

  constructor(folder: string, loadId: string) {
    this.#folder = folder;
    this.#path = join(folder, `.load-${loadId}.json`);
  }

  /** Null where there is none. One may be damaged, by a disk that was full or lost its power, or of another version. */
  read(): JournalEntry | 'unreadable' | null {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    return entryIn(text) ?? 'unreadable';
  }

  write(entry: JournalEntry): void {
    makeFolder(this.#folder);
    const unfinished = `${this.#path}.new`;
    writeFileSync(unfinished, JSON.stringify({ version: VERSION, ...entry }));
    renameSync(unfinished, this.#path);
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }
}

function entryIn(text: string): JournalEntry | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value.version !== VERSION) return null;
  const { command, keyId, files, rejectedBytes, tally } = value;
  const isEntry =
    typeof command === 'string' &&
    typeof keyId === 'string' &&
    isObject(files) &&
    Object.values(files).every(isConfirmed) &&
    isObject(rejectedBytes) &&
    Object.values(rejectedBytes).every(isCount) &&
    isObject(tally) &&
    isObject(tally.types) &&
    Array.isArray(tally.problems) &&
    isObject(tally.dropped);
  return isEntry ? (value as unknown as JournalEntry) : null;
}

function isConfirmed(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { offset, crc32, isDone, sizeBytes } = value;
  return isCount(offset) && isCount(crc32) && isCount(sizeBytes) && typeof isDone === 'boolean';
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The loads that have a journal in the folder. */
export function loadIdsIn(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((name) => journalName.exec(name)?.[1] ?? []);
}

/** The same for the same files, sent to the same place in the same way. */
export function loadIdOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);
}
