// Decompresses a body according to its Content-Encoding, and never produces more bytes than the limit.

import { promisify } from 'node:util';
import {
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  zstdDecompress,
  zstdDecompressSync,
} from 'node:zlib';
import type { Refusal } from '../refusals.ts';
import type { Body, ContentEncoding } from './read-body.ts';
import { tooLarge } from './read-body.ts';

/**
 * What the functions in `unpackers` return with the option `info: true`. `bytesWritten` is the number of input bytes
 * that the function has consumed.
 */
interface Unpacked {
  readonly buffer: Buffer<ArrayBuffer>;
  readonly engine: { readonly bytesWritten: number };
}

interface UnpackOptions {
  readonly maxOutputLength: number;
  readonly info: true;
  readonly chunkSize?: number;
}

type Unpackers = Record<ContentEncoding, (bytes: Uint8Array, options: UnpackOptions) => unknown>;

/** The size of the output pieces. With 1 MiB, decompression takes a quarter less time than with Node's default. */
const PIECE_BYTES = 1024 * 1024;
/** The most frames in a Zstandard body. Every frame, however tiny, costs the start of a decompressor. */
const MOST_ZSTD_FRAMES = 16;
const MOST_GZIP_MEMBERS = 1000;
/** The bytes with which every gzip member begins. They also occur by chance, about once in 16 MB of compressed data. */
const gzipMagic = Buffer.from([0x1f, 0x8b, 0x08]);

const unpackers: Unpackers = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync };

const backgroundUnpackers: Unpackers = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
};

/**
 * Resolves to the decompressed bytes, or to a refusal if the body is invalid or has more than `maxBytes`. With
 * `inBackground`, the calling thread can work on other requests meanwhile. This is not worth it for a small body:
 * handing it over takes longer than decompressing it.
 */
export async function unpack(
  { bytes, encoding }: Body,
  maxBytes: number,
  inBackground: boolean,
): Promise<Uint8Array<ArrayBuffer> | Refusal> {
  if (encoding === null) return bytes;
  try {
    return await unpackWhole(bytes, encoding, maxBytes, inBackground);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(maxBytes) : invalid(encoding, message);
  }
}

/**
 * Decompresses the whole input.
 * - gunzip reads all members by itself, and throws if anything but zero bytes follows the last one.
 * - Zstandard allows several frames, but its function stops after the first one without an error. It is called for
 *   every frame.
 * - Brotli allows nothing after its end, but its function ignores what follows. Such a body is refused.
 */
async function unpackWhole(
  bytes: Uint8Array,
  encoding: ContentEncoding,
  maxBytes: number,
  inBackground: boolean,
): Promise<Uint8Array<ArrayBuffer> | Refusal> {
  if (encoding === 'gzip' && hasTooManyMembers(bytes)) {
    return invalid(encoding, `more than ${MOST_GZIP_MEMBERS} members`);
  }
  const parts: Buffer<ArrayBuffer>[] = [];
  let from = 0;
  let unpackedBytes = 0;
  do {
    if (parts.length === MOST_ZSTD_FRAMES) return invalid(encoding, `more than ${MOST_ZSTD_FRAMES} frames`);
    const options = { maxOutputLength: Math.max(1, maxBytes - unpackedBytes), info: true } as const;
    const rest = bytes.subarray(from);
    const { buffer, engine } = (
      inBackground
        ? await backgroundUnpackers[encoding](rest, { ...options, chunkSize: PIECE_BYTES })
        : unpackers[encoding](rest, options)
    ) as Unpacked;
    parts.push(buffer);
    unpackedBytes += buffer.byteLength;
    from += engine.bytesWritten;
    if (unpackedBytes > maxBytes) return tooLarge(maxBytes);
  } while (encoding === 'zstd' && from < bytes.byteLength);
  if (encoding === 'br' && from < bytes.byteLength) return invalid(encoding, 'something follows its end');
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

function hasTooManyMembers({ buffer, byteOffset, byteLength }: Uint8Array): boolean {
  const packed = Buffer.from(buffer, byteOffset, byteLength);
  let members = 0;
  for (let at = packed.indexOf(gzipMagic); at !== -1; at = packed.indexOf(gzipMagic, at + 1)) {
    if (++members > MOST_GZIP_MEMBERS) return true;
  }
  return false;
}

function invalid(encoding: ContentEncoding, why: string): Refusal {
  return { refusal: 'bad_request', message: `The body is not valid ${encoding}: ${why}.` };
}
