// Bytes to a JSON value, stricter than JSON.parse: the text must be UTF-8, no object may say a key twice, since
// which of the two was meant is a guess, and there is an end to how many objects, arrays and keys it may hold.

import { isAscii, isUtf8 } from 'node:buffer';

/** The body is nothing that can be looked into; the message says why, to its sender. */
export interface Unreadable {
  readonly kind: 'unreadable';
  readonly message: string;
}

export type ReadJson = { readonly value: unknown } | { readonly unreadable: string };

const SPACE = 0x20;
const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** What `[` becomes, too, once its bit 0x20 is set. */
const BRACE = 0x7b;
const EVERY_BYTE_COLON = 0x3a3a3a3a;
const EVERY_BYTE_BRACE = 0x7b7b7b7b;
const EVERY_BYTE_CASE_BIT = 0x20202020;
const QUOTE_LIMIT_CHARACTERS = 100;
const byteOrderMark = '\uFEFF';

/** A few megabytes of `[],[],…`, or millions of keys, would otherwise keep a thread busy for seconds. */
export interface JsonLimits {
  /** Objects and arrays. */
  readonly containers: number;
  readonly keys: number;
  /** What to do instead, as the end of a sentence. */
  readonly advice: string;
}

export function readJson(givenBytes: Uint8Array, limits: JsonLimits): ReadJson {
  const bytes = givenBytes.byteOffset % 4 === 0 ? givenBytes : givenBytes.slice();
  if (!isUtf8(bytes)) return { unreadable: 'The body is not valid UTF-8.' };
  const quotedColons = countQuotedColons(bytes);
  const surplus = findSurplus(bytes, quotedColons, limits);
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
  // Every key is followed by a quote and a colon. Where there are just as many of those as there are keys in
  // the result, none was said twice; otherwise (a nested value, a text holding `":`) look closely.
  if (plain !== null || quotedColons !== countShallowKeys(value)) {
    const twice = findRepeatedKey(text);
    if (twice !== null) {
      const shown = JSON.stringify(twice.slice(0, QUOTE_LIMIT_CHARACTERS));
      return { unreadable: `The body says the key ${shown} twice in one object; say each key once.` };
    }
  }
  return { value };
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

/** Four bytes at a time, because this and the next look at every byte of every upload. */
function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

function hasZeroByte(word: number): boolean {
  return ((word - 0x01010101) & ~word & 0x80808080) !== 0;
}

/** Never fewer than there are keys. */
function countQuotedColons(bytes: Uint8Array): number {
  let count = 0;
  const words = wordsOf(bytes);
  for (let word = 0; word < words.length; word++) {
    if (!hasZeroByte(words[word]! ^ EVERY_BYTE_COLON)) continue;
    const first = word << 2;
    for (let at = first; at < first + 4; at++) {
      if (bytes[at] === COLON && followsQuote(bytes, at)) count++;
    }
  }
  for (let at = words.length << 2; at < bytes.byteLength; at++) {
    if (bytes[at] === COLON && followsQuote(bytes, at)) count++;
  }
  return count;
}

/**
 * What there is too much of, or null. Looks closely only where so many words hold a `{` or `[`, or so many quotes
 * are followed by a colon, that there is too much unless texts hold them.
 */
function findSurplus(
  bytes: Uint8Array,
  quotedColons: number,
  { containers, keys }: JsonLimits,
): string | null {
  if (quotedColons <= keys && countWordsWithOpening(bytes) * 4 <= containers) return null;
  const held = countStructure(bytes);
  if (held.containers > containers) return `${containers} objects and arrays`;
  return held.keys > keys ? `${keys} keys` : null;
}

function countWordsWithOpening(bytes: Uint8Array): number {
  const words = wordsOf(bytes);
  let count = 0;
  for (let word = 0; word < words.length; word++) {
    if (hasZeroByte((words[word]! | EVERY_BYTE_CASE_BIT) ^ EVERY_BYTE_BRACE)) count++;
  }
  return count;
}

/** Outside texts every colon belongs to a key. */
function countStructure(bytes: Uint8Array): { containers: number; keys: number } {
  let containers = 0;
  let keys = 0;
  let isInText = false;
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) at += byte === BACKSLASH ? 1 : 0;
    else if ((byte | 0x20) === BRACE) containers++;
    else if (byte === COLON) keys++;
  }
  return { containers, keys };
}

function followsQuote(bytes: Uint8Array, at: number): boolean {
  let before = at - 1;
  while (bytes[before]! <= SPACE) before--;
  return bytes[before] === QUOTE;
}

/** The keys of the object and of the objects in its arrays: all there are in a well-formed request. */
function countShallowKeys(value: unknown): number {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return 0;
  const members = Object.values(value);
  let count = members.length;
  for (const member of members) {
    if (!Array.isArray(member)) continue;
    for (const element of member) {
      if (element === null || typeof element !== 'object' || Array.isArray(element)) continue;
      count += Object.keys(element).length;
    }
  }
  return count;
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
