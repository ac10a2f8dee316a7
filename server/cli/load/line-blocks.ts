// Cuts a file into blocks of whole lines, as text, for the formats whose records end with a line.

import { isAscii, isUtf8 } from 'node:buffer';
import { LONGEST_RECORD_BYTES, type Place } from './chunk.ts';
import { type Source, Unreadable } from './source.ts';

const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export interface Block {
  readonly bytes: Buffer;
  readonly text: string;
  /** Then an index into the text is one into the bytes, too. */
  readonly isAscii: boolean;
  readonly place: Place;
  /** Nothing comes after it. */
  readonly isLast: boolean;
  /** Why nothing comes after it, where that is not the end of the file. */
  readonly broken: Unreadable | null;
}

export class LineBlocks {
  readonly #source: Source;
  readonly #longestBytes: (start: Buffer) => number;
  #place: Place;
  #held: Buffer = Buffer.alloc(0);
  #isAtEnd = false;

  /** `longestBytes` is how long a record that begins so may be. */
  constructor(
    source: Source,
    place: Place,
    longestBytes: (start: Buffer) => number = () => LONGEST_RECORD_BYTES,
  ) {
    this.#source = source;
    this.#longestBytes = longestBytes;
    this.#place = place;
  }

  /** The lines after what was used. What the caller could not use comes again, with more after it. */
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

  /** So much of the last block is done with; `lines` is how many line breaks it had. */
  use(bytes: number, lines: number): void {
    this.#held = this.#held.subarray(bytes);
    this.#place = { offset: this.#place.offset + bytes, line: this.#place.line + lines };
  }

  /** More bytes are held than a record may have, and the caller can use none of them. */
  get isTooLong(): boolean {
    return this.#held.length > this.longestBytes;
  }

  get longestBytes(): number {
    return this.#longestBytes(this.#held);
  }

  #hold(more: Buffer): void {
    this.#held = this.#held.length === 0 ? more : Buffer.concat([this.#held, more]);
  }

  /** The mark of UTF-8 text may be the first thing in a file, and is no content. Answers how many bytes it had. */
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
