// Tests how much PostgreSQL reads for a list, and that a list that takes too long is refused.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { waitUntil } from '../../../tests/harness/waiting.ts';
import { type OpenedStore, openStore } from '../open-store.ts';
import { COUNT_STEP_ENTRIES } from '../page-limits.ts';
import { StoreBusy } from '../store.ts';
import { type TestDatabase, type TestServer, testServer } from './test-server.ts';

const DELETED_TAGS = 200_000;
const firstPage = { afterId: null, limit: 1, includeDeleted: false };

let server: TestServer;
let database: TestDatabase;
let store: OpenedStore;
let organisation: number;

const ask = (sql: string) => server.ask(new URL(database.url).pathname.slice(1), sql);

before(async () => {
  server = await testServer();
  database = await server.newDatabase();
  store = await openStore(database.url);
  organisation = (await store.createOrganisation('one', randomUUID(), 1))!.organisation;
});
after(async () => {
  await store.close();
  await database.drop();
});

test('a page is read in steps from the index, even without statistics of the table', async () => {
  await ask('ALTER TABLE tags SET (autovacuum_enabled = false)');
  await ask(
    `INSERT INTO tags (organisation, tag_id, name, is_deleted)
      SELECT ${organisation}, gen_random_uuid(), 'gone', true FROM generate_series(1, ${DELETED_TAGS})`,
  );
  const { rows, next } = await store.records(organisation, 'tags', firstPage);
  assert.deepEqual(rows, []);
  assert.notEqual(next, null);
  // Connections report their statistics after a second of idleness, and when they end.
  await store.close();
  store = await openStore(database.url);
  let entries = 0;
  await waitUntil('they are reported', async () => {
    const [read] = await ask(
      `SELECT idx_tup_read::integer AS entries FROM pg_stat_user_indexes WHERE indexrelname = 'tags_pkey'`,
    );
    entries = read!.entries as number;
    return entries > 0;
  });
  assert.ok(entries < DELETED_TAGS, `${entries} entries were read for one page`);
});

test('a count is made in steps', async () => {
  const scans = async (): Promise<number> => {
    const [found] = await ask(
      `SELECT idx_scan::integer AS scans FROM pg_stat_user_indexes WHERE indexrelname = 'tags_pkey'`,
    );
    return found!.scans as number;
  };
  const before = await scans();
  assert.equal(await store.countRecords(organisation, 'tags'), DELETED_TAGS);
  await store.close();
  store = await openStore(database.url);
  // A closed connection reports its statistics a little later.
  const expected = before + DELETED_TAGS / COUNT_STEP_ENTRIES;
  await waitUntil('each step is reported', async () => (await scans()) >= expected);
});

test('a list that takes PostgreSQL too long is refused with StoreBusy', async () => {
  const locked = ask('BEGIN; LOCK TABLE tags IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)').catch(() => {});
  let lockers: readonly Record<string, unknown>[] = [];
  while (lockers.length === 0) {
    lockers = await ask(`SELECT pid FROM pg_locks JOIN pg_database ON database = pg_database.oid
      WHERE datname = current_database() AND mode = 'AccessExclusiveLock' AND granted
      AND relation = 'tags'::regclass`);
  }
  try {
    await assert.rejects(store.records(organisation, 'tags', firstPage), (error) => {
      assert.ok(error instanceof StoreBusy, String(error));
      assert.match(error.message, /^PostgreSQL took over 10 s for a part of a list: try again later$/);
      return true;
    });
  } finally {
    await ask(`SELECT pg_terminate_backend(${lockers[0]!.pid})`);
    await locked;
  }
  await store.records(organisation, 'tags', firstPage);
});
