// Reads a file in blocks of whole lines, for the formats whose records end with a line break. The records are returned
// in chunks, with the position of each record in the file.

import { isAscii, isUtf8 } from 'node:buffer';
import { type Source, Unreadable } from './source.ts';

const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** The maximum length of a record. If one is longer, most likely a closing quote or all line breaks are missing. */
export const LONGEST_RECORD_BYTES = 8 * 1024 * 1024;

/** The first bytes of a record, from which its maximum length follows. */
const START_BYTES = 16;

/** A position in a file at which reading resumes. */
export interface FilePosition {
  readonly offset: number;
  /** The line at that offset, counted from 1. */
  readonly line: number;
}

export interface Chunk {
  readonly records: readonly unknown[];
  /** The line in which each record begins, counted from 1. */
  readonly lines: readonly number[];
  /** The offset in the uncompressed file at which each record ends. */
  readonly ends: readonly number[];
  /** The uncompressed bytes that contain all records of the chunk. They begin at the offset `start`. */
  readonly bytes: Buffer;
  readonly start: number;
  /** Why the file cannot be read after this chunk, or null if it can be read or has ended. */
  readonly broken: Unreadable | null;
}

export interface Block {
  readonly bytes: Buffer;
  readonly text: string;
  /** If true, an index into the text is also an index into the bytes. */
  readonly isAscii: boolean;
  readonly place: FilePosition;
  readonly isLast: boolean;
  /** Why the file cannot be read after this block, or null if it can be read or has ended. */
  readonly broken: Unreadable | null;
}

/** The records that a format reads from a block. */
export interface ReadBlock extends Pick<Chunk, 'records' | 'lines' | 'ends' | 'broken'> {
  /** The position after the last complete record. The next block begins with the bytes after this position. */
  readonly place: FilePosition;
}

export abstract class LineReader {
  readonly #source: Source;
  #place: FilePosition;
  /** The bytes after `#place` that have been read from the source. */
  #held: Buffer = Buffer.alloc(0);
  #isAtEnd = false;
  #isDone = false;

  constructor(source: Source, place: FilePosition) {
    this.#source = source;
    this.#place = place;
  }

  protected abstract read(block: Block): ReadBlock;

  /** Returns the maximum length of a record that begins with these bytes. */
  protected longestBytes(_start: Buffer): number {
    return LONGEST_RECORD_BYTES;
  }

  /** The hint at the end of the error message about a record that is too long. */
  protected abstract readonly tooLong: string;

  /** Resolves to null after the last chunk. */
  async next(): Promise<Chunk | null> {
    while (!this.#isDone) {
      const block = await this.#nextBlock();
      const { place, ...read } = this.read(block);
      const start = block.place.offset;
      const bytes = block.bytes.subarray(0, place.offset - start);
      this.#held = this.#held.subarray(bytes.length);
      this.#place = place;
      const broken = read.broken ?? block.broken ?? (bytes.length === 0 ? this.#whyTooLong() : null);
      this.#isDone = block.isLast || broken !== null;
      if (bytes.length > 0 || broken !== null) return { ...read, bytes, start, broken };
    }
    return null;
  }

  #whyTooLong(): Unreadable | null {
    const longestBytes = this.longestBytes(this.#held);
    if (this.#held.length <= longestBytes) return null;
    return new Unreadable(
      `the record that begins here is longer than ${mebibytes(longestBytes)}; ${this.tooLong}`,
      this.#place.line,
    );
  }

  /** Resolves to the lines after `#place`, so what was not used of the last block is returned again with more lines. */
  async #nextBlock(): Promise<Block> {
    let broken: Unreadable | null = null;
    let wholeBytes = 0;
    const pieces = this.#held.length === 0 ? [] : [this.#held];
    let heldBytes = this.#held.length;
    while (wholeBytes === 0 && !this.#isAtEnd) {
      const more = await this.#source.next();
      if (more === null || more instanceof Unreadable) {
        this.#isAtEnd = true;
        broken = more;
        break;
      }
      pieces.push(more);
      const lastLineFeed = more.lastIndexOf(LINE_FEED);
      if (lastLineFeed !== -1) wholeBytes = heldBytes + lastLineFeed + 1;
      heldBytes += more.length;
      if (wholeBytes === 0 && heldBytes > this.longestBytes(startOf(pieces))) break;
    }
    // The pieces are joined only here: joining them again for each further piece would take quadratic time.
    this.#held = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    if (this.#isAtEnd) wholeBytes = broken === null ? heldBytes : this.#held.lastIndexOf(LINE_FEED) + 1;
    const { offset, line } = this.#place;
    if (offset === 0 && wholeBytes > 0 && this.#held.subarray(0, 3).equals(BYTE_ORDER_MARK)) {
      wholeBytes -= BYTE_ORDER_MARK.length;
      this.#held = this.#held.subarray(BYTE_ORDER_MARK.length);
      this.#place = { offset: BYTE_ORDER_MARK.length, line };
    }
    return this.#block(this.#held.subarray(0, wholeBytes), broken);
  }

  #block(bytes: Buffer, broken: Unreadable | null): Block {
    const place = this.#place;
    const ascii = isAscii(bytes);
    if (ascii || isUtf8(bytes)) {
      const text = bytes.toString(ascii ? 'latin1' : 'utf8');
      return { bytes, text, isAscii: ascii, place, isLast: this.#isAtEnd, broken };
    }
    const before = linesOfUtf8(bytes);
    const line = place.line + lineFeedsIn(before);
    const notUtf8 = new Unreadable('the line is not UTF-8 text; save the file as UTF-8', line);
    return { bytes: before, text: before.toString(), isAscii: false, place, isLast: true, broken: notUtf8 };
  }
}

/** Returns the first bytes of the pieces. No piece is empty. */
function startOf(pieces: readonly Buffer[]): Buffer {
  return Buffer.concat(pieces.slice(0, START_BYTES), START_BYTES);
}

/** Returns the lines before the first one that is not UTF-8. */
function linesOfUtf8(bytes: Buffer): Buffer {
  for (let from = 0; ; ) {
    const to = bytes.indexOf(LINE_FEED, from) + 1 || bytes.length;
    if (!isUtf8(bytes.subarray(from, to))) return bytes.subarray(0, from);
    from = to;
  }
}

export function lineFeedsIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) count++;
  return count;
}

export function mebibytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}
