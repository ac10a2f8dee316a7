// A database of an older Headgate: stored records stay unchanged, uploads follow the current rules, and the database can
// be copied to and from a new one. One kind of older database is made here, with a catalogue that required other fields;
// the other was really written by the oldest version whose databases can be opened.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { recordTypeNames } from '@headgate/catalogue/record-types.ts';
import { openStore } from '../server/store/open-store.ts';
import { codecs as postgresCodecs } from '../server/store/postgres/codecs.ts';
import type { Row } from '../server/store/rows.ts';
import { codecs as sqliteCodecs } from '../server/store/sqlite/codecs.ts';
import { catalogueTables, quoted, tableOf } from '../server/store/tables.ts';
import { type TestDatabases, testDatabases } from '../server/store/test-databases.ts';
import { everyRecord } from '../server/store/test-lists.ts';
import { recordRow } from '../server/store/test-rows.ts';
import { type Api, apiOf } from './harness/api.ts';
import { type IssuedKey, startHeadgate } from './harness/headgate.ts';
import { runWithin } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord } from './harness/records.ts';

const OLD_ID = '0d1f6a3c-9a57-4e0e-8a52-52ab20c2b8d1';
/** A record from the time when a customer needed a gender, but neither a user_id nor a region. */
const oldCustomer = {
  customer_id: OLD_ID,
  user_id: null,
  region: null,
  birthdate: null,
  institute_id: null,
  course_id: null,
  gender: 'stated',
  created: null,
  updated: null,
  is_deleted: false,
};
const oldRow: Row = Object.values(oldCustomer);

interface Owned {
  readonly database: string;
  readonly organisation: string;
  remove(): Promise<void>;
}

async function newDatabase(kind: TestDatabases, name: string, customers: readonly Row[]): Promise<Owned> {
  const { database, remove } = await kind.newDatabase();
  const store = await openStore(database);
  const { organisation } = (await store.createOrganisation(name, randomUUID(), 1))!;
  if (customers.length > 0) {
    const upload = { organisation, type: 'customers', batches: [customers] } as const;
    await store.write({ ...upload, idempotencyRecord: null, entry: null });
  }
  await store.close();
  return { database, organisation: name, remove };
}

/** Makes the table of customers like older releases: required fields were NOT NULL, and there was no region. */
async function olderDatabase(kind: TestDatabases): Promise<Owned> {
  const owned = await newDatabase(kind, 'acme', []);
  const isSqlite = owned.database.startsWith('sqlite:');
  const codecs = isSqlite ? sqliteCodecs : postgresCodecs;
  const wasRequired = ['customer_id', 'gender', 'is_deleted'];
  const columns = tableOf(catalogueTables, 'customers')
    .columns.filter(({ name }) => name !== 'region')
    .map(
      ({ name, kind }) =>
        `${quoted(name)} ${codecs[kind].type}${wasRequired.includes(name) ? ' NOT NULL' : ''}`,
    );
  await kind.ask(owned.database, 'DROP TABLE customers');
  await kind.ask(
    owned.database,
    `CREATE TABLE customers (organisation INTEGER NOT NULL, ${columns.join(', ')},
      PRIMARY KEY (organisation, customer_id))${isSqlite ? ' STRICT' : ''}`,
  );
  await kind.ask(
    owned.database,
    `INSERT INTO customers (organisation, customer_id, gender, is_deleted)
      SELECT organisation, '${OLD_ID}', 'stated', ${isSqlite ? '0' : 'false'} FROM organisations`,
  );
  return owned;
}

/** Returns the customers of each organisation by its name. */
async function customersIn(database: string): Promise<Record<string, readonly Row[]>> {
  const store = await openStore(database);
  try {
    const customers: Record<string, readonly Row[]> = {};
    for (const { organisation, name } of await store.organisations()) {
      customers[name] = await everyRecord(store, organisation, 'customers');
    }
    return customers;
  } finally {
    await store.close();
  }
}

/** Copies and fails unless both sides are equal afterwards. */
async function copy(from: string, to: string): Promise<void> {
  const { exitCode, err } = await runWithin({}, 'copy', '--from', from, '--to', to);
  assert.equal(exitCode, 0, err);
}

