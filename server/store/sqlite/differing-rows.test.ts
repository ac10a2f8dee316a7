import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { type RecordTypeName, recordTypeNames, recordTypes } from '@headgate/catalogue/record-types.ts';
import fc from 'fast-check';
import type { Row, Tally } from '../rows.ts';
import { catalogueTables, tableOf } from '../tables.ts';
import { anyRow, recordRow } from '../test-rows.ts';
import { times } from '../test-thoroughness.ts';
import { DifferingRows } from './differing-rows.ts';
import { openSqliteStore } from './open-sqlite-store.ts';
import { type PackedSlice, packedSlices, packRows } from './packed-rows.ts';
import { testFolder } from './test-folder.ts';
import { defaultTuning } from './tuning.ts';
import { createUpserts } from './upserts.ts';
import { openForWriting } from './writing-connection.ts';

async function newDatabase(t: TestContext): Promise<DatabaseSync> {
  const path = join(testFolder(t), 'headgate.db');
  const store = await openSqliteStore(path, defaultTuning);
  for (const name of ['one', 'another']) await store.createOrganisation(name, randomUUID(), 1);
  await store.close();
  const database = openForWriting(path);
  t.after(() => database.close());
  return database;
}

const ONE = 1;
const ANOTHER = 2;
const SLICE_ROWS = 100;

function packed(rows: readonly Row[]): PackedSlice {
  return packedSlices(packRows([rows]))[0]![0]!;
}

function rowsIn(database: DatabaseSync, type: RecordTypeName): unknown[] {
  const { name, key } = tableOf(catalogueTables, type);
  return database.prepare(`SELECT * FROM "${name}" ORDER BY "organisation", "${key}"`).all();
}

test('rows that are stored already do not differ, whatever their type', async (t) => {
  const database = await newDatabase(t);
  const upserts = createUpserts(database);
  for (const type of recordTypeNames) {
    const table = tableOf(catalogueTables, type);
    const rows = [recordRow(type), recordRow(type)];
    upserts.slice(table, ONE, packed(rows));
    const differing = new DifferingRows(database, table);
    assert.deepEqual(differing.placesIn(packed(rows), ONE), [], type);
    assert.deepEqual(differing.placesIn(packed(rows), ANOTHER), [0, 1], type);
    assert.deepEqual(differing.placesIn(packed([recordRow(type), rows[1]!]), ONE), [0], type);
  }
});

test('long stored texts are not read to find that a short row differs', async (t) => {
  const database = await newDatabase(t);
  const table = tableOf(catalogueTables, 'offers');
  const differing = new DifferingRows(database, table);
  const upserts = createUpserts(database);
  const timeMs = (text: string): number => {
    const long = Array.from({ length: SLICE_ROWS }, () =>
      recordRow('offers', { name: text, type: text, allowed_branches: text, allowed_days: text }),
    );
    upserts.slice(table, ONE, packed(long));
    const short = packed(long.map(([id]) => recordRow('offers', { offer_id: id! })));
    const times = Array.from({ length: 5 }, () => {
      const startedAtMs = performance.now();
      assert.equal(differing.placesIn(short, ONE)!.length, SLICE_ROWS);
      return performance.now() - startedAtMs;
    });
    return Math.min(...times);
  };
  const besideShortMs = timeMs('x');
  const besideLongMs = timeMs('\u0001'.repeat(10_000));
  assert.ok(besideLongMs < 5 * besideShortMs, `${besideLongMs} ms instead of ${besideShortMs} ms`);
});

test('stored rows with usual numbers, booleans, texts and nulls do not differ', async (t) => {
  const database = await newDatabase(t);
  const table = tableOf(catalogueTables, 'transactions');
  const values = [
    { amount: 0, is_deleted: true },
    { amount: 19.99, is_deleted: false, branch_id: null },
    { amount: -3, discount_name: 'a "quoted" \\ name\nin two lines \u0001' },
    { amount: 1e15, discount_name: 'Überraschung 🎓 \u2028' },
    { amount: 1234567.89, discount_value: 0.175 },
  ];
  const rows = values.map((value) => recordRow('transactions', value));
  createUpserts(database).slice(table, ONE, packed(rows));
  assert.deepEqual(new DifferingRows(database, table).placesIn(packed(rows), ONE), []);
});

