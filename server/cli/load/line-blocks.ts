// Reads a file as text, in blocks of whole lines, for the formats whose records end with a line break.

import { isAscii, isUtf8 } from 'node:buffer';
import { type Chunk, type ChunkReader, type FilePosition, LONGEST_RECORD_BYTES, mebibytes } from './chunk.ts';
import { type Source, Unreadable } from './source.ts';

const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

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

/** The base class of readers for formats whose records end with a line break. */
export abstract class LineReader implements ChunkReader {
  readonly #blocks: LineBlocks;
  #isDone = false;

  constructor(source: Source, place: FilePosition) {
    this.#blocks = new LineBlocks(source, place, (start) => this.longestBytes(start));
  }

  protected abstract read(block: Block): ReadBlock;

  /** Returns the maximum length of a record that begins with these bytes. */
  protected longestBytes(_start: Buffer): number {
    return LONGEST_RECORD_BYTES;
  }

  /** The hint at the end of the error message about a record that is too long. */
  protected abstract readonly tooLong: string;

  async next(): Promise<Chunk | null> {
    while (!this.#isDone) {
      const block = await this.#blocks.next();
      const { place, ...read } = this.read(block);
      const start = block.place.offset;
      const bytes = block.bytes.subarray(0, place.offset - start);
      this.#blocks.use(bytes.length, place.line - block.place.line);
      const broken = read.broken ?? block.broken ?? (bytes.length === 0 ? this.#whyTooLong(block) : null);
      this.#isDone = block.isLast || broken !== null;
      if (bytes.length > 0 || broken !== null) return { ...read, bytes, start, broken };
    }
    return null;
  }

  #whyTooLong({ place }: Block): Unreadable | null {
    if (!this.#blocks.isTooLong) return null;
    return new Unreadable(
      `the record that begins here is longer than ${mebibytes(this.#blocks.longestBytes)}; ${this.tooLong}`,
      place.line,
    );
  }
}

class LineBlocks {
  readonly #source: Source;
  readonly #longestBytes: (start: Buffer) => number;
  #place: FilePosition;
  #held: Buffer = Buffer.alloc(0);
  #isAtEnd = false;

  /** `longestBytes` returns the maximum length of a record that begins with these bytes. */
  constructor(source: Source, place: FilePosition, longestBytes: (start: Buffer) => number) {
    this.#source = source;
    this.#longestBytes = longestBytes;
    this.#place = place;
  }

  /**
   * Resolves to the lines after the bytes that the caller has marked with `use`. Bytes that are not marked are returned
   * again, followed by more lines.
   */
  async next(): Promise<Block> {
    let broken: Unreadable | null = null;
    let wholeBytes = this.#isAtEnd ? this.#held.length : 0;
    while (wholeBytes === 0 && !this.#isAtEnd) {
      const more = await this.#source.next();
      if (more === null || more instanceof Unreadable) {
        this.#isAtEnd = true;
        broken = more;
        wholeBytes = broken === null ? this.#held.length : this.#held.lastIndexOf(LINE_FEED) + 1;
        break;
      }
      this.#hold(more);
      const lastLineFeed = more.lastIndexOf(LINE_FEED);
      if (lastLineFeed !== -1) wholeBytes = this.#held.length - more.length + lastLineFeed + 1;
      else if (this.isTooLong) break;
    }
    return this.#block(wholeBytes === 0 ? 0 : wholeBytes - this.#passMark(), broken);
  }

  /** Marks the first `bytes` bytes of the last block as used. They contain `lines` line breaks. */
  use(bytes: number, lines: number): void {
    this.#held = this.#held.subarray(bytes);
    this.#place = { offset: this.#place.offset + bytes, line: this.#place.line + lines };
  }

  /** Whether more bytes are held than the longest record may have. */
  get isTooLong(): boolean {
    return this.#held.length > this.longestBytes;
  }

  get longestBytes(): number {
    return this.#longestBytes(this.#held);
  }

  #hold(more: Buffer): void {
    this.#held = this.#held.length === 0 ? more : Buffer.concat([this.#held, more]);
  }

  /** Skips a byte-order mark at the start of the file. Returns its length, or 0 if there is none. */
  #passMark(): number {
    if (this.#place.offset !== 0 || !this.#held.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)) {
      return 0;
    }
    this.use(BYTE_ORDER_MARK.length, 0);
    return BYTE_ORDER_MARK.length;
  }

  #block(wholeBytes: number, broken: Unreadable | null): Block {
    const bytes = this.#held.subarray(0, wholeBytes);
    const place = this.#place;
    const isLast = this.#isAtEnd;
    if (isAscii(bytes)) {
      return { bytes, text: bytes.toString('latin1'), isAscii: true, place, isLast, broken };
    }
    if (isUtf8(bytes)) {
      return { bytes, text: bytes.toString('utf8'), isAscii: false, place, isLast, broken };
    }
    const { before, unreadable } = this.#upToBrokenText(bytes);
    return {
      bytes: before,
      text: before.toString('utf8'),
      isAscii: false,
      place,
      isLast: true,
      broken: unreadable,
    };
  }

  #upToBrokenText(bytes: Buffer): { before: Buffer; unreadable: Unreadable } {
    let line = this.#place.line;
    let from = 0;
    for (;;) {
      const lineFeed = bytes.indexOf(LINE_FEED, from);
      const to = lineFeed === -1 ? bytes.length : lineFeed + 1;
      if (!isUtf8(bytes.subarray(from, to))) break;
      from = to;
      line++;
    }
    return {
      before: bytes.subarray(0, from),
      unreadable: new Unreadable('the line is not UTF-8 text; save the file as UTF-8', line),
    };
  }
}