for (const kind of testDatabases) {
  describe(`an older database on ${kind.name}`, () => {
    test('shows stored records unchanged, and applies the current rules to uploads', async (t) => {
      const older = await olderDatabase(kind);
      t.after(older.remove);
      const headgate = await startHeadgate(older.database);
      t.after(() => headgate.stop());
      const { key } = await headgate.command<IssuedKey>('keys', 'issue', '--org', older.organisation);
      const api = apiOf(headgate.url, key);
      assert.deepEqual((await api.read('customers', OLD_ID)).body, oldCustomer);
      assert.deepEqual(await readAllRecords(api, 'customers'), [oldCustomer]);

      const again = await api.upload('customers', [oldCustomer]);
      assert.equal(again.status, 400, again.text);
      assert.deepEqual(
        again.body.batches[0]!.data.errors.map(({ field, code }) => [field, code]),
        [
          ['user_id', 'required'],
          ['region', 'required'],
        ],
      );

      const whole = { ...oldCustomer, user_id: randomUUID(), region: 'GB' };
      const without = leastRecord('customers');
      const { status, text, body } = await api.upload('customers', [whole, without]);
      assert.equal(status, 200, text);
      const { created, updated } = body.batches[0]!.data.counts;
      assert.deepEqual([created, updated], [1, 1]);
      assert.deepEqual((await api.read('customers', OLD_ID)).body, whole);
      const read = await api.read('customers', without.customer_id as string);
      assert.equal(read.body.gender, null);
      await headgate.stop();
      assert.deepEqual(await kind.damages(older.database), []);
    });

    for (const other of testDatabases) {
      test(`can be copied to a new one on ${other.name}`, async (t) => {
        const older = await olderDatabase(kind);
        t.after(older.remove);
        const target = await other.newDatabase();
        t.after(target.remove);
        await copy(older.database, target.database);
        assert.deepEqual(await customersIn(target.database), { acme: [oldRow] });
      });

      test(`can receive a copy of a new one on ${other.name}`, async (t) => {
        const row = recordRow('customers');
        const source = await newDatabase(other, 'bmce', [row]);
        t.after(source.remove);
        const older = await olderDatabase(kind);
        t.after(older.remove);
        await copy(source.database, older.database);
        assert.deepEqual(await customersIn(older.database), { acme: [oldRow], bmce: [row] });
      });
    }

    test('has the columns and indexes of a new one afterwards', async (t) => {
      const older = await olderDatabase(kind);
      t.after(older.remove);
      await assertLayoutOfNew(kind, older.database, t);
    });
  });
}

/** Fails unless the database, once it was opened, has the columns and indexes of a new one. */
async function assertLayoutOfNew(kind: TestDatabases, older: string, t: TestContext): Promise<void> {
  const newer = await kind.newDatabase();
  t.after(newer.remove);
  for (const database of [older, newer.database]) await (await openStore(database)).close();
  assert.deepEqual(await layoutOf(kind, older), await layoutOf(kind, newer.database));
}

/** Returns every column and index, in any order: a column that is added comes last. */
async function layoutOf(kind: TestDatabases, database: string): Promise<readonly string[]> {
  const isSqlite = database.startsWith('sqlite:');
  const columns = await kind.ask(
    database,
    isSqlite
      ? `SELECT tables.name || '.' || columns.name AS name, columns.type, "notnull" AS is_not_null
          FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'`
      : `SELECT attrelid::regclass || '.' || attname AS name, format_type(atttypid, atttypmod) AS type,
            attnotnull AS is_not_null
          FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
          WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0`,
  );
  const indexes = await kind.ask(
    database,
    isSqlite
      ? `SELECT sql AS made FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`
      : `SELECT indexdef AS made FROM pg_indexes WHERE schemaname = 'public'`,
  );
  return [
    ...columns.map(({ name, type, is_not_null }) => `${name} ${type} ${is_not_null}`),
    ...indexes.map(({ made }) => String(made)),
  ].toSorted();
}

const folderOfOldest = new URL('./harness/older/', import.meta.url);
const dumps = { SQLite: 'sqlite.sql', PostgreSQL: 'postgres.sql' } as const;
type Dumped = keyof typeof dumps;
const dumpedKinds = Object.keys(dumps) as Dumped[];