test('a boolean that another program has set to 2 differs from true, false and null', async (t) => {
  const database = await newDatabase(t);
  const table = tableOf(catalogueTables, 'offers');
  const row = recordRow('offers', { is_enabled: true });
  createUpserts(database).slice(table, ONE, packed([row]));
  database.exec('UPDATE offers SET is_enabled = 2');
  const column = table.columns.findIndex(({ name }) => name === 'is_enabled');
  const differing = new DifferingRows(database, table);
  for (const given of [true, false, null]) {
    assert.deepEqual(differing.placesIn(packed([row.with(column, given)]), ONE), [0]);
  }
});

test('a row that differs in one value is found, even if two numbers are adjacent', async (t) => {
  const database = await newDatabase(t);
  const upserts = createUpserts(database);
  const table = tableOf(catalogueTables, 'transactions');
  const differing = new DifferingRows(database, table);
  const column = table.columns.findIndex(({ name }) => name === 'amount');
  const differ = (stored: Row, given: Row): boolean => {
    const id = randomUUID();
    upserts.slice(table, ONE, packed([stored.with(0, id)]));
    return differing.placesIn(packed([given.with(0, id)]), ONE)?.length === 1;
  };
  fc.assert(
    fc.property(
      anyRow(recordTypes.transactions.fields),
      anyRow(recordTypes.transactions.fields),
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e300, max: 1e300 }),
      fc.integer({ min: 1, max: table.columns.length - 1 }),
      (row, other, amount, place) => {
        const one = row.with(column, amount + 0);
        for (const another of [one.with(place, other[place]!), one.with(column, nextUp(amount))]) {
          if (one.every((value, at) => value === another[at])) continue;
          assert.ok(differ(one, another));
          assert.ok(differ(another, one));
        }
      },
    ),
    { numRuns: times(1000, 300), examples: [0, 0.1, 19.99, 1e15, 2 ** 53, 1e-300].map(neighbourExample) },
  );
});

function neighbourExample(amount: number): [Row, Row, number, number] {
  const row = recordRow('transactions');
  return [row, row, amount, 1];
}

/** Returns the next larger number. */
function nextUp(value: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value + 0);
  const bits = view.getBigInt64(0);
  view.setBigInt64(0, value + 0 >= 0 ? bits + 1n : bits - 1n);
  return view.getFloat64(0);
}

// Transactions contain numbers, many of which SQLite writes differently from JSON.stringify.
for (const type of ['offers', 'transactions'] as const) {
  test(`${type} that mostly repeat are counted and stored as if written row by row`, async (t) => {
    const [bySlice, byRow] = [await newDatabase(t), await newDatabase(t)];
    const [slices, rows] = [createUpserts(bySlice), createUpserts(byRow)];
    const { fields } = recordTypes[type];
    const table = tableOf(catalogueTables, type);
    const [keyColumn, updatedColumn] = [table.key, 'updated'].map((column) =>
      table.columns.findIndex(({ name }) => name === column),
    ) as [number, number];
    const base = fc.sample(anyRow(fields), { numRuns: SLICE_ROWS });
    const change = fc.record({
      place: fc.nat({ max: SLICE_ROWS - 1 }),
      row: anyRow(fields),
      isNew: fc.boolean(),
      isOld: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const changed = [...base];
        for (const { place, row, isNew, isOld } of changes) {
          const kept = isNew ? row : row.with(keyColumn, base[place]![keyColumn]!);
          changed[place] = isOld ? kept.with(updatedColumn, '0001-01-01T00:00:00.000000Z') : kept;
        }
        for (const given of [base, base, changed, changed]) {
          const expected = tallyOf(given.map((row) => rows.row(table, ONE, [...row])));
          assert.deepEqual(slices.slice(table, ONE, packed(given)), expected);
        }
        assert.deepEqual(rowsIn(bySlice, type), rowsIn(byRow, type));
      }),
      { numRuns: times(60, 20) },
    );
  });
}

function tallyOf(tallies: readonly Tally[]): Tally {
  const sum = (fate: keyof Tally): number => tallies.reduce((count, tally) => count + tally[fate], 0);
  return { created: sum('created'), updated: sum('updated'), unchanged: sum('unchanged') };
}
