// Decompresses a body according to its Content-Encoding, and never produces more bytes than the limit.

import { Readable } from 'node:stream';
import {
  brotliDecompressSync,
  createBrotliDecompress,
  createGunzip,
  createZstdDecompress,
  gunzipSync,
  zstdDecompressSync,
} from 'node:zlib';
import type { Refusal } from '../refusals.ts';
import type { Body, ContentEncoding } from './read-body.ts';
import { tooLarge } from './read-body.ts';

interface Unpacked {
  readonly buffer: Buffer<ArrayBuffer>;
  /** The number of input bytes that were decompressed. More input may follow. */
  readonly inputBytes: number;
}

/** The size of the output pieces. With 1 MiB, decompression takes a quarter less time than with Node's default. */
const PIECE_BYTES = 1024 * 1024;
/**
 * In the background, the input is decompressed in steps of this size. A step cannot be interrupted: the process cannot
 * even exit before its end. A byte of Brotli can describe 3 µs of work, so a step takes at most 0.2 s.
 */
const STEP_BYTES = 64 * 1024;
/** A body of 32 MiB that any encoder made takes a fraction of this time. */
const LONGEST_UNPACKING_MS = 5000;
/** The most frames in a Zstandard body. Every frame, however tiny, costs the start of a decompressor. */
const MOST_ZSTD_FRAMES = 16;
const MOST_GZIP_MEMBERS = 1000;
/** The bytes with which every gzip member begins. They also occur by chance, about once in 16 MB of compressed data. */
const gzipMagic = Buffer.from([0x1f, 0x8b, 0x08]);

const unpackers = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync };
const streams = { gzip: createGunzip, br: createBrotliDecompress, zstd: createZstdDecompress };

class UnpackingError extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

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
    if (error instanceof UnpackingError) return error.refusal;
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
  const endsAtMs = performance.now() + LONGEST_UNPACKING_MS;
  let from = 0;
  let unpackedBytes = 0;
  do {
    if (parts.length === MOST_ZSTD_FRAMES) return invalid(encoding, `more than ${MOST_ZSTD_FRAMES} frames`);
    const unpackPart = inBackground ? unpackInSteps : unpackAtOnce;
    const rest = bytes.subarray(from);
    const { buffer, inputBytes } = await unpackPart(rest, encoding, maxBytes - unpackedBytes, endsAtMs);
    parts.push(buffer);
    unpackedBytes += buffer.byteLength;
    from += inputBytes;
    if (unpackedBytes > maxBytes) return tooLarge(maxBytes);
  } while (encoding === 'zstd' && from < bytes.byteLength);
  if (encoding === 'br' && from < bytes.byteLength) return invalid(encoding, 'something follows its end');
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

function unpackAtOnce(bytes: Uint8Array, encoding: ContentEncoding, maxBytes: number): Unpacked {
  const { buffer, engine } = unpackers[encoding](bytes, {
    maxOutputLength: Math.max(1, maxBytes),
    info: true,
  }) as unknown as {
    readonly buffer: Buffer<ArrayBuffer>;
    readonly engine: { readonly bytesWritten: number };
  };
  return { buffer, inputBytes: engine.bytesWritten };
}

async function unpackInSteps(
  bytes: Uint8Array,
  encoding: ContentEncoding,
  maxBytes: number,
  endsAtMs: number,
): Promise<Unpacked> {
  // The loop below throws the stream's errors. Those of steps that are written after its end do not matter.
  const stream = streams[encoding]({ chunkSize: PIECE_BYTES }).on('error', () => {});
  const steps = Readable.from(stepsOf(bytes, endsAtMs)).on('error', (error) => stream.destroy(error));
  const pieces: Buffer[] = [];
  let unpackedBytes = 0;
  for await (const piece of steps.pipe(stream) as AsyncIterable<Buffer>) {
    pieces.push(piece);
    unpackedBytes += piece.byteLength;
    // The loop's end closes the stream, so nothing more is decompressed.
    if (unpackedBytes > maxBytes) break;
  }
  steps.destroy();
  return { buffer: Buffer.concat(pieces), inputBytes: stream.bytesWritten };
}

/** Throws if the steps take until `endsAtMs`. */
function* stepsOf(bytes: Uint8Array, endsAtMs: number): Generator<Uint8Array> {
  for (let from = 0; from < bytes.byteLength; from += STEP_BYTES) {
    if (performance.now() > endsAtMs) throw new UnpackingError(takesTooLong);
    // A copy, because the caller may free the bytes after an error, while the thread pool still reads the last step.
    yield new Uint8Array(bytes.subarray(from, from + STEP_BYTES));
  }
}

const takesTooLong: Refusal = {
  refusal: 'bad_request',
  message: `The body takes longer than ${LONGEST_UNPACKING_MS / 1000} s to decompress; compress it again, or send fewer records at once.`,
};

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
