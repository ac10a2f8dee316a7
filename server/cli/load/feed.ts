// Provides the records of one file in order, and keeps the position of each in the file until the server has accepted
// or rejected it.

import { crc32 } from 'node:zlib';
import type { Chunk, ChunkReader, FilePosition } from './chunk.ts';
import { type Origin, originOf, unwrapped } from './rejected-form.ts';
import { type Source, Unreadable } from './source.ts';

const LINE_FEED = 0x0a;

interface HeldChunk {
  readonly chunk: Chunk;
  /** The index of its first record among all records returned so far. */
  readonly firstIndex: number;
  /** The bytes of the file, possibly compressed, that had been read when the chunk was returned. */
  readonly readBytes: number;
}

export interface Settled {
  readonly offset: number;
  readonly crc32: number;
  /** The bytes of the file as stored, possibly compressed. */
  readonly readBytes: number;
}

export class Feed {
  readonly #reader: ChunkReader;
  readonly #source: Source;
  /** Whether records may have the form of rejected records, which are unwrapped. */
  readonly #mayBeRejected: boolean;
  readonly #isStopping: () => boolean;
  readonly #held: HeldChunk[] = [];
  #handedOver = 0;
  #settled: Settled;
  /** Why the file could not be read to its end. */
  broken: Unreadable | null = null;
  isAtEnd = false;

  constructor(
    reader: ChunkReader,
    source: Source,
    from: { readonly offset: number; readonly crc32: number },
    mayBeRejected: boolean,
    isStopping: () => boolean,
  ) {
    this.#reader = reader;
    this.#source = source;
    this.#mayBeRejected = mayBeRejected;
    this.#isStopping = isStopping;
    this.#settled = { ...from, readBytes: source.readBytes() };
  }

  /** Is not a generator, so that available records need no promise: awaiting one costs more than reading a record. */
  records(): AsyncIterable<unknown> {
    let records: readonly unknown[] = [];
    let at = 0;
    const next = async (): Promise<IteratorResult<unknown, undefined>> => {
      while (at >= records.length) {
        const more = await this.nextRecords();
        if (more === null) return { done: true, value: undefined };
        records = more;
        at = 0;
      }
      return { done: false, value: records[at++] };
    };
    const iterator = {
      next: (): Promise<IteratorResult<unknown>> | IteratorResult<unknown> => {
        if (this.#isStopping()) return { done: true, value: undefined };
        return at < records.length ? { done: false, value: records[at++] } : next();
      },
    };
    return { [Symbol.asyncIterator]: () => iterator as AsyncIterator<unknown> };
  }

  /** Returns some records, or null at the end of the file or if the load cannot continue. */
  async nextRecords(): Promise<readonly unknown[] | null> {
    if (this.broken !== null || this.isAtEnd || this.#isStopping()) return null;
    const chunk = await this.#reader.next();
    if (chunk === null) {
      this.isAtEnd = true;
      return null;
    }
    this.broken = chunk.broken;
    this.#held.push({ chunk, firstIndex: this.#handedOver, readBytes: this.#source.readBytes() });
    this.#handedOver += chunk.records.length;
    return this.#mayBeRejected ? chunk.records.map(unwrapped) : chunk.records;
  }

  /** Whether the load is stopping, so that no more records are returned. */
  isStopping(): boolean {
    return this.#isStopping();
  }

  /** Returns the position of a record. Both parts are null if the server names an index without a record. */
  placeOf(index: number): { readonly line: number | null; readonly origin: Origin | null } {
    const held = this.#held.findLast(({ firstIndex }) => firstIndex <= index);
    const place = index - (held?.firstIndex ?? 0);
    return {
      line: held?.chunk.lines[place] ?? null,
      origin: this.#mayBeRejected ? originOf(held?.chunk.records[place]) : null,
    };
  }

  /** Marks all records before the index as settled, and returns the position in the file up to which all are. */
  settle(nextIndex: number): Settled {
    let { offset, crc32: checksum, readBytes } = this.#settled;
    for (;;) {
      const { chunk, firstIndex, readBytes: readThen } = this.#held[0]!;
      const count = nextIndex - firstIndex;
      const isPassed = count > chunk.records.length;
      // The blank lines after the last record of a chunk are settled with the next record.
      const end = isPassed ? chunk.start + chunk.bytes.length : count > 0 ? chunk.ends[count - 1]! : offset;
      checksum = crc32(chunk.bytes.subarray(offset - chunk.start, end - chunk.start), checksum);
      offset = end;
      if (count >= chunk.records.length) readBytes = readThen;
      if (!isPassed) break;
      this.#held.shift();
    }
    this.#settled = { offset, crc32: checksum, readBytes };
    return this.#settled;
  }
}

/**
 * Skips the bytes before an offset. Returns the place there and a source for the rest, or null if the skipped bytes do
 * not match the checksum.
 */
export async function passOver(
  source: Source,
  offset: number,
  checksum: number | null,
): Promise<
  { readonly place: FilePosition; readonly rest: Source; readonly crc32: number } | Unreadable | null
> {
  let passed = 0;
  let line = 1;
  let found = 0;
  let after: Buffer | null = null;
  while (passed < offset) {
    const block = await source.next();
    if (block instanceof Unreadable) return block;
    if (block === null) return null;
    const before = block.subarray(0, offset - passed);
    found = crc32(before, found);
    line += lineFeedsIn(before);
    passed += before.length;
    if (before.length < block.length) after = block.subarray(before.length);
  }
  if (checksum !== null && found !== checksum) return null;
  const rest: Source = {
    ...source,
    next: () => {
      const block = after;
      after = null;
      return block === null ? source.next() : Promise.resolve(block);
    },
  };
  return { place: { offset, line }, rest, crc32: found };
}

function lineFeedsIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) count++;
  return count;
}
