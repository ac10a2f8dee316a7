// The bytes of a file, unpacked, in the order of the file and never more of them at once than a few blocks.

import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import { quote } from '@headgate/catalogue/kinds/kind.ts';

const BLOCK_BYTES = 256 * 1024;

const unpackers = {
  gz: { name: 'gzip', create: () => createGunzip({ chunkSize: BLOCK_BYTES }) },
  zst: { name: 'Zstandard', create: () => createZstdDecompress({ chunkSize: BLOCK_BYTES }) },
  br: { name: 'Brotli', create: () => createBrotliDecompress({ chunkSize: BLOCK_BYTES }) },
};

export type Compression = keyof typeof unpackers;

export const compressions = Object.keys(unpackers) as readonly Compression[];

/** Why a file cannot be read any further. Returned, not thrown. */
export class Unreadable {
  readonly reason: string;
  /** The line that is to blame, where one is. */
  readonly line: number | null;
  constructor(reason: string, line: number | null = null) {
    this.reason = reason;
    this.line = line;
  }
}

export interface Source {
  /** The next bytes; null at the end. */
  next(): Promise<Buffer | Unreadable | null>;
  /** How much of the file itself, packed as it is, was read so far. */
  readBytes(): number;
  close(): void;
}

export function openSource(path: string, compression: Compression | null): Source {
  const file = createReadStream(path, { highWaterMark: BLOCK_BYTES });
  const unpacker = compression === null ? null : unpackers[compression].create();
  // The error reaches the reader through the last stream; there is nothing left to do for the callback.
  const stream = unpacker === null ? file : pipeline(file, unpacker, () => {});
  const iterator = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  return {
    async next() {
      try {
        const { done, value } = await iterator.next();
        return done ? null : value;
      } catch (error) {
        return new Unreadable(whyUnreadable(error as NodeJS.ErrnoException, compression));
      }
    },
    readBytes: () => file.bytesRead,
    close() {
      file.destroy();
      stream.destroy();
    },
  };
}

/** In words for the person who named the file. */
export function whyUnreadable(
  { code, message }: NodeJS.ErrnoException,
  compression: Compression | null,
): string {
  if (code === 'ENOENT') return 'there is no such file or folder';
  if (code === 'EACCES' || code === 'EPERM') {
    return 'this user may not read it; change its permissions, or run as a user who may';
  }
  const isOfTheSystem = code === undefined || /^E[A-Z0-9]+$/.test(code);
  if (compression === null || isOfTheSystem) return `it cannot be read: ${message}`;
  const { name } = unpackers[compression];
  if (/unexpected end|Z_BUF_ERROR|incomplete|truncated/i.test(`${code} ${message}`)) {
    return `its ${name} data end too early: the file is cut. Copy it again`;
  }
  return `it is not ${name} data, although its name ends in .${compression}, or it is damaged (${message})`;
}

/** A few words on bytes that no text file begins with; null where they may be text. */
export function notText(start: Buffer): string | null {
  const begins = (...bytes: number[]): boolean => bytes.every((byte, place) => start[place] === byte);
  if (begins(0x1f, 0x8b)) return 'it is gzip data; let its name end in .gz';
  if (begins(0x28, 0xb5, 0x2f, 0xfd)) return 'it is Zstandard data; let its name end in .zst';
  if (begins(0xff, 0xfe) || begins(0xfe, 0xff)) return 'it is UTF-16 text; save it as UTF-8';
  if (begins(0x50, 0x4b, 0x03, 0x04)) return 'it is a ZIP archive or an office document; save it as CSV';
  if (start.includes(0) && !isTextWithNul(start))
    return `it is no text file: it begins with ${quote(start.toString('latin1', 0, 8))}`;
  return null;
}

/** A stray NUL makes no text file another kind of file: whoever reads its line tells what is wrong with it. */
function isTextWithNul(start: Buffer): boolean {
  const before = start.subarray(0, start.indexOf(0));
  const nulBytes = start.reduce((count, byte) => count + (byte === 0 ? 1 : 0), 0);
  return isUtf8(before) && !controlCharacter.test(before.toString()) && nulBytes * MOST_NUL < start.length;
}

/** Of so many bytes at most one is a NUL in what counts as text. */
const MOST_NUL = 20;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacter = /[\u0000-\u0008\u000e-\u001f]/;
