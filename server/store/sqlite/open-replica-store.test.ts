import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type ReplicaStore, type Store, StoreUnavailable, StoreUnusable } from '../store.ts';
import { recordRow } from '../test-rows.ts';
import { openReplicaStore } from './open-replica-store.ts';
import { openSqliteStore } from './open-sqlite-store.ts';
import { testFolder } from './test-folder.ts';

const RECORDS = 5000;
const RECORDS_PER_TURN = 500;
const ORGANISATION = 1;

interface Opened {
  readonly path: string;
  readonly whole: Store;
  readonly store: ReplicaStore;
}

async function opened(t: TestContext): Promise<Opened> {
  const path = join(testFolder(t), 'headgate.db');
  const whole = await openSqliteStore(path);
  const store = openReplicaStore(path, () => {});
  t.after(async () => {
    await store.close();
    await whole.close();
  });
  return { path, whole, store };
}

test('a database that does not exist is not made', (t) => {
  const path = join(testFolder(t), 'headgate.db');
  assert.throws(() => openReplicaStore(path, () => {}), StoreUnusable);
  assert.equal(existsSync(path), false);
});

test('a database that was moved away is neither read nor written until it is back', async (t) => {
  const { path, store } = await opened(t);
  await store.segments(ORGANISATION);
  renameSync(path, `${path}.away`);
  await assert.rejects(store.segments(ORGANISATION), StoreUnavailable);
  await assert.rejects(store.expireMembershipsUpTo(ORGANISATION, 1, 1), StoreUnavailable);
  renameSync(`${path}.away`, path);
  await store.segments(ORGANISATION);
  await store.expireMembershipsUpTo(ORGANISATION, 1, 1);
});

test('other work gets a turn between the steps of a list', async (t) => {
  const { whole, store } = await opened(t);
  const { organisation } = (await whole.createOrganisation(randomUUID(), randomUUID(), 1))!;
  const rows = Array.from({ length: RECORDS }, () => recordRow('tags'));
  await whole.write({ organisation, type: 'tags', batches: [rows], idempotencyRecord: null, entry: null });
  let turns = 0;
  let isRead = false;
  const count = (): void => {
    turns++;
    if (!isRead) setImmediate(count);
  };
  setImmediate(count);
  const { rows: read } = await store.snapshot(organisation, 'tags', null);
  isRead = true;
  assert.ok(read.length > 0);
  assert.ok(turns >= RECORDS / RECORDS_PER_TURN, `${turns} turns`);
});
