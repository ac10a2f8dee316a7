// Undoes a body's Content-Encoding, never producing more than the limit.

import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { Body, ContentEncoding } from './read-body.ts';
import { tooLarge } from './read-body.ts';
import type { Refusal } from './refusals.ts';

const unpackers: Record<
  ContentEncoding,
  (bytes: Uint8Array, options: { maxOutputLength: number }) => Buffer
> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

export function unpack({ bytes, encoding }: Body, maxBytes: number): Uint8Array | Refusal {
  if (encoding === null) return bytes;
  try {
    return unpackers[encoding](bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ERR_BUFFER_TOO_LARGE') return tooLarge(maxBytes);
    return {
      refusal: 'bad_request',
      message: `The body is not valid ${encoding}: ${(error as Error).message}.`,
    };
  }
}
