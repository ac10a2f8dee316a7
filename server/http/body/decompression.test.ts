import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { unpack } from './decompression.ts';
import type { ContentEncoding } from './read-body.ts';

const LIMIT_BYTES = 1024;

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
