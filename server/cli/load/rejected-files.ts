// Writes the rejected records of a load, one file for each type. The files have temporary names until the load has
// finished, because the load may be reading the rejected records of an earlier load from the same folder.

import {
  appendFileSync,
  existsSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { type LoadType, loadOrder } from './file-types.ts';
import { NdjsonReader } from './ndjson.ts';
import type { PlannedFile } from './plan.ts';
import { PART_ENDING, type Rejected, rejectedLine, unwrapped } from './rejected-form.ts';
import { openSource } from './source.ts';

/**
 * Returns the path of a file that the rejected records of this load would replace, although it contains something other
 * than rejected records. Returns null if there is no such file.
 */
export async function inTheWay(folder: string, types: ReadonlySet<LoadType>): Promise<string | null> {
  for (const type of types) {
    const path = join(folder, `${type}.ndjson`);
    if (existsSync(path) && !(await holdsRejected(path))) return path;
  }
  return null;
}

async function holdsRejected(path: string): Promise<boolean> {
  const source = openSource(path, null);
  const chunk = await new NdjsonReader(source, { offset: 0, line: 1 }).next();
  source.close();
  const first = chunk?.records[0];
  return chunk === null || unwrapped(first) !== first;
}

export class RejectedFiles {
  readonly #folder: string;
  readonly #loadId: string;
  #bytes: RejectedBytes = {};

  constructor(folder: string, loadId: string) {
    this.#folder = folder;
    this.#loadId = loadId;
  }

  /** Returns whether the files are at least as long as the journal states. */
  have(bytes: RejectedBytes): boolean {
    return loadOrder.every((type) => {
      const known = bytes[type] ?? 0;
      return known === 0 || (statSync(this.#part(type), { throwIfNoEntry: false })?.size ?? 0) >= known;
    });
  }

  /**
   * Truncates the files to the lengths in the journal. Records that were rejected after the last write of the journal
   * are sent again, and would otherwise be in the files twice.
   */
  goOn(bytes: RejectedBytes): void {
    this.#bytes = bytes;
    for (const type of loadOrder) {
      if (bytes[type]) truncateSync(this.#part(type), bytes[type]);
      else rmSync(this.#part(type), { force: true });
    }
  }

  append(type: LoadType, file: string, rejected: readonly Rejected[]): void {
    if (rejected.length === 0) return;
    makeFolder(this.#folder);
    const text = rejected.map((one) => rejectedLine(one, file)).join('');
    appendFileSync(this.#part(type), text);
    this.#bytes = { ...this.#bytes, [type]: (this.#bytes[type] ?? 0) + Buffer.byteLength(text) };
  }

  bytes(): RejectedBytes {
    return this.#bytes;
  }

  /** Returns the paths of the files that have temporary names. */
  parts(): readonly string[] {
    return loadOrder.map((type) => this.#part(type)).filter((path) => existsSync(path));
  }

  /**
   * Gives the files their final names. Files of rejected records that this load has read from the same folder are
   * replaced or deleted. Files of other loads that already have one of these names are renamed.
   */
  finish(loaded: readonly PlannedFile[]): Finished {
    const setAside: string[] = [];
    const written: string[] = [];
    const done = this.#loadedFromHere(loaded);
    for (const type of loadOrder) {
      if (!existsSync(this.#part(type))) continue;
      const path = join(this.#folder, `${type}.ndjson`);
      // The files that were loaded are deleted only after all new files have their names, so that no record is lost if
      // the process is killed in between.
      if (existsSync(path) && !done.delete(realpathSync(path))) setAside.push(setFileAside(path));
      renameSync(this.#part(type), path);
      written.push(path);
    }
    for (const path of done) rmSync(path, { force: true });
    return { written, setAside };
  }

  #loadedFromHere(loaded: readonly PlannedFile[]): Set<string> {
    const folder = existsSync(this.#folder) ? realpathSync(this.#folder) : null;
    const here = loaded.filter(({ isOfRejected, realPath }) => isOfRejected && dirname(realPath) === folder);
    return new Set(here.map(({ realPath }) => realPath));
  }

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

export type RejectedBytes = { readonly [Type in LoadType]?: number };

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
