import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { slowBrotli } from '../../../tests/harness/bombs.ts';
import { unpack } from './decompression.ts';
import type { ContentEncoding } from './read-body.ts';

const LIMIT_BYTES = 1024;
const MIB = 1024 ** 2;

for (const inBackground of [false, true]) {
  describe(`unpacking ${inBackground ? 'in the background' : 'at once'}`, () => {
    const unpackParts = (encoding: ContentEncoding, part: Buffer, count: number) =>
      unpack(
        { bytes: new Uint8Array(Buffer.alloc(part.length * count, part)), encoding },
        LIMIT_BYTES,
        inBackground,
      );

    for (const { encoding, pack, most, what } of [
      { encoding: 'gzip', pack: gzipSync, most: 1000, what: 'members' },
      { encoding: 'zstd', pack: zstdCompressSync, most: 16, what: 'frames' },
    ] as const) {
      test(`accepts at most ${most} ${encoding} ${what}`, async () => {
        assert.equal(String(await unpackParts(encoding, pack('a'), most)), 'a'.repeat(most));
        assert.deepEqual(await unpackParts(encoding, pack(''), most + 1), {
          refusal: 'bad_request',
          message: `The body is not valid ${encoding}: more than ${most} ${what}.`,
        });
      });

      test(`refuses ${encoding} that unpacks to more than the limit`, async () => {
        const unpacked = await unpackParts(encoding, pack('a'.repeat(LIMIT_BYTES + 1)), 1);
        assert.ok('refusal' in unpacked && unpacked.refusal === 'content_too_large');
      });
    }
  });
}

test('unpacking in the background ends without an error if much follows the end of Brotli', async () => {
  const bytes = new Uint8Array(Buffer.concat([brotliCompressSync('a'), randomBytes(MIB)]));
  assert.deepEqual(await unpack({ bytes, encoding: 'br' }, LIMIT_BYTES, true), {
    refusal: 'bad_request',
    message: 'The body is not valid br: something follows its end.',
  });
});

test('unpacking in the background ends if it takes too long', { timeout: 30_000 }, async () => {
  const bytes = new Uint8Array(32 * MIB);
  bytes.set(slowBrotli(3 * MIB));
  const startedAtMs = performance.now();
  const unpacked = await unpack({ bytes, encoding: 'br' }, 32 * MIB, true);
  assert.ok('refusal' in unpacked);
  assert.match(unpacked.message, /takes longer than 5 s to decompress/);
  assert.ok(performance.now() - startedAtMs < 8000);
  // Frees the bytes as the ingest thread does. The process would crash if the last step were still read from them.
  bytes.buffer.transfer(0);
  await sleep(500);
});
