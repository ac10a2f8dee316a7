// Bytes to a JSON value, stricter than JSON.parse: the text must be UTF-8, and no object may say a key
// twice, since which of the two was meant is a guess.

import { isAscii, isUtf8 } from 'node:buffer';

export type ReadJson = { readonly value: unknown } | { readonly unreadable: string };

const SPACE = 0x20;
const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const EVERY_BYTE_COLON = 0x3a3a3a3a;
const QUOTE_LIMIT_CHARACTERS = 100;
const byteOrderMark = '\uFEFF';

export function readJson(bytes: Uint8Array): ReadJson {
  if (!isUtf8(bytes)) return { unreadable: 'The body is not valid UTF-8.' };
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = buffer.toString(isAscii(bytes) ? 'latin1' : 'utf8');
  if (text.startsWith(byteOrderMark)) text = text.slice(1);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { unreadable: `The body is not valid JSON: ${(error as SyntaxError).message}.` };
  }
  // Every key is followed by a quote and a colon. Where there are just as many of those as there are keys in
  // the result, none was said twice; otherwise (a nested value, a text holding `":`) look closely.
  if (countQuotedColons(bytes) !== countShallowKeys(value)) {
    const twice = findRepeatedKey(text);
    if (twice !== null) {
      const shown = JSON.stringify(twice.slice(0, QUOTE_LIMIT_CHARACTERS));
      return { unreadable: `The body says the key ${shown} twice in one object; say each key once.` };
    }
  }
  return { value };
}

/** Never fewer than there are keys. Four bytes at a time, because this looks at every byte of every upload. */
function countQuotedColons(bytes: Uint8Array): number {
  let count = 0;
  const aligned = bytes.byteOffset % 4 === 0;
  const words = aligned ? new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2) : [];
  for (let word = 0; word < words.length; word++) {
    const difference = words[word]! ^ EVERY_BYTE_COLON;
    const hasColon = ((difference - 0x01010101) & ~difference & 0x80808080) !== 0;
    if (!hasColon) continue;
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

/** Walks valid JSON of any depth without recursion. Only a key can be followed by a colon. */
function findRepeatedKey(text: string): string | null {
  const open: (Set<string> | null)[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x7b) open.push(null);
    else if (code === 0x7d) open.pop();
    else if (code === QUOTE) {
      const start = at++;
      while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
      let next = at + 1;
      while (text.charCodeAt(next) <= SPACE) next++;
      if (text.charCodeAt(next) !== COLON) continue;
      const key = JSON.parse(text.slice(start, at + 1)) as string;
      const keys = open[open.length - 1] ?? new Set();
      if (keys.has(key)) return key;
      keys.add(key);
      open[open.length - 1] = keys;
    }
  }
  return null;
}
