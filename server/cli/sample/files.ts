// Writes the files of a sample. They get their names when all of them are complete, so that nothing that was
// interrupted looks whole.

import { once } from 'node:events';
import { createWriteStream, readdirSync, rmdirSync, rmSync, type WriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline, type Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { fileName, PARTIAL, type SampleFolder } from './folder.ts';
import { type Format, headerLine, lineWriter } from './lines.ts';
import { type Put, type SampleRecords, type SampleType, sampleTypes } from './records.ts';

export interface FileFacts {
  readonly file: string;
  readonly type: SampleType;
  readonly records: number;
  readonly bytes: number;
}

/** What is collected before it is written, of all files: few writes, and little memory. */
const FULL_BYTES = 1_000_000;
/** More than a record takes. */
const BLOCK_BYTES = 128 * 1024;
/** What was written is used again: the collector of garbage is slow to see how large blocks are. */
const spareBlocks: Buffer[] = [];
/** Of one character in UTF-8, as JavaScript counts them. */
const MOST_BYTES = 3;

/** A promise that somebody waits for only after a while; Node takes a rejection until then for one that nobody sees. */
function toldLater(promise: Promise<unknown>): Promise<unknown> {
  promise.catch(() => {});
  return promise;
}

class SampleFile<T extends SampleType = SampleType> {
  readonly type: T;
  readonly name: string;
  readonly #path: string;
  /** Where it is now: beside its name until it is complete. */
  #currentPath: string;
  readonly #lineOf: (record: SampleRecords[T]) => string;
  readonly #file: WriteStream;
  readonly #entrance: Writable;
  /** What is being written: one piece while the next is put together. Rejects when the file cannot be written. */
  #writing: Promise<unknown>;
  /** Lines go into bytes at once: text that waits would be copied again and again by the collector of garbage. */
  #block: Buffer<ArrayBufferLike> = Buffer.allocUnsafe(BLOCK_BYTES);
  #usedBytes = 0;
  #fullBlocks: Buffer[] = [];
  #records = 0;

  constructor(folder: string, type: T, format: Format, isPacked: boolean) {
    this.type = type;
    this.name = fileName(type, format, isPacked);
    this.#path = join(folder, this.name);
    this.#currentPath = this.#path + PARTIAL;
    this.#lineOf = lineWriter(type, format);
    this.#file = createWriteStream(this.#currentPath);
    const gzip = isPacked ? createGzip() : null;
    this.#entrance = gzip ?? this.#file;
    // What fails is told by whoever waits for the writing, and only there.
    this.#file.on('error', () => {});
    if (gzip !== null) pipeline(gzip, this.#file, () => {});
    this.#writing = toldLater(once(this.#file, 'open'));
    this.#addLine(headerLine(type, format));
  }

  /** How many bytes the record takes. */
  add(record: SampleRecords[T]): number {
    this.#records++;
    return this.#addLine(this.#lineOf(record));
  }

  #addLine(line: string): number {
    const mostBytes = line.length * MOST_BYTES;
    if (this.#usedBytes + mostBytes > BLOCK_BYTES) {
      this.#fullBlocks.push(this.#block.subarray(0, this.#usedBytes));
      this.#block = spareBlocks.pop() ?? Buffer.allocUnsafe(BLOCK_BYTES);
      this.#usedBytes = 0;
    }
    const bytes = this.#block.write(line, this.#usedBytes);
    this.#usedBytes += bytes;
    return bytes;
  }

  /** Hands over what is collected in full blocks, when the last has been written. */
  async write(): Promise<void> {
    await this.#writing;
    if (this.#fullBlocks.length === 0) return;
    const blocks = this.#fullBlocks;
    this.#fullBlocks = [];
    this.#writing = toldLater(Promise.all(blocks.map((block) => this.#writeBlock(block))));
  }

  #writeBlock(block: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#entrance.write(block, (error) => {
        if (error) return reject(this.#file.errored ?? error);
        spareBlocks.push(Buffer.from(block.buffer));
        return resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.#fullBlocks.push(this.#block.subarray(0, this.#usedBytes));
    await this.write();
    await this.#writing;
    const closed = once(this.#file, 'close');
    this.#entrance.end();
    await closed;
    if (this.#file.errored !== null) throw this.#file.errored;
  }

  async giveName(): Promise<FileFacts> {
    const { size } = await stat(this.#currentPath);
    await rename(this.#currentPath, this.#path);
    this.#currentPath = this.#path;
    return { file: this.name, type: this.type, records: this.#records, bytes: size };
  }

  discard(): void {
    this.#file.destroy();
    rmSync(this.#currentPath, { force: true });
  }
}

export class SampleFiles {
  readonly #folder: string;
  readonly #facts: SampleFolder;
  readonly #files: { readonly [T in SampleType]: SampleFile<T> };
  #collectedBytes = 0;

  constructor(folder: string, facts: SampleFolder, format: Format, isPacked: boolean) {
    this.#folder = folder;
    this.#facts = facts;
    this.#files = Object.fromEntries(
      sampleTypes.map((type) => [type, new SampleFile(folder, type, format, isPacked)]),
    ) as unknown as { [T in SampleType]: SampleFile<T> };
  }

  readonly put: Put = (type, record) => {
    this.#collectedBytes += this.#files[type].add(record);
  };

  isFull(): boolean {
    return this.#collectedBytes >= FULL_BYTES;
  }

  async write(): Promise<void> {
    this.#collectedBytes = 0;
    for (const file of this.#all()) await file.write();
  }

  /** Completes the files, and only then gives them their names. */
  async finish(): Promise<FileFacts[]> {
    for (const file of this.#all()) await file.close();
    for (const name of this.#facts.earlier) await rm(join(this.#folder, name));
    const facts: FileFacts[] = [];
    for (const file of this.#all()) facts.push(await file.giveName());
    return facts;
  }

  /** Leaves the folder as it was found. At once: the process may be about to end. */
  discard(): void {
    for (const file of this.#all()) file.discard();
    if (this.#facts.isNew && readdirSync(this.#folder).length === 0) rmdirSync(this.#folder);
  }

  #all(): readonly SampleFile[] {
    return Object.values(this.#files) as unknown as readonly SampleFile[];
  }
}
