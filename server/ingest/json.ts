// Bytes to a JSON value, stricter than JSON.parse: the text must be UTF-8, no object may say a key twice, since
// which of the two was meant is a guess, and the number of objects, arrays, keys and elements is limited.

import { isAscii, isUtf8 } from 'node:buffer';

/** The body is nothing that can be looked into; the message says why, to its sender. */
export interface Unreadable {
  readonly kind: 'unreadable';
  readonly message: string;
}

export type ReadJson = { readonly value: unknown } | { readonly unreadable: string };

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** What `[` becomes, too, once its bit 0x20 is set. */
const BRACE = 0x7b;
const EVERY_BYTE_CASE_BIT = 0x20202020;
const EVERY_BYTE_ONE = 0x01010101;
/** So many words are counted together before a byte of the sum could overflow. */
const WORDS_PER_SUM = 255;
const QUOTE_LIMIT_CHARACTERS = 100;
const byteOrderMark = '\uFEFF';

/** A few megabytes of `[],[],…` or `0,0,…`, or millions of keys, would otherwise keep a thread busy for seconds. */
export interface JsonLimits {
  /** Objects and arrays. */
  readonly containers: number;
  /** Keys of objects and elements of arrays. They are counted by the commas between them. */
  readonly members: number;
  /** What to do instead, as the end of a sentence. */
  readonly advice: string;
}

export function readJson(givenBytes: Uint8Array, limits: JsonLimits): ReadJson {
  const bytes = givenBytes.byteOffset % 4 === 0 ? givenBytes : givenBytes.slice();
  if (!isUtf8(bytes)) return { unreadable: 'The body is not valid UTF-8.' };
  const marks = countMarks(bytes);
  const surplus = findSurplus(bytes, marks, limits);
  if (surplus !== null) return { unreadable: `The body holds more than ${surplus}; ${limits.advice}.` };
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = buffer.toString(isAscii(bytes) ? 'latin1' : 'utf8');
  if (text.startsWith(byteOrderMark)) text = text.slice(1);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { unreadable: `The body is not valid JSON: ${(error as SyntaxError).message}.` };
  }
  const plain = withPlainKeys(text);
  if (plain !== null) value = JSON.parse(plain);
  if (plain !== null || mayHaveLostKeys(value, bytes, marks)) {
    const twice = findRepeatedKey(text);
    if (twice !== null) {
      const shown = JSON.stringify(twice.slice(0, QUOTE_LIMIT_CHARACTERS));
      return { unreadable: `The body says the key ${shown} twice in one object; say each key once.` };
    }
  }
  return { value };
}

/**
 * Of a key that was said twice only one is in the value. Every key and every text has two quotes: where there are
 * just as many quotes as these need, nothing is lost. Texts with quotes in them need a look at what is outside
 * texts, and nested values, whose keys are not counted, need the closest look of all.
 */
function mayHaveLostKeys(value: unknown, bytes: Uint8Array, { quotes }: Marks): boolean {
  const { keys, texts } = countShallow(value);
  return quotes !== 2 * (keys + texts) && countStructure(bytes).keys !== keys;
}

/**
 * Valid JSON with every key spelt without escapes that it can do without; null where no key is escaped.
 * JSON.parse may read an escaped key as another one that it met in an earlier text (nodejs/node#63785), and
 * that text may have been another organisation's.
 */
function withPlainKeys(text: string): string | null {
  let plain = '';
  let copied = 0;
  let end = 0;
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', end)) {
    end = endOfString(text, at);
    if (!isKeyThatEndsAt(text, end)) continue;
    const start = text.lastIndexOf('"', at);
    const key = JSON.parse(text.slice(start, end + 1)) as string;
    plain += text.slice(copied, start) + JSON.stringify(key);
    copied = end + 1;
  }
  return copied === 0 ? null : plain + text.slice(copied);
}

/** Where the string that `from` lies in has its closing quote. */
function endOfString(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}

/** In valid JSON only a key is followed by a colon. */
function isKeyThatEndsAt(text: string, closingQuote: number): boolean {
  let next = closingQuote + 1;
  while (text.charCodeAt(next) <= SPACE) next++;
  return text.charCodeAt(next) === COLON;
}

/** How often these bytes occur, in texts too. */
interface Marks {
  readonly quotes: number;
  /** Of objects and arrays. */
  readonly openings: number;
  readonly commas: number;
}

/** Four bytes at a time and without a branch, because this looks at every byte of every upload. */
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

/** A word with a one in each byte that is the wanted one, and zeros elsewhere. */
function bytesThatAre(wanted: number, word: number): number {
  const differing = word ^ (wanted * EVERY_BYTE_ONE);
  const isDifferent = ((differing & 0x7f7f7f7f) + 0x7f7f7f7f) | differing;
  return (~isDifferent & 0x80808080) >>> 7;
}

function sumOfBytes(word: number): number {
  return (word & 0xff) + ((word >>> 8) & 0xff) + ((word >>> 16) & 0xff) + (word >>> 24);
}

/** Returns what there is too much of, or null. A close look is needed only if the surplus may be in texts. */
function findSurplus(
  bytes: Uint8Array,
  { openings, commas }: Marks,
  { containers, members }: JsonLimits,
): string | null {
  if (openings <= containers && commas <= members) return null;
  const held = countStructure(bytes);
  if (held.containers > containers) return `${containers} objects and arrays`;
  return held.commas > members ? `${members} keys and elements` : null;
}

/** Outside texts every colon belongs to a key. */
function countStructure(bytes: Uint8Array): { containers: number; keys: number; commas: number } {
  let containers = 0;
  let keys = 0;
  let commas = 0;
  let isInText = false;
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) at += byte === BACKSLASH ? 1 : 0;
    else if ((byte | 0x20) === BRACE) containers++;
    else if (byte === COLON) keys++;
    else if (byte === COMMA) commas++;
  }
  return { containers, keys, commas };
}

/** The keys and texts of the object and of the objects in its arrays: all there are in a well-formed request. */
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

/** Walks valid JSON of any depth without recursion. */
function findRepeatedKey(text: string): string | null {
  const open: (Set<string> | null)[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BRACE) open.push(null);
    else if (code === 0x7d) open.pop();
    else if (code === QUOTE) {
      const start = at;
      at = endOfString(text, start + 1);
      if (!isKeyThatEndsAt(text, at)) continue;
      const key = JSON.parse(text.slice(start, at + 1)) as string;
      const keys = open[open.length - 1] ?? new Set();
      if (keys.has(key)) return key;
      keys.add(key);
      open[open.length - 1] = keys;
    }
  }
  return null;
}