/** What the oldest version returned for the databases in the dumps. Both have the same records. */
const returned = JSON.parse(readFileSync(new URL('responses.json', folderOfOldest), 'utf8')) as {
  readonly records: Readonly<Record<string, readonly Record<string, unknown>[]>>;
  readonly interactions: Readonly<Record<Dumped, readonly Record<string, unknown>[]>>;
};
/** The key whose hash is in the dumps. */
const OLDEST_KEY = `hg_000000000001_${'0'.repeat(48)}`;

function kindOf(name: Dumped): TestDatabases {
  return testDatabases.find((kind) => kind.name === name)!;
}

async function emptyDatabase(name: Dumped, t: TestContext): Promise<string> {
  const { database, remove } = await kindOf(name).newDatabase();
  t.after(remove);
  return database;
}

async function oldestDatabase(name: Dumped, t: TestContext): Promise<string> {
  const database = await emptyDatabase(name, t);
  await kindOf(name).run(database, readFileSync(new URL(dumps[name], folderOfOldest), 'utf8'));
  return database;
}

/** Starts a server, and calls `use` with a client that has the oldest key. The server has ended afterwards. */
async function whileServed(database: string, use: (api: Api) => Promise<void>): Promise<void> {
  const headgate = await startHeadgate(database);
  try {
    await use(apiOf(headgate.url, OLDEST_KEY));
  } finally {
    await headgate.stop();
  }
}

/** Fails unless everything that the oldest version returned is returned unchanged. */
async function assertUnchanged(api: Api, dumped: Dumped): Promise<void> {
  assert.deepEqual(Object.keys(returned.records).toSorted(), recordTypeNames.toSorted());
  for (const [type, records] of Object.entries(returned.records)) {
    assert.deepEqual(await readAllRecords(api, type, '&include_deleted=true'), records);
  }
  assert.deepEqual(await readAllInteractions(api), returned.interactions[dumped]);
}

for (const name of dumpedKinds) {
  describe(`a database that the oldest version wrote on ${name}`, () => {
    test('shows everything unchanged, accepts its key, and takes uploads', async (t) => {
      const database = await oldestDatabase(name, t);
      await whileServed(database, async (api) => {
        await assertUnchanged(api, name);

        const [shop] = returned.records.shops!;
        const renamed = { ...shop, name: 'Corner Books and More' };
        const uploaded = await api.upload('shops', [renamed, leastRecord('shops')]);
        assert.equal(uploaded.status, 200, uploaded.text);
        const { created, updated } = uploaded.body.batches[0]!.data.counts;
        assert.deepEqual([created, updated], [1, 1]);
        assert.deepEqual((await api.read('shops', idOf('shops', renamed))).body, renamed);
        const offer = leastRecord('offers', { shop_id: shop!.shop_id });
        assert.equal((await api.upload('offers', [offer])).status, 200);
        // Entry 1 of the ledger stands for everything that was stored before there was a ledger.
        assert.equal(uploaded.body.seq, 2);
        assert.equal((await api.request('/v1/changes?after=0')).status, 410);
        const { body } = await api.request<{ changes: { id: string }[] }>('/v1/changes?after=1');
        assert.equal(body.changes.length, 3);
      });
      assert.deepEqual(await kindOf(name).damages(database), []);
    });

    test('has the columns and indexes of a new one afterwards', async (t) => {
      await assertLayoutOfNew(kindOf(name), await oldestDatabase(name, t), t);
    });

    for (const other of dumpedKinds.filter((kind) => kind !== name)) {
      test(`can be copied to a new one on ${other}`, async (t) => {
        const target = await emptyDatabase(other, t);
        await copy(await oldestDatabase(name, t), target);
        await whileServed(target, (api) => assertUnchanged(api, name));
      });

      test(`can receive a copy of a new one on ${other}`, async (t) => {
        const row = recordRow('customers');
        const source = await newDatabase(kindOf(other), 'bmce', [row]);
        t.after(source.remove);
        const oldest = await oldestDatabase(name, t);
        await copy(source.database, oldest);
        assert.deepEqual((await customersIn(oldest)).bmce, [row]);
        await whileServed(oldest, (api) => assertUnchanged(api, name));
      });
    }
  });
}
