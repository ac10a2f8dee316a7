import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { packedSlices, packRows, rowCountOf, rowsIn } from './packed-rows.ts';

test('rows come out of their bytes as they went in, batch by batch', () => {
  const text = fc.string({ unit: 'binary', maxLength: 30 });
  const cell = fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), text);
  const batch = fc.array(fc.array(cell, { minLength: 1, maxLength: 4 }), { maxLength: 250 });
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 4 }), (batches) => {
      const packed = packRows(batches);
      const unpacked = packedSlices(packed).map((slices) => slices.flatMap(rowsIn));
      assert.deepEqual(unpacked, batches);
      assert.equal(rowCountOf(packed), batches.flat().length);
    }),
    { numRuns: 200 },
  );
});

test('rows that grow longer and wider than the first ones promised have room all the same', () => {
  const batches = [3, 3].map((_, batch) =>
    Array.from({ length: 1000 }, (_, row) => ['€🎓'.repeat((batch * 1000 + row) / 10), row]),
  );
  const unpacked = packedSlices(packRows(batches)).map((slices) => slices.flatMap(rowsIn));
  assert.deepEqual(unpacked, batches);
});
