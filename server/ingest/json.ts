// Parses JSON more strictly than JSON.parse. The text must be UTF-8. An object must not have the same key twice,
// because it would be unclear which of the two values was meant. The number of objects, arrays, keys and elements is
// limited.

import { isAscii, isUtf8 } from 'node:buffer';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../failure.ts';

/** The body cannot be parsed. The message tells the client why. */
export interface UnreadableBody {
  readonly kind: 'unreadable';
  readonly message: string;
}

export type ReadJson = { readonly value: unknown } | Failure;

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** The byte of `{`. Setting the bit 0x20 in the byte of `[` gives the same byte, so that one comparison finds both. */
const BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const EVERY_BYTE_CASE_BIT = 0x20202020;
const EVERY_BYTE_ONE = 0x01010101;
/** The most words that can be added up before a byte of the sum could overflow. */
const WORDS_PER_SUM = 255;
/** Keys with escapes are limited, because each is decoded separately. No known field needs them. */
const MOST_ESCAPED_KEYS = 20_000;
const MOST_ESCAPED_KEY_BYTES = 4 * 1024 * 1024;
/**
 * V8 hashes a longer string by its length alone, so JSON.parse compares each longer key with all others of its length:
 * 2000 of them take seconds.
 */
const LONGEST_HASHED_KEY_BYTES = 16_383;
const MOST_LONG_KEYS = 16;
/**
 * A longer number can take JSON.parse 5 µs, which is 20 times as long as a shorter one. No number needs more characters
 * to be exact.
 */
const LONGEST_QUICK_NUMBER_CHARACTERS = 25;
const MOST_LONG_NUMBERS = 10_000;
const byteOrderMark = '\uFEFF';

/**
 * The limits for one body. Without limits, a few megabytes of `[],[],…` or `0,0,…`, or millions of keys, would keep a
 * thread busy for seconds.
 */
export interface JsonLimits {
  /** The most objects and arrays together. */
  readonly containers: number;
  /** The most keys of objects and elements of arrays together, counted by the commas between them. */
  readonly members: number;
  readonly keys: number;
  /** What the client should do instead, as the end of a sentence. */
  readonly advice: string;
}

export function readJson(givenBytes: Uint8Array, limits: JsonLimits): ReadJson {
  const bytes = givenBytes.byteOffset % 4 === 0 ? givenBytes : givenBytes.slice();
  if (!isUtf8(bytes)) return new Failure('The body is not valid UTF-8.');
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const marks = buffer.includes(BACKSLASH) ? null : countMarks(bytes);
  const needsCloseLook =
    marks === null ||
    marks.openings > limits.containers ||
    marks.commas > limits.members ||
    marks.quotes > 2 * limits.keys ||
    mayHaveLongKeys(buffer) ||
    countLongNumbers(bytes, 0, bytes.length) > MOST_LONG_NUMBERS;
  const structure = needsCloseLook ? structureOf(bytes) : null;
  const surplus = structure && surplusOf(structure, limits);
  if (surplus !== null) return new Failure(`The body holds more than ${surplus}.`);
  const hasEscapedKeys = structure !== null && structure.escapedKeys.length > 0;
  let value: unknown;
  try {
    value = hasEscapedKeys ? parseEscapedKeys(buffer, structure.escapedKeys) : JSON.parse(textOf(buffer));
  } catch (error) {
    return new Failure(`The body is not valid JSON: ${(error as SyntaxError).message}.`);
  }
  if (hasEscapedKeys || mayHaveLostKeys(value, bytes, marks, structure)) {
    const twice = findRepeatedKey(buffer);
    if (twice !== null) {
      return new Failure(`The body has the key ${quote(twice)} twice in one object; use each key once.`);
    }
  }
  return { value };
}

function textOf(buffer: Buffer): string {
  const text = buffer.toString(isAscii(buffer) ? 'latin1' : 'utf8');
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}

/**
 * Returns true if an object in the bytes may have the same key twice. JSON.parse keeps only one of two equal keys, so
 * with a repeated key the bytes contain more keys than the value.
 * - The fast check compares the number of quotes. Each key and each text has two.
 * - If the numbers differ, or if the body has escapes, a slower check counts the keys in the bytes.
 * - The keys of deeply nested objects are not counted in the value, so a body with such objects always gives true.
 */
function mayHaveLostKeys(
  value: unknown,
  bytes: Uint8Array,
  marks: Marks | null,
  structure: Structure | null,
): boolean {
  const { keys, texts } = countShallow(value);
  return marks?.quotes !== 2 * (keys + texts) && (structure ?? structureOf(bytes)).keys !== keys;
}

/**
 * Parses JSON after removing unnecessary escapes from its keys. JSON.parse may confuse an escaped key with a key from a
 * text that it parsed earlier (nodejs/node#63785), and that text may belong to another organisation.
 */
function parseEscapedKeys(buffer: Buffer, escapedKeys: readonly KeySpan[]): unknown {
  const parts: Buffer[] = [];
  let copied = 0;
  for (const { start, end } of escapedKeys) {
    const key = buffer.toString('utf8', start, end);
    parts.push(buffer.subarray(copied, start), Buffer.from(withoutEscapes(key)));
    copied = end;
  }
  return JSON.parse(textOf(Buffer.concat([...parts, buffer.subarray(copied)])));
}

