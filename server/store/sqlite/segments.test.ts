// Tests that SQLite undoes only what it may. Segments of every store are tested in ../segments.test.ts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStore } from '../open-store.ts';
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
