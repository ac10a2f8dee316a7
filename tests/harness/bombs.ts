// Small bodies that decompress to a gigabyte of zeros.

import { once } from 'node:events';
import {
  type BrotliCompress,
  constants,
  createBrotliCompress,
  createZstdCompress,
  deflateRawSync,
  type ZstdCompress,
} from 'node:zlib';

const MIB = 1024 ** 2;
const UNPACKED_MIB = 1024;

/** About a megabyte, which is the most that deflate can compress. A flushed block can be repeated unchanged. */
export function gzipBomb(): Uint8Array {
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
  const mebibyte = deflateRawSync(Buffer.alloc(MIB), { finishFlush: constants.Z_FULL_FLUSH, level: 9 });
  return Buffer.concat([header, ...new Array<Buffer>(UNPACKED_MIB).fill(mebibyte)]);
}

/** About a kilobyte. */
export function brotliBomb(): Promise<Uint8Array> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 2, [constants.BROTLI_PARAM_LGWIN]: 24 };
  return packed(createBrotliCompress({ params }));
}

/** About 32 kilobytes. */
export function zstdBomb(): Promise<Uint8Array> {
  return packed(createZstdCompress());
}

async function packed(packer: BrotliCompress | ZstdCompress): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  packer.on('data', (chunk: Buffer) => chunks.push(chunk));
  const zeros = Buffer.alloc(16 * MIB);
  for (let sentMib = 0; sentMib < UNPACKED_MIB; sentMib += 16) {
    if (!packer.write(zeros)) await once(packer, 'drain');
  }
  packer.end();
  await once(packer, 'end');
  return Buffer.concat(chunks);
}

/** Returns a gzip member of this many bytes that decompresses to nothing, in blocks that each take time to read. */
export function gzipOfEmptyBlocks(bytes: number): Buffer {
  const header = Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff]);
  // Four empty blocks with fixed codes, ten bits each: not final, type 1, end of block.
  const blocks = Buffer.alloc(Math.floor(bytes / 5) * 5, Buffer.from([0x02, 0x08, 0x20, 0x80, 0x00]));
  const end = Buffer.concat([Buffer.from([0x03, 0x00]), Buffer.alloc(8)]);
  return Buffer.concat([header, blocks, end]);
}
