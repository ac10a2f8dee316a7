// Reads the uncompressed bytes of a file in order, with only a few blocks in memory.

import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../../failure.ts';

const BLOCK_BYTES = 256 * 1024;

const unpackers = {
  gz: { name: 'gzip', create: () => createGunzip({ chunkSize: BLOCK_BYTES }) },
  zst: { name: 'Zstandard', create: () => createZstdDecompress({ chunkSize: BLOCK_BYTES }) },
  br: { name: 'Brotli', create: () => createBrotliDecompress({ chunkSize: BLOCK_BYTES }) },
};

export type Compression = keyof typeof unpackers;

export const compressions = Object.keys(unpackers) as readonly Compression[];

/** Why a file cannot be read, or loaded, any further. */
export class Unreadable extends Failure {
  /** The faulty line, if the problem is in one line. */
  readonly line: number | null;

  constructor(reason: string, line: number | null = null) {
    super(reason);
    this.line = line;
  }
}

export interface Source {
  /** Resolves to the next bytes, or to null at the end. */
  next(): Promise<Buffer | Unreadable | null>;
  /** Returns the number of bytes read so far of the file as stored, possibly compressed. */
  readBytes(): number;
  close(): void;
}

export function openSource(path: string, compression: Compression | null): Source {
  const file = createReadStream(path, { highWaterMark: BLOCK_BYTES });
  const unpacker = compression === null ? null : unpackers[compression].create();
  // The callback does nothing, because errors reach the reader through the last stream.
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

/** Returns a source that returns a block that was already read, and then the blocks of the given source. */
export function withFirst(block: Buffer | null, source: Source): Source {
  let first = block;
  return {
    ...source,
    next: async () => {
      const next = first ?? (await source.next());
      first = null;
      return next;
    },
  };
}

/** Returns a sentence that explains the error to the user. */
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
    return `its ${name} data ends too early: the file is truncated. Copy it again`;
  }
  return `it is not ${name} data, although its name ends in .${compression}, or it is damaged (${message})`;
}

/** Returns a sentence if a file that begins with these bytes is not a text file, otherwise null. */
export function notText(start: Buffer): string | null {
  const begins = (...bytes: number[]): boolean => bytes.every((byte, place) => start[place] === byte);
  if (begins(0x1f, 0x8b)) return 'it is gzip data; rename it so that its name ends in .gz';
  if (begins(0x28, 0xb5, 0x2f, 0xfd)) return 'it is Zstandard data; rename it so that its name ends in .zst';
  if (begins(0xff, 0xfe) || begins(0xfe, 0xff)) return 'it is UTF-16 text; save it as UTF-8';
  if (begins(0x50, 0x4b, 0x03, 0x04)) return 'it is a ZIP archive or an office document; save it as CSV';
  if (start.includes(0) && !isTextWithNul(start))
    return `it is not a text file: it begins with ${quote(start.toString('latin1', 0, 8))}`;
  return null;
}

/** Returns true for text with a few stray NUL bytes. The reader or the server reports the lines that contain them. */
function isTextWithNul(start: Buffer): boolean {
  const before = start.subarray(0, start.indexOf(0));
  const nulBytes = start.reduce((count, byte) => count + (byte === 0 ? 1 : 0), 0);
  return isUtf8(before) && !controlCharacter.test(before.toString()) && nulBytes * MOST_NUL < start.length;
}

/** A file with NUL bytes counts as text only if fewer than one byte in 20 is NUL. */
const MOST_NUL = 20;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression searches for control characters
const controlCharacter = /[\u0000-\u0008\u000e-\u001f]/;
