// Tests what only the ledger in PostgreSQL does: it waits for locks, and makes pages on the thread of its caller. The
// ledger of every store is tested in ../ledger.test.ts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { COPIED_ENTRIES, type LedgerPart } from '../ledger.ts';
import { USAGE_GROUP_ENTRIES } from '../ledger-table.ts';
import { openStore } from '../open-store.ts';
import type { OrganisationNumber } from '../rows.ts';
import type { Store } from '../store.ts';
import { interactionRow, recordRow } from '../test-rows.ts';
import { type TestDatabase, testServer } from './test-server.ts';

const STEP_MS = 10;

async function emptyStore(t: TestContext): Promise<{
  database: TestDatabase;
  store: Store;
  organisation: OrganisationNumber;
  ask(sql: string): Promise<readonly Record<string, unknown>[]>;
}> {
  const server = await testServer();
  const database = await server.newDatabase();
  const store = await openStore(database.url);
  t.after(async () => {
    await store.close();
    await database.drop();
  });
  const { organisation } = (await store.createOrganisation('one', randomUUID(), 1))!;
  return { database, store, organisation, ask: (sql) => server.ask(database.name, sql) };
}

const origin = () => ({
  requestId: randomUUID(),
  keyId: 'key',
  receivedAtMs: 1,
  bytes: 1,
  rejected: 0,
  causesJson: null,
});

/** Adds entries of one record each, with the numbers of the first group but for its last one. */
async function almostFillGroup(store: Store, organisation: OrganisationNumber): Promise<void> {
  const entry = {
    received: 1,
    created: 1,
    updated: 0,
    unchanged: 0,
    type: 'tags',
    ms: 0,
    ids: new Uint8Array(16),
  } as const;
  const bounds = { idsAfterSeq: 0, entriesAfterSeq: 0, usage: [] };
  for (let lastSeq = 0; lastSeq < USAGE_GROUP_ENTRIES - 1; ) {
    const entries: LedgerPart['entries'][number][] = [];
    while (entries.length < COPIED_ENTRIES && lastSeq < USAGE_GROUP_ENTRIES - 1) {
      entries.push({ ...entry, ...origin(), seq: ++lastSeq });
    }
    const isLast = lastSeq === USAGE_GROUP_ENTRIES - 1;
    await store.addLedgerPart(organisation, { ...bounds, entries, lastSeq, isLast });
  }
}

test('an entry that completes a group while entries expire is counted once', async (t) => {
  const { database, store, organisation, ask } = await emptyStore(t);
  await almostFillGroup(store, organisation);
  const uploads = async (): Promise<number> => {
    const usage = await store.usage(organisation, '1970-01-01', '1970-01-01');
    return usage.reduce((sum, one) => sum + one.uploads, 0);
  };
  assert.equal(await uploads(), USAGE_GROUP_ENTRIES - 1);

  const holder = new pg.Client(database.url);
  await holder.connect();
  const untilWaiting = async (count: number): Promise<void> => {
    const sql = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '${database.name}'`;
    while ((await ask(sql)).length !== count) await sleep(STEP_MS);
  };
  // The upload waits between taking its number and writing its entry. The expiry has read the numbers and waits for the
  // counter.
  await holder.query('BEGIN; LOCK TABLE ledger_entries IN SHARE MODE');
  const uploading = store.write({
    organisation,
    type: 'tags',
    batches: [[recordRow('tags')]],
    idempotencyRecord: null,
    entry: { ...origin(), received: 1 },
  });
  await untilWaiting(1);
  const expiring = store.expireLedgers(2, 2);
  await untilWaiting(2);
  await holder.end();
  const written = await uploading;
  assert.ok(written.kind === 'written');
  assert.equal(written.seq, USAGE_GROUP_ENTRIES);
  await expiring;
  assert.equal(await uploads(), USAGE_GROUP_ENTRIES);
  assert.deepEqual(await store.ledgerSize(), { entries: 0, ids: 0 });
});

test('interactions that wait for a row do not keep the number of an upload from being taken', async (t) => {
  const { database, store, organisation, ask } = await emptyStore(t);
  const interaction = { organisation, row: interactionRow(), idempotencyRecord: null, entry: origin() };
  const createdBy = async (): Promise<number> => {
    const written = await store.writeInteraction(interaction);
    assert.ok(written.kind === 'written');
    return written.tallies[0]!.created;
  };
  assert.equal(await createdBy(), 1);
  const holder = new pg.Client(database.url);
  await holder.connect();
  for (const [ending, created] of [
    ['ROLLBACK', 0],
    ['COMMIT', 1],
  ] as const) {
    await holder.query('BEGIN; DELETE FROM interactions');
    const writing = createdBy();
    const sql = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '${database.name}'`;
    while ((await ask(sql)).length === 0) await sleep(STEP_MS);
    const latest = await store.latestEntry(organisation);
    const uploaded = await store.write({
      organisation,
      type: 'tags',
      batches: [[recordRow('tags')]],
      idempotencyRecord: null,
      entry: { ...origin(), received: 1 },
    });
    assert.ok(uploaded.kind === 'written');
    assert.equal(uploaded.seq, latest + 1);
    await holder.query(ending);
    assert.equal(await writing, created);
    assert.equal(await store.latestEntry(organisation), latest + 1 + created);
  }
  await holder.end();
});

/** Returns how long the call took, and the longest time in which it let the thread do nothing else. */
async function blockedMs(call: () => Promise<unknown>): Promise<{ tookMs: number; longestMs: number }> {
  const startedAtMs = performance.now();
  let lastMs = startedAtMs;
  let longestMs = 0;
  let isOver = false;
  const turn = (): void => {
    longestMs = Math.max(longestMs, performance.now() - lastMs);
    lastMs = performance.now();
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await call();
  isOver = true;
  turn();
  return { tookMs: performance.now() - startedAtMs, longestMs };
}

test('a page of changes with long texts is made in steps, because the caller serves other requests, too', async (t) => {
  const { store, organisation } = await emptyStore(t);
  // JSON writes each character with six bytes.
  const text = '\u0001'.repeat(10_000);
  const texts = { name: text, type: text, allowed_branches: text, allowed_days: text };
  const rows = Array.from({ length: 120 }, () => recordRow('offers', texts));
  const entry = { ...origin(), received: rows.length };
  await store.write({ organisation, type: 'offers', batches: [rows], idempotencyRecord: null, entry });
  const shares: number[] = [];
  // Other work on the machine only makes the steps longer.
  for (let tries = 0; tries < 5; tries++) {
    const page = { after: { seq: 0, ids: null }, types: ['offers'], limit: 10_000 } as const;
    const { tookMs, longestMs } = await blockedMs(() => store.changes(organisation, page));
    t.diagnostic(`the longest of the steps took ${longestMs.toFixed()} of ${tookMs.toFixed()} ms`);
    shares.push(longestMs / tookMs);
  }
  assert.ok(Math.min(...shares) < 0.3, `the longest step took ${Math.min(...shares)} of the time`);
});
