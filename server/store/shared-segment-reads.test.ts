import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OrganisationNumber } from './rows.ts';
import type { SegmentSet } from './segments.ts';
import { withSharedSegmentReads } from './shared-segment-reads.ts';

/** A store whose reads end when the test says so. */
function slowStore() {
  const reads: PromiseWithResolvers<SegmentSet>[] = [];
  const shared = withSharedSegmentReads({
    segments(_: OrganisationNumber): Promise<SegmentSet> {
      reads.push(Promise.withResolvers<SegmentSet>());
      return reads.at(-1)!.promise;
    },
  });
  return { reads, shared };
}

const setOf = (revision: number): SegmentSet => ({ revision, segments: [] });

test('calls during a read share the next one, which begins after them', async () => {
  const { reads, shared } = slowStore();
  const first = shared.segments(1);
  const others = [shared.segments(1), shared.segments(1)];
  assert.equal(reads.length, 1);
  reads[0]!.resolve(setOf(1));
  assert.equal((await first).revision, 1);
  const later = shared.segments(1);
  assert.equal(reads.length, 2);
  reads[1]!.resolve(setOf(2));
  assert.deepEqual(
    (await Promise.all(others)).map(({ revision }) => revision),
    [2, 2],
  );
  assert.equal(reads.length, 3);
  reads[2]!.resolve(setOf(3));
  assert.equal((await later).revision, 3);
});

test('organisations do not wait for each other, and a failed read fails only those that share it', async () => {
  const { reads, shared } = slowStore();
  const failing = shared.segments(1);
  const next = shared.segments(1);
  const other = shared.segments(2);
  assert.equal(reads.length, 2);
  reads[0]!.reject(new Error('gone'));
  await assert.rejects(failing, /gone/);
  reads[1]!.resolve(setOf(7));
  assert.equal((await other).revision, 7);
  reads[2]!.resolve(setOf(8));
  assert.equal((await next).revision, 8);
});
