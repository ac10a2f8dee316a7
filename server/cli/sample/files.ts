// Writes the files of a sample. They get their final names when all of them are complete, so that an interrupted sample
// never looks complete.

import { once } from 'node:events';
import { createWriteStream, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type CsvValue, csvLine } from '../csv-lines.ts';
import { fieldsOf, type LoadType, loadOrder } from '../load/file-types.ts';
import { type Format, fileName, formatFor, PARTIAL, type SampleFolder } from './folder.ts';
import type { Put } from './records.ts';

export interface FileSummary {
  readonly file: string;
  readonly type: LoadType;
  readonly records: number;
  readonly bytes: number;
}

/** Text is written when the buffers of all files together contain this many characters. */
const FULL_LENGTH = 1_000_000;

type Values = Readonly<Record<string, CsvValue>>;

/** Returns the record as a line of NDJSON, without the fields that have no value. */
function jsonLine(record: Values): string {
  return `${JSON.stringify(record, (_, value: unknown) => value ?? undefined)}\n`;
}

class SampleFile {
  readonly type: LoadType;
  readonly name: string;
  readonly partialPath: string;
  /** The text to be written next. */
  #text: string;
  records = 0;
  readonly #lineOf: (record: Values) => string;
  readonly #input = new PassThrough();
  readonly #written: Promise<void>;

  constructor(folder: string, type: LoadType, format: Format, isPacked: boolean) {
    this.type = type;
    this.name = fileName(type, format, isPacked);
    this.partialPath = join(folder, this.name + PARTIAL);
    const names = Object.keys(fieldsOf(type));
    const isCsv = formatFor(type, format) === 'csv';
    this.#text = isCsv ? csvLine(names) : '';
    this.#lineOf = isCsv ? (record) => csvLine(names.map((name) => record[name]!)) : jsonLine;
    const file = createWriteStream(this.partialPath);
    this.#written = isPacked ? pipeline(this.#input, createGzip(), file) : pipeline(this.#input, file);
    // Prevents an unhandled rejection. `write` and `close` report the error.
    this.#written.catch(() => {});
  }

  /** Returns the length of the record's line. */
  add(record: Values): number {
    const line = this.#lineOf(record);
    this.#text += line;
    this.records++;
    return line.length;
  }

  async write(): Promise<void> {
    const text = this.#text;
    this.#text = '';
    if (text !== '' && !this.#input.write(text)) {
      await Promise.race([once(this.#input, 'drain'), this.#written]);
    }
  }

  async close(): Promise<void> {
    await this.write();
    this.#input.end();
    await this.#written;
  }

  discard(): void {
    this.#input.destroy();
    rmSync(this.partialPath, { force: true });
  }
}

export class SampleFiles {
  readonly #folder: string;
  readonly #found: SampleFolder;
  readonly #files = new Map<LoadType, SampleFile>();
  #collectedLength = 0;

  constructor(folder: string, found: SampleFolder, format: Format, isPacked: boolean) {
    this.#folder = folder;
    this.#found = found;
    for (const type of loadOrder) this.#files.set(type, new SampleFile(folder, type, format, isPacked));
  }

  readonly put: Put = (type, record) => {
    this.#collectedLength += this.#files.get(type)!.add(record as Values);
  };

  isFull(): boolean {
    return this.#collectedLength >= FULL_LENGTH;
  }

  async write(): Promise<void> {
    this.#collectedLength = 0;
    for (const file of this.#files.values()) await file.write();
  }

  /** Completes all files, then gives them their final names. */
  async finish(): Promise<FileSummary[]> {
    for (const file of this.#files.values()) await file.close();
    for (const name of this.#found.earlier) await rm(join(this.#folder, name));
    const summary: FileSummary[] = [];
    for (const { name, type, records, partialPath } of this.#files.values()) {
      const { size } = await stat(partialPath);
      await rename(partialPath, join(this.#folder, name));
      summary.push({ file: name, type, records, bytes: size });
    }
    return summary;
  }

  /** Restores the earlier state of the folder. Works synchronously, because the process may be about to exit. */
  discard(): void {
    for (const file of this.#files.values()) file.discard();
    if (this.#found.isNew && readdirSync(this.#folder).length === 0) rmdirSync(this.#folder);
  }
}