/**
 * Returns the key with as many characters as before, so that the positions in error messages stay right. A key with a
 * wrong escape is returned unchanged: it makes the whole text invalid.
 */
function withoutEscapes(keyJson: string): string {
  try {
    return JSON.stringify(JSON.parse(keyJson)).padEnd(keyJson.length);
  } catch {
    return keyJson;
  }
}

/** Returns whether two neighbouring quotes are so far apart that a long key may be between them. */
function mayHaveLongKeys(buffer: Buffer): boolean {
  let at = 0;
  while (at + LONGEST_HASHED_KEY_BYTES < buffer.length) {
    const next = buffer.lastIndexOf(QUOTE, at + LONGEST_HASHED_KEY_BYTES);
    if (next <= at) return true;
    at = next;
  }
  return false;
}

/** How often these bytes occur in the body, both outside and inside texts. */
interface Marks {
  readonly quotes: number;
  /** Opening brackets of objects and arrays. */
  readonly openings: number;
  readonly commas: number;
}

/** Counts four bytes at a time and without branches. It must be fast, because it reads every byte of every upload. */
function countMarks(bytes: Uint8Array): Marks {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
  let quotes = 0;
  let openings = 0;
  let commas = 0;
  for (let word = 0; word < words.length; ) {
    const end = Math.min(words.length, word + WORDS_PER_SUM);
    let quoteSums = 0;
    let openingSums = 0;
    let commaSums = 0;
    for (; word < end; word++) {
      quoteSums += bytesThatAre(QUOTE, words[word]!);
      openingSums += bytesThatAre(BRACE, words[word]! | EVERY_BYTE_CASE_BIT);
      commaSums += bytesThatAre(COMMA, words[word]!);
    }
    quotes += sumOfBytes(quoteSums);
    openings += sumOfBytes(openingSums);
    commas += sumOfBytes(commaSums);
  }
  for (let at = words.length << 2; at < bytes.byteLength; at++) {
    if (bytes[at] === QUOTE) quotes++;
    else if (bytes[at] === COMMA) commas++;
    else if ((bytes[at]! | SPACE) === BRACE) openings++;
  }
  return { quotes, openings, commas };
}

/** Returns a word with 1 in each byte that equals `wanted`, and 0 in the others. */
function bytesThatAre(wanted: number, word: number): number {
  const differing = word ^ (wanted * EVERY_BYTE_ONE);
  const isDifferent = ((differing & 0x7f7f7f7f) + 0x7f7f7f7f) | differing;
  return (~isDifferent & 0x80808080) >>> 7;
}

function sumOfBytes(word: number): number {
  return (word & 0xff) + ((word >>> 8) & 0xff) + ((word >>> 16) & 0xff) + (word >>> 24);
}

/** Returns which limit is exceeded and what to do instead, or null if no limit is exceeded. */
function surplusOf(found: Structure, { containers, members, keys, advice }: JsonLimits): string | null {
  if (found.containers > containers) return `${containers} objects and arrays; ${advice}`;
  if (found.commas > members) return `${members} keys and elements; ${advice}`;
  if (found.keys > keys) return `${keys} keys; ${advice}`;
  if (found.longKeys > MOST_LONG_KEYS) {
    return `${MOST_LONG_KEYS} keys that are longer than ${LONGEST_HASHED_KEY_BYTES} bytes; use shorter keys`;
  }
  if (found.longNumbers > MOST_LONG_NUMBERS) {
    return `${MOST_LONG_NUMBERS} numbers that are longer than ${LONGEST_QUICK_NUMBER_CHARACTERS} characters; round them`;
  }
  const { escapedKeys, escapedKeyBytes } = found;
  if (escapedKeys.length <= MOST_ESCAPED_KEYS && escapedKeyBytes <= MOST_ESCAPED_KEY_BYTES) return null;
  return `${MOST_ESCAPED_KEYS} keys, or ${MOST_ESCAPED_KEY_BYTES} bytes of keys, with escapes; write keys without escapes`;
}

/** The position of a key. `start` is its opening quote, `end` is the byte after its closing quote. */
interface KeySpan {
  readonly start: number;
  readonly end: number;
}

/** What the JSON contains outside of texts. */
interface Structure {
  readonly containers: number;
  readonly keys: number;
  readonly commas: number;
  /** The number of keys that are longer than `LONGEST_HASHED_KEY_BYTES`. */
  readonly longKeys: number;
  /** The number of numbers that are longer than `LONGEST_QUICK_NUMBER_CHARACTERS`. */
  readonly longNumbers: number;
  /** The positions of the keys with escapes. The list is incomplete if there are more than `MOST_ESCAPED_KEYS`. */
  readonly escapedKeys: readonly KeySpan[];
  readonly escapedKeyBytes: number;
}

