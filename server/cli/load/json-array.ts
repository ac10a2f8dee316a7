// Reads the records of one JSON array, or of an object that has them under a name, without holding more of the file
// than one record: it looks for where each element ends, and parses only that.

import { isUtf8 } from 'node:buffer';
import { type Chunk, LONGEST_RECORD_BYTES, mebibytes, type Place, type Reader } from './chunk.ts';
import { parsed, Unparsable } from './ndjson.ts';
import { isBlank, ObjectRest } from './object-rest.ts';
import { type Source, Unreadable } from './source.ts';

const LINE_FEED = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

type State =
  | 'before the array'
  | 'before the first record'
  | 'before a record'
  | 'in a record'
  | 'after a record'
  | 'after the array';

export class JsonArrayReader implements Reader {
  readonly #source: Source;
  /** Under which name the array is, where it is in an object. */
  readonly #name: string;
  #state: State;
  #line: number;
  /** Where in the file the held bytes begin. */
  #offset: number;
  #held: Buffer = Buffer.alloc(0);
  /** The array is under its name in an object. */
  #isInObject: boolean;
  /** What follows the array in its object, until that ends. */
  #rest: ObjectRest | null = null;
  #isDone = false;

  /** Of the record that is being walked through. */
  #recordStart = 0;
  #recordLine = 1;
  #depth = 0;
  #isInText = false;
  #isEscaped = false;

  /** A place other than the beginning is the one after a record; what is before it must be known then. */
  constructor(source: Source, place: Place, name: string, isInObject = false) {
    this.#source = source;
    this.#name = name;
    this.#state = place.offset === 0 ? 'before the array' : 'after a record';
    this.#line = place.line;
    this.#offset = place.offset;
    this.#isInObject = isInObject;
  }

  /** Known from the first chunk on. */
  get isInObject(): boolean {
    return this.#isInObject;
  }

