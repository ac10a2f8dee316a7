// What an object has after its array of records, looked at byte by byte: records in it must not be passed over.

import { parsed } from './ndjson.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A character of a name may be written as an escape of so many bytes. */
const MOST_BYTES_PER_CHARACTER = 6;

/** `repeated`: the name comes once more. `wrong`: it is not JSON. */
export type Taken = 'open' | 'ended' | 'repeated' | 'wrong';

export class ObjectRest {
  readonly #name: string;
  /** The brackets that close what is open within the object. */
  readonly #closing: number[] = [];
  /** What the object itself waits for; within its values only brackets and texts are looked at. */
  #expected: 'comma' | 'name' | 'colon' | 'value' = 'comma';
  #isInText = false;
  #isEscaped = false;
  #text: number[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  take(byte: number): Taken {
    if (this.#isInText) return this.#inText(byte);
    if (isBlank(byte)) return 'open';
    return this.#closing.length > 0 ? this.#inValue(byte) : this.#inObject(byte);
  }

  #inObject(byte: number): Taken {
    const mayEnd = this.#expected === 'comma' || this.#expected === 'value';
    if (byte === CLOSE_OBJECT) return mayEnd ? 'ended' : 'wrong';
    if (byte === COMMA) return this.#expect(mayEnd, 'name');
    if (byte === COLON) return this.#expect(this.#expected === 'colon', 'value');
    if (byte === QUOTE) {
      this.#openText();
      return this.#expected === 'name' || this.#expected === 'value' ? 'open' : 'wrong';
    }
    if (this.#expected !== 'value') return 'wrong';
    return this.#inValue(byte);
  }

  #inValue(byte: number): Taken {
    if (byte === QUOTE) this.#openText();
    else if (byte === OPEN_OBJECT) this.#closing.push(CLOSE_OBJECT);
    else if (byte === OPEN_ARRAY) this.#closing.push(CLOSE_ARRAY);
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      if (this.#closing.pop() !== byte) return 'wrong';
      if (this.#closing.length === 0) this.#expected = 'comma';
    }
    return 'open';
  }

  #expect(isInPlace: boolean, next: 'name' | 'value'): Taken {
    this.#expected = next;
    return isInPlace ? 'open' : 'wrong';
  }

  #openText(): void {
    this.#isInText = true;
    this.#text = [];
  }

  #inText(byte: number): Taken {
    if (byte !== QUOTE || this.#isEscaped) {
      this.#isEscaped = byte === BACKSLASH && !this.#isEscaped;
      if (this.#text.length <= this.#name.length * MOST_BYTES_PER_CHARACTER) this.#text.push(byte);
      return 'open';
    }
    this.#isInText = false;
    if (this.#closing.length > 0) return 'open';
    const isName = this.#expected === 'name';
    this.#expected = isName ? 'colon' : 'comma';
    return isName && parsed(`"${Buffer.from(this.#text).toString()}"`) === this.#name ? 'repeated' : 'open';
  }
}

export function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