function structureOf(bytes: Uint8Array): Structure {
  const escapedKeys: KeySpan[] = [];
  let escapedKeyBytes = 0;
  let longKeys = 0;
  const counts = walk(bytes, (start, end, isEscaped) => {
    if (end - start > LONGEST_HASHED_KEY_BYTES) longKeys++;
    if (!isEscaped) return;
    escapedKeyBytes += end - start;
    if (escapedKeys.length <= MOST_ESCAPED_KEYS) escapedKeys.push({ start, end });
  });
  return { ...counts, longKeys, escapedKeys, escapedKeyBytes };
}

/** 1 for the bytes that `walk` has to look at, which is faster than comparing each byte with all of them. */
const isMark = new Uint8Array(256);
for (const mark of '"{}[:,') isMark[mark.charCodeAt(0)] = 1;

const isInNumbers = new Uint8Array(256);
for (const character of '0123456789+-.eE') isInNumbers[character.charCodeAt(0)] = 1;

/**
 * Counts the numbers that are longer than `LONGEST_QUICK_NUMBER_CHARACTERS`, also inside texts, until there are too
 * many. It looks only at every 26th byte, because each of these numbers contains such a byte.
 */
function countLongNumbers(bytes: Uint8Array, from: number, to: number): number {
  let count = 0;
  let at = from + LONGEST_QUICK_NUMBER_CHARACTERS;
  while (at < to && count <= MOST_LONG_NUMBERS) {
    let end = at;
    if (isInNumbers[bytes[at]!] === 1) {
      let start = at;
      while (start > from && isInNumbers[bytes[start - 1]!] === 1) start--;
      while (end < to && isInNumbers[bytes[end]!] === 1) end++;
      if (end - start > LONGEST_QUICK_NUMBER_CHARACTERS) count++;
    }
    at = end + LONGEST_QUICK_NUMBER_CHARACTERS + 1;
  }
  return count;
}

/**
 * Counts the objects, arrays, keys, commas and long numbers outside of texts, until there are too many long numbers.
 * Calls `onKey` for every key and `onBrace` for every brace. A text is a key if a colon follows it. Does not throw if the
 * bytes are not valid JSON.
 */
function walk(
  bytes: Uint8Array,
  onKey: (start: number, end: number, isEscaped: boolean) => void,
  onBrace: (brace: number) => void = () => {},
): { containers: number; keys: number; commas: number; longNumbers: number } {
  const { length } = bytes;
  let containers = 0;
  let keys = 0;
  let commas = 0;
  let longNumbers = 0;
  let start = 0;
  let end = 0;
  let isEscaped = false;
  let at = 0;
  let afterMark = 0;
  while (at < length && longNumbers <= MOST_LONG_NUMBERS) {
    const byte = bytes[at++]!;
    if (isMark[byte] === 0) continue;
    if (at - afterMark > LONGEST_QUICK_NUMBER_CHARACTERS)
      longNumbers += countLongNumbers(bytes, afterMark, at - 1);
    if (byte === QUOTE) {
      start = at - 1;
      isEscaped = false;
      while (at < length) {
        const inside = bytes[at++]!;
        if (inside === QUOTE) break;
        if (inside !== BACKSLASH) continue;
        isEscaped = true;
        at++;
      }
      end = at;
    } else if (byte === COLON) {
      keys++;
      onKey(start, end, isEscaped);
    } else if (byte === COMMA) {
      commas++;
    } else if ((byte | 0x20) === BRACE) {
      containers++;
      if (byte === BRACE) onBrace(byte);
    } else if (byte === CLOSING_BRACE) {
      onBrace(byte);
    }
    afterMark = at;
  }
  longNumbers += countLongNumbers(bytes, afterMark, length);
  return { containers, keys, commas, longNumbers };
}

/** Counts the keys and texts of an object and of the objects in its arrays. A valid request has no deeper objects. */
function countShallow(value: unknown): { keys: number; texts: number } {
  let keys = 0;
  let texts = 0;
  const count = (object: object): readonly unknown[] => {
    const members = Object.values(object);
    keys += members.length;
    for (const member of members) if (typeof member === 'string') texts++;
    return members;
  };
  if (!isObject(value)) return { keys, texts };
  for (const member of count(value)) {
    if (!Array.isArray(member)) continue;
    for (const element of member) if (isObject(element)) count(element);
  }
  return { keys, texts };
}

function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/**
 * Returns the first key that occurs twice in one object, or null if there is none. The JSON must be valid. It may be
 * nested to any depth, because the function does not use recursion.
 */
function findRepeatedKey(buffer: Buffer): string | null {
  const open: (Set<string> | null)[] = [];
  let repeated: string | null = null;
  const onKey = (start: number, end: number, isEscaped: boolean): void => {
    if (repeated !== null) return;
    const key = isEscaped
      ? (JSON.parse(buffer.toString('utf8', start, end)) as string)
      : buffer.toString('utf8', start + 1, end - 1);
    const keys = open[open.length - 1] ?? new Set();
    if (keys.has(key)) repeated = key;
    keys.add(key);
    open[open.length - 1] = keys;
  };
  walk(buffer, onKey, (brace) => {
    if (brace === BRACE) open.push(null);
    else open.pop();
  });
  return repeated;
}
