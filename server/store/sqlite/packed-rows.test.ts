import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { packedSlices, packRows, ROWS_PER_SLICE, rowsIn } from './packed-rows.ts';

test('packed rows are unpacked unchanged, batch by batch', () => {
  const text = fc.string({ unit: 'binary', maxLength: 30 });
  const cell = fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), text);
  const batch = fc.array(fc.array(cell, { minLength: 1, maxLength: 4 }), { maxLength: 250 });
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 4 }), (batches) => {
      const packed = packRows(batches);
      const slices = packedSlices(packed);
      assert.deepEqual(
        slices.map((ofBatch) => ofBatch.flatMap(rowsIn)),
        batches,
      );
      assert.equal(packed.rowCount, batches.flat().length);
      for (const slice of slices.flat()) {
        assert.equal(rowsIn(slice).length, slice.rowCount);
        assert.ok(slice.rowCount <= ROWS_PER_SLICE);
      }
    }),
    { numRuns: 200 },
  );
});

test('rows that become longer than the first ones are packed correctly', () => {
  const batches = [0, 1000].map((longer) =>
    Array.from({ length: 1000 }, (_, row) => ['€🎓'.repeat((longer + row) / 10), row]),
  );
  const unpacked = packedSlices(packRows(batches)).map((slices) => slices.flatMap(rowsIn));
  assert.deepEqual(unpacked, batches);
});

test('a few long rows before many short ones do not reserve far too much memory', () => {
  const rows = Array.from({ length: 100_000 }, (_, row) => [
    row < ROWS_PER_SLICE ? 'x'.repeat(100_000) : 'x',
  ]);
  const { bytes } = packRows([rows]);
  const roomBytes = bytes.buffer.byteLength;
  assert.ok(roomBytes <= 2.1 * bytes.byteLength, `${roomBytes} bytes for ${bytes.byteLength}`);
});
