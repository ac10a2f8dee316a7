// Tests that SQLite undoes only what it may, and reads members in steps. Segments of every store are tested in
// ../segments.test.ts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStore } from '../open-store.ts';
import { MEMBERSHIPS_AT_ONCE } from '../segments.ts';
import { testFolder } from './test-folder.ts';

test('an evaluation that is ended while it begins undoes nothing more', async (t) => {
  const store = await openStore(join(testFolder(t), 'headgate.db'));
  t.after(() => store.close());
  const { organisation } = (await store.createOrganisation('one', randomUUID(), 1))!;
  const definition = { name: 'a', note: null, conditionJson: '{}', uses: [] };
  assert.ok(await store.saveSegment(organisation, 0, definition, 1));
  const { segment } = (await store.segments(organisation)).segments[0]!;
  // Both calls are made at once, so that the segment is saved before the second step of the evaluation.
  const [begun, isSaved] = await Promise.all([
    store.beginEvaluation({ organisation, segment, token: randomUUID() }, 1),
    store.saveSegment(organisation, 1, definition, 1),
  ]);
  assert.ok(isSaved);
  assert.equal(begun, null);
});

test('members that are not visible yet are skipped in steps, so that another organisation does not wait', async (t) => {
  const store = await openStore(join(testFolder(t), 'headgate.db'));
  t.after(() => store.close());
  const newSegment = async (name: string) => {
    const { organisation } = (await store.createOrganisation(name, randomUUID(), 1))!;
    assert.ok(
      await store.saveSegment(organisation, 0, { name: 'a', note: null, conditionJson: '{}', uses: [] }, 1),
    );
    const { segment } = (await store.segments(organisation)).segments[0]!;
    return { organisation, segment };
  };
  const large = await newSegment('large');
  const small = await newSegment('small');
  const key = { ...large, token: randomUUID() };
  const { lastSeq } = (await store.beginEvaluation(key, 1))!;
  const steps = 10;
  for (let step = 0; step < steps; step++) {
    const entered = Array.from({ length: MEMBERSHIPS_AT_ONCE }, () => ({
      customerId: randomUUID(),
      hasEntered: true,
    }));
    assert.ok(await store.writeMemberChanges(key, lastSeq + step * MEMBERSHIPS_AT_ONCE + 1, entered, 1));
  }
  const settled: string[] = [];
  const [ofLarge] = await Promise.all([
    store.memberships(large.organisation, large.segment, null, 10).finally(() => settled.push('large')),
    store.memberships(small.organisation, small.segment, null, 10).finally(() => settled.push('small')),
  ]);
  assert.deepEqual(ofLarge, []);
  assert.deepEqual(settled, ['small', 'large']);

  const entered = steps * MEMBERSHIPS_AT_ONCE;
  assert.ok(await store.finishEvaluation(key, { atMs: 1, ms: 1, entered, left: 0 }));
  const all = await store.memberships(large.organisation, large.segment, null, entered + 1);
  assert.equal(new Set(all.map(({ customerId }) => customerId)).size, entered);
  const page = await store.memberships(large.organisation, large.segment, all[4999]!, 3000);
  assert.deepEqual(page, all.slice(5000, 8000));
});
