// Bodies that are made to harm: small ones that decompress to a gigabyte of zeros, and ones that take long to decompress.

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

/**
 * Returns Brotli of about this many bytes that takes 3 µs per byte to decompress. It consists of meta-blocks that each
 * contain one blank, and tables that are expensive to read: 256 block types, and context maps in their slowest form.
 */
export function slowBrotli(bytes: number): Buffer {
  let bits = '';
  const put = (value: number, count: number): void => {
    for (let bit = 0; bit < count; bit++) bits += (value >> bit) & 1;
  };
  const codeOfOneSymbol = (symbol: number, symbolBits: number): void => {
    put(1, 4);
    put(symbol, symbolBits);
  };
  put(0, 20); // Not the last meta-block, one byte long, compressed.
  put(0b1111111_111_1, 11); // 256 types of literal blocks.
  codeOfOneSymbol(0, 9);
  codeOfOneSymbol(0, 5);
  put(3, 2); // The length of the first block.
  put(0, 8); // One type of commands and of distances, and no extra bits for distances.
  put(0, 2 * 256); // Context modes.
  put(0b0_001_1, 5); // Three literal trees,
  put(0, 1); // in a context map without runs,
  codeOfOneSymbol(2, 2); // which always names the last tree,
  put(1, 1); // after it was moved to the front.
  put(0, 1); // One distance tree.
  for (let tree = 0; tree < 3; tree++) codeOfOneSymbol(' '.charCodeAt(0), 8);
  codeOfOneSymbol(8, 10); // A command that inserts one literal.
  codeOfOneSymbol(0, 6);
  // A window of 64 KiB, the meta-blocks, and an empty last one.
  const all = `0${bits.repeat((8 * bytes) / bits.length)}11`;
  return Buffer.from(
    Array.from({ length: Math.ceil(all.length / 8) }, (_, at) => {
      const lowestFirst = all.slice(8 * at, 8 * at + 8);
      return Number.parseInt(lowestFirst.split('').toReversed().join(''), 2);
    }),
  );
}
