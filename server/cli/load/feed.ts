// Provides the records of one file in order. A record is settled once the server has accepted or rejected it; until
// then, the feed keeps the record's position in the file.

import { crc32 } from 'node:zlib';
import { type Chunk, type FilePosition, type LineReader, lineFeedsIn } from './line-reader.ts';
import { type Origin, originOf, unwrapped } from './rejected-form.ts';
import { type Source, Unreadable, withFirst } from './source.ts';

interface HeldChunk {
  readonly chunk: Chunk;
  /** The index of the chunk's first record among all records that the feed has returned. */
  readonly firstIndex: number;
  /** The number of bytes of the file, possibly compressed, that had been read when the chunk was returned. */
  readonly readBytes: number;
}

/** The part of the file in which all records are settled: the uncompressed bytes before the offset. */
export interface Settled {
  readonly offset: number;
  readonly crc32: number;
  /** The number of bytes that had been read of the file as stored, possibly compressed. */
  readonly readBytes: number;
}

export class Feed {
  readonly #reader: LineReader;
  readonly #source: Source;
  /** Whether the file may contain rejected records of an earlier load, which have to be unwrapped. */
  readonly #mayBeRejected: boolean;
  readonly #isStopping: () => boolean;
  readonly #held: HeldChunk[] = [];
  #handedOver = 0;
  #settled: Settled;
  /** Why the file could not be read to its end. */
  broken: Unreadable | null = null;
  #isAtEnd = false;

  constructor(
    reader: LineReader,
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

  /**
   * Returns an iterable over all records. A record that was already read is returned without a promise, because
   * awaiting a promise takes longer than reading a record. A generator would always return promises.
   */
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

  /** Resolves to the next records, or to null if the file has ended or is unreadable, or if the load is stopping. */
  async nextRecords(): Promise<readonly unknown[] | null> {
    if (this.broken !== null || this.#isAtEnd || this.#isStopping()) return null;
    const chunk = await this.#reader.next();
    if (chunk === null) {
      this.#isAtEnd = true;
      return null;
    }
    this.broken = chunk.broken;
    this.#held.push({ chunk, firstIndex: this.#handedOver, readBytes: this.#source.readBytes() });
    this.#handedOver += chunk.records.length;
    return this.#mayBeRejected ? chunk.records.map(unwrapped) : chunk.records;
  }

  /**
   * Returns the line of a record, and its origin: where it was first rejected, or null if it was not rejected before.
   * Both are null if the server has named an index that no record has.
   */
  placeOf(index: number): { readonly line: number | null; readonly origin: Origin | null } {
    const held = this.#held.findLast(({ firstIndex }) => firstIndex <= index);
    const place = index - (held?.firstIndex ?? 0);
    return {
      line: held?.chunk.lines[place] ?? null,
      origin: this.#mayBeRejected ? originOf(held?.chunk.records[place]) : null,
    };
  }

  /** Marks all records before the index as settled. Returns the part of the file in which all records are settled. */
  settle(nextIndex: number): Settled {
    let { offset, crc32: checksum, readBytes } = this.#settled;
    for (;;) {
      const { chunk, firstIndex, readBytes: readThen } = this.#held[0]!;
      const count = nextIndex - firstIndex;
      const isPassed = count > chunk.records.length;
      // The blank lines after the last record of a chunk are settled with the first record of the next chunk.
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
 * Skips the bytes before an offset. Resolves to the position there and a source for the remaining bytes, or to null if
 * the file is shorter, or if the skipped bytes do not match the checksum. A checksum of null is not compared.
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
  return { place: { offset, line }, rest: withFirst(after, source), crc32: found };
}
