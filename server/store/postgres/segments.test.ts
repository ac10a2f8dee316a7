// Tests that PostgreSQL deletes many memberships in steps, and only as long as it may. Segments of every store are tested in ../segments.test.ts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openStore } from '../open-store.ts';
import { EVALUATION_ABANDONED_MS, type EvaluationKey, MEMBERSHIPS_AT_ONCE } from '../segments.ts';
import type { Store } from '../store.ts';
import { testServer } from './test-server.ts';

const STEPS = 3;

interface Unfinished {
  readonly store: Store;
  readonly key: EvaluationKey;
  /** Locks the memberships that the last step deletes. The returned function releases them. */
  lockLast(): Promise<() => Promise<void>>;
  count(): Promise<number>;
}

/** Begins an evaluation that writes many members, and does not finish it. */
async function unfinishedEvaluation(t: TestContext): Promise<Unfinished> {
  const server = await testServer();
  const database = await server.newDatabase();
  const store = await openStore(database.url);
  const holder = new pg.Client(database.url);
  await holder.connect();
  t.after(async () => {
    await store.close();
    await database.drop();
  });
  const { organisation } = (await store.createOrganisation('one', randomUUID(), 1))!;
  const definition = { name: 'a', note: null, conditionJson: '{}', uses: [] };
  assert.ok(await store.saveSegment(organisation, 0, definition, 1));
  const { segments } = await store.segments(organisation);
  const { segment, lastSeq } = segments[0]!;
  const key = { organisation, segment, token: randomUUID() };
  assert.ok(await store.beginEvaluation(key, 1));
  for (let step = 0; step < STEPS; step++) {
    const changes = Array.from({ length: MEMBERSHIPS_AT_ONCE }, () => ({
      customerId: randomUUID(),
      hasEntered: true,
    }));
    assert.ok(await store.writeMemberChanges(key, lastSeq + 1 + step * MEMBERSHIPS_AT_ONCE, changes, 1));
  }
  return {
    store,
    key,
    async lockLast() {
      await holder.query(`BEGIN; SELECT 1 FROM segment_memberships
        WHERE entered_seq > ${lastSeq + (STEPS - 1) * MEMBERSHIPS_AT_ONCE} FOR UPDATE`);
      return () => holder.end();
    },
    async count() {
      const [row] = await server.ask(database.name, 'SELECT count(*)::integer FROM segment_memberships');
      return row!.count as number;
    },
  };
}

async function assertInSteps({ lockLast, count }: Unfinished, remove: () => Promise<unknown>): Promise<void> {
  const release = await lockLast();
  const removing = remove();
  while ((await count()) > MEMBERSHIPS_AT_ONCE) await sleep(10);
  await release();
  await removing;
  assert.equal(await count(), 0);
}

test('the memberships of a deleted segment are deleted in steps', { timeout: 30_000 }, async (t) => {
  const evaluation = await unfinishedEvaluation(t);
  const { store, key } = evaluation;
  assert.ok(await store.deleteSegment(key.organisation, 1, 'a'));
  await assertInSteps(evaluation, () => store.expireMemberships(0));
});

test('what an interrupted evaluation has written is deleted in steps', { timeout: 30_000 }, async (t) => {
  const evaluation = await unfinishedEvaluation(t);
  const { store, key } = evaluation;
  await assertInSteps(evaluation, () =>
    store.beginEvaluation({ ...key, token: randomUUID() }, EVALUATION_ABANDONED_MS + 2),
  );
});

test('an evaluation that is ended while it begins undoes nothing more', { timeout: 30_000 }, async (t) => {
  const { store, key, lockLast, count } = await unfinishedEvaluation(t);
  const release = await lockLast();
  const beginning = store.beginEvaluation({ ...key, token: randomUUID() }, EVALUATION_ABANDONED_MS + 2);
  while ((await count()) > MEMBERSHIPS_AT_ONCE) await sleep(10);
  const definition = { name: 'a', note: null, conditionJson: '{}', uses: [] };
  const saving = store.saveSegment(key.organisation, 1, definition, 1);
  // The segment is saved now, or when the step that waits for the lock has ended.
  await Promise.race([saving, sleep(3000)]);
  await release();
  assert.equal(await beginning, null);
  assert.ok(await saving);
});
