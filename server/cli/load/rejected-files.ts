// Writes the rejected records of a load, a file for each type. While the load runs they are in files of their own;
// only when it has come to its end do these take their names, so that rejected records can be loaded from the very
// folder to which those that are still wrong are written.

import { appendFileSync, existsSync, mkdirSync, renameSync, rmdirSync, rmSync, truncateSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type LoadType, loadOrder } from './file-types.ts';
import type { PlannedFile } from './plan.ts';
import { PART_ENDING, type Rejected, rejectedLine, unwrapped } from './rejected-form.ts';

const PEEK_BYTES = 64 * 1024;

/** A file of the folder that would stand in the way of rejected records; null where there is none. */
export async function inTheWay(folder: string, types: ReadonlySet<LoadType>): Promise<string | null> {
  for (const type of types) {
    const path = join(folder, `${type}.ndjson`);
    if (existsSync(path) && !(await holdsRejected(path))) return path;
  }
  return null;
}

async function holdsRejected(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(PEEK_BYTES), 0, PEEK_BYTES, 0);
    const start = buffer.toString('utf8', 0, bytesRead);
    return bytesRead === 0 || /^\s*\{\s*"record"\s*:/.test(start) || isWrapped(start.split('\n', 1)[0]!);
  } finally {
    await file.close();
  }
}

function isWrapped(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return unwrapped(value) !== value;
  } catch {
    // A first line that is longer than what was looked at, or no JSON: not written by a load.
    return false;
  }
}

export class RejectedFiles {
  readonly #folder: string;
  readonly #loadId: string;
  readonly #bytes = new Map<LoadType, number>();

  constructor(folder: string, loadId: string) {
    this.#folder = folder;
    this.#loadId = loadId;
  }

  /** Goes on where a journal says; what was written after it is dropped. */
  goOn(bytes: { readonly [Type in LoadType]?: number }): void {
    for (const type of loadOrder) {
      const known = bytes[type] ?? 0;
      if (known === 0) rmSync(this.#part(type), { force: true });
      else {
        truncateSync(this.#part(type), known);
        this.#bytes.set(type, known);
      }
    }
  }

  append(type: LoadType, file: string, rejected: readonly Rejected[]): void {
    if (rejected.length === 0) return;
    mkdirSync(this.#folder, { recursive: true });
    const text = rejected.map((one) => rejectedLine(one, file)).join('');
    appendFileSync(this.#part(type), text);
    this.#bytes.set(type, (this.#bytes.get(type) ?? 0) + Buffer.byteLength(text));
  }

  bytes(): { readonly [Type in LoadType]?: number } {
    return Object.fromEntries(this.#bytes);
  }

  /**
   * At the end of a load: the rejected records take the place of those that were loaded from the same folder, and
   * what is there of other loads is set aside.
   */
  finish(loaded: readonly PlannedFile[]): Finished {
    const setAside: string[] = [];
    const inFolder = loaded.filter(
      ({ isOfRejected, path }) => isOfRejected && join(dirname(path)) === join(this.#folder),
    );
    const written: string[] = [];
    for (const { path } of inFolder) rmSync(path, { force: true });
    for (const type of loadOrder) {
      if (!existsSync(this.#part(type))) continue;
      const path = join(this.#folder, `${type}.ndjson`);
      if (existsSync(path)) setAside.push(setFileAside(path));
      renameSync(this.#part(type), path);
      written.push(path);
    }
    return { written, setAside };
  }

  /** Leaves no empty folder behind. */
  removeFolderIfEmpty(): void {
    try {
      rmdirSync(this.#folder);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOENT' && code !== 'EBUSY') throw error;
    }
  }

  #part(type: LoadType): string {
    return join(this.#folder, `${type}.${this.#loadId}${PART_ENDING}`);
  }
}

export interface Finished {
  readonly written: readonly string[];
  readonly setAside: readonly string[];
}

function setFileAside(path: string): string {
  for (let number = 1; ; number++) {
    const aside = path.replace(/\.ndjson$/, `.earlier-${number}.ndjson`);
    if (existsSync(aside)) continue;
    renameSync(path, aside);
    return aside;
  }
}