  async next(): Promise<Chunk | null> {
    while (!this.#isDone) {
      const more = await this.#source.next();
      if (more === null || more instanceof Unreadable) {
        this.#isDone = true;
        const broken = more ?? this.#whyEndedEarly();
        return broken === null ? null : this.#chunk([], [], [], 0, broken);
      }
      const chunk = this.#read(more);
      this.#isDone = chunk.broken !== null;
      if (chunk.bytes.length > 0 || this.#isDone) return chunk;
    }
    return null;
  }

  #whyEndedEarly(): Unreadable | null {
    if (this.#state === 'after the array' && this.#rest === null) return null;
    if (this.#state === 'after the array') {
      return new Unreadable('the file ends before the object with its records does; is it cut?', this.#line);
    }
    if (this.#state !== 'before the array') {
      return new Unreadable('the file ends before its array of records does; is it cut?', this.#line);
    }
    return this.#held.every(isBlank)
      ? new Unreadable('it is empty: a JSON file is an array of records, or an object with one', 1)
      : this.#noArray();
  }

  #noArray(): Unreadable {
    return new Unreadable(
      `it is no array of records, and no object with one under "${this.#name}"; ` +
        'where each line is an object, let the name end in .ndjson',
      1,
    );
  }

  #read(more: Buffer): Chunk {
    const records: unknown[] = [];
    const lines: number[] = [];
    const ends: number[] = [];
    let at = this.#held.length;
    const bytes = at === 0 ? more : Buffer.concat([this.#held, more]);
    this.#held = bytes;
    let broken: Unreadable | null = null;
    let used = 0;
    while (at < bytes.length && broken === null) {
      if (this.#state === 'before the array') {
        const start = this.#arrayStart(bytes);
        if (start === 'none') broken = this.#noArray();
        at = typeof start === 'number' ? start + 1 : bytes.length;
        continue;
      }
      if (this.#state === 'in a record') {
        at = this.#walk(bytes, at);
        if (this.#isAtRecord()) break;
        const value = this.#record(bytes.subarray(this.#recordStart, at));
        if (value instanceof Unreadable) {
          broken = value;
          break;
        }
        records.push(value);
        lines.push(this.#recordLine);
        ends.push(this.#offset + at);
        used = at;
        continue;
      }
      const byte = bytes[at]!;
      if (this.#rest !== null) {
        broken = this.#afterInObject(this.#rest, byte);
        at++;
        continue;
      }
      if (isBlank(byte)) {
        if (byte === LINE_FEED) this.#line++;
        at++;
        continue;
      }
      broken = this.#between(byte, at);
      at = this.#isAtRecord() ? at : at + 1;
    }
    const isWaiting = this.#state === 'in a record' || this.#state === 'before the array';
    if (!isWaiting && broken === null) used = bytes.length;
    if (broken === null && bytes.length - used > LONGEST_RECORD_BYTES) broken = this.#tooLong();
    this.#recordStart -= used;
    return this.#chunk(records, lines, ends, used, broken);
  }

  #isAtRecord(): boolean {
    return this.#state === 'in a record';
  }

  /** At something between the records: says what comes next, or what is wrong. */
  #between(byte: number, at: number): Unreadable | null {
    const isEnd = byte === CLOSE_ARRAY;
    switch (this.#state) {
      case 'after a record':
        if (!isEnd && byte !== COMMA)
          return new Unreadable('a comma is missing between two records', this.#line);
        if (isEnd) this.#endArray();
        else this.#state = 'before a record';
        return null;
      case 'after the array': {
        const whole = this.#isInObject ? 'object with the records' : 'array of records';
        return new Unreadable(`after the ${whole} there is something else`, this.#line);
      }
      case 'before a record':
        if (isEnd) return new Unreadable('after the last comma a record is missing', this.#line);
        break;
      default:
        if (isEnd) {
          this.#endArray();
          return null;
        }
    }
    this.#state = 'in a record';
    this.#recordStart = at;
    this.#recordLine = this.#line;
    this.#depth = 0;
    return null;
  }

  #endArray(): void {
    this.#state = 'after the array';
    this.#rest = this.#isInObject ? new ObjectRest(this.#name) : null;
  }

  #afterInObject(rest: ObjectRest, byte: number): Unreadable | null {
    const taken = rest.take(byte);
    if (taken === 'repeated') {
      const sentence = `"${this.#name}" is there a second time; put all records into one array`;
      return new Unreadable(sentence, this.#line);
    }
    if (taken === 'wrong') return new Unreadable('what follows the array of records is not JSON', this.#line);
    if (taken === 'ended') this.#rest = null;
    if (byte === LINE_FEED) this.#line++;
    return null;
  }

  /** Goes on to the byte after the record, or to the end of the bytes. */
  #walk(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === LINE_FEED) this.#line++;
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInText = false;
      } else if (byte === QUOTE) {
        this.#isInText = true;
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        this.#depth++;
      } else if (byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
        const isBare = this.#depth === 0;
        if (byte !== COMMA) this.#depth--;
        if (isBare || this.#depth === 0) {
          this.#state = 'after a record';
          return isBare ? at : at + 1;
        }
      }
    }
    return bytes.length;
  }

  #record(bytes: Buffer): unknown {
    if (!isUtf8(bytes)) {
      return new Unreadable('the record is not UTF-8 text; save the file as UTF-8', this.#recordLine);
    }
    const value = parsed(bytes.toString('utf8'));
    if (!(value instanceof Unparsable)) return value;
    return new Unreadable(`the record that begins here is not JSON: ${value.reason}`, this.#recordLine);
  }

  #tooLong(): Unreadable {
    if (this.#state === 'before the array') return this.#noArray();
    const longest = mebibytes(LONGEST_RECORD_BYTES);
    return new Unreadable(`the record that begins here is longer than ${longest}`, this.#recordLine);
  }

  /** Where the bracket is that opens the array; what is before it is looked at as a whole, for it is short. */
  #arrayStart(bytes: Buffer): number | 'not yet' | 'none' {
    if (bytes.length < BYTE_ORDER_MARK.length && bytes[0] === BYTE_ORDER_MARK[0]) return 'not yet';
    let depth = 0;
    let name: string | null = null;
    let isExpectingName = false;
    this.#line = 1;
    for (let at = bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === LINE_FEED) this.#line++;
      if (byte === QUOTE) {
        const end = endOfText(bytes, at);
        if (end === -1) return depth === 0 ? 'none' : 'not yet';
        if (isExpectingName && depth === 1) name = bytes.toString('utf8', at + 1, end);
        isExpectingName = false;
        at = end;
      } else if (byte === OPEN_ARRAY && (depth === 0 || (depth === 1 && name === this.#name))) {
        this.#state = 'before the first record';
        this.#isInObject = depth === 1;
        return at;
      } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
        depth++;
        isExpectingName = byte === OPEN_OBJECT;
      } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
        depth--;
        if (depth <= 0) return 'none';
      } else if (byte === COMMA) {
        isExpectingName = true;
      }
      if (depth === 0 && !isBlank(byte)) return 'none';
    }
    return 'not yet';
  }

  #chunk(
    records: readonly unknown[],
    lines: readonly number[],
    ends: readonly number[],
    usedBytes: number,
    broken: Unreadable | null,
  ): Chunk {
    const start = this.#offset;
    const bytes = this.#held.subarray(0, usedBytes);
    this.#held = this.#held.subarray(usedBytes);
    this.#offset += usedBytes;
    return { records, lines, ends, bytes, start, broken };
  }
}

/** Where the text closes whose quote is at `from`; -1 where it does not. */
function endOfText(bytes: Buffer, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    if (bytes[at] === BACKSLASH) at++;
    else if (bytes[at] === QUOTE) return at;
  }
  return -1;
}
