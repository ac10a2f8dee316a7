// A database of an older Headgate, whose catalogue required other fields: stored records stay
// unchanged, uploads follow the current rules, and the database can be copied to and from a new one.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { openStore } from '../server/store/open-store.ts';
import { codecs as postgresCodecs } from '../server/store/postgres/codecs.ts';
import type { Row } from '../server/store/rows.ts';
import { codecs as sqliteCodecs } from '../server/store/sqlite/codecs.ts';
import { catalogueTables, quoted, tableOf } from '../server/store/tables.ts';
import { type TestDatabases, testDatabases } from '../server/store/test-databases.ts';
import { everyRecord } from '../server/store/test-lists.ts';
import { recordRow } from '../server/store/test-rows.ts';
import { apiOf } from './harness/api.ts';
import { type IssuedKey, startHeadgate } from './harness/headgate.ts';
import { runWithin } from './harness/loading.ts';
import { readAllRecords } from './harness/read-all.ts';
import { leastRecord } from './harness/records.ts';

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

    test('has the columns of a new one afterwards', async (t) => {
      const older = await olderDatabase(kind);
      t.after(older.remove);
      const newer = await kind.newDatabase();
      t.after(newer.remove);
      for (const { database } of [older, newer]) await (await openStore(database)).close();
      assert.deepEqual(await columnsIn(kind, older.database), await columnsIn(kind, newer.database));
    });
  });
}

async function columnsIn(kind: TestDatabases, database: string): Promise<readonly string[]> {
  const columns = await kind.ask(
    database,
    database.startsWith('sqlite:')
      ? `SELECT columns.name, type, "notnull" AS is_not_null FROM pragma_table_info('customers') AS columns`
      : `SELECT attname AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS is_not_null
          FROM pg_attribute WHERE attrelid = 'customers'::regclass AND attnum > 0`,
  );
  // In any order: a column that is added comes last.
  return columns.map(({ name, type, is_not_null }) => `${name} ${type} ${is_not_null}`).toSorted();
}
