import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { type Fields, optional, recordType, required } from '@headgate/catalogue/declaration.ts';
import { boolean } from '@headgate/catalogue/kinds/boolean.ts';
import { number } from '@headgate/catalogue/kinds/number.ts';
import { text } from '@headgate/catalogue/kinds/text.ts';
import { recordTypes, storedInteraction } from '@headgate/catalogue/record-types.ts';
import { StoreUnusable } from '../store.ts';
import { catalogueTables, createIndexSql, type Tables, tablesOf } from '../tables.ts';
import { prepareDatabase, SCHEMA_VERSION } from './migrations.ts';
import { indexedPart } from './schema.ts';
import { testFolder } from './test-folder.ts';
import { endOf, startProcess } from './test-process.ts';

const PATH = 'headgate.db';

function openFile(t: TestContext, path: string): DatabaseSync {
  const database = new DatabaseSync(path);
  t.after(() => database.close());
  return database;
}

function freshDatabase(t: TestContext): DatabaseSync {
  return openFile(t, join(testFolder(t), PATH));
}

function schemaOf(database: DatabaseSync): readonly unknown[] {
  return database.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY type, name').all();
}

function columnsOf(database: DatabaseSync, table: string): readonly string[] {
  return database
    .prepare('SELECT name FROM pragma_table_info(?)')
    .all(table)
    .map(({ name }) => String(name));
}

function refusal(database: DatabaseSync, tables: Tables = catalogueTables): string {
  try {
    prepareDatabase(database, PATH, tables);
  } catch (error) {
    assert.ok(error instanceof StoreUnusable, String(error));
    return error.message;
  }
  return assert.fail('the database was accepted');
}

test('a new file gets a table per type, with the organisation, then the short fields, then the texts', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  const assertColumns = (table: string, fields: Fields): void => {
    const named = (isText: boolean): readonly string[] =>
      Object.keys(fields).filter((name) => (fields[name]!.kind.name === 'text') === isText);
    assert.deepEqual(columnsOf(database, table), ['organisation', ...named(false), ...named(true)]);
  };
  for (const [type, { fields }] of Object.entries(recordTypes)) {
    assertColumns(type.replaceAll('-', '_'), fields);
  }
  assertColumns('interactions', storedInteraction);
  assert.equal(database.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal');
  assert.equal(database.prepare('PRAGMA user_version').get()?.user_version, SCHEMA_VERSION);
});

function notNullIn(database: DatabaseSync, table: string): readonly unknown[] {
  return database
    .prepare('SELECT name FROM pragma_table_info(?) WHERE "notnull" = 1')
    .all(table)
    .map(({ name }) => name);
}

test('only the columns of the key are NOT NULL', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  for (const { name, key } of [...catalogueTables.records.values(), catalogueTables.interactions]) {
    assert.deepEqual(notNullIn(database, name).toSorted(), ['organisation', key].toSorted());
  }
});

test('NOT NULL columns of an older file become nullable, and its rows are unchanged', (t) => {
  const path = join(testFolder(t), PATH);
  const database = openFile(t, path);
  prepareDatabase(database, PATH, catalogueTables);
  const { name, key } = catalogueTables.records.get('shops')!;
  // Older releases created such a table and added a column later. The first row is older than that column.
  database.exec(`DROP TABLE shops;
    CREATE TABLE "shops" (
      "organisation" INTEGER NOT NULL,
      "shop_id" TEXT NOT NULL,
      "name" TEXT NOT NULL,
      "region" TEXT NOT NULL,
      "created" TEXT,
      "updated" TEXT,
      PRIMARY KEY ("organisation", "shop_id")
    ) STRICT;
    INSERT INTO shops VALUES (1, 'a', 'it''s old', 'GB', NULL, NULL);
    ALTER TABLE "shops" ADD COLUMN "is_deleted" INTEGER NOT NULL DEFAULT 1;
    INSERT INTO shops VALUES (1, 'b', 'newer', 'IE', NULL, NULL, 0);
    CREATE INDEX my_index ON shops (name);
    CREATE VIEW my_view AS SELECT name FROM shops`);
  const other = openFile(t, path);
  const names = other.prepare('SELECT name FROM shops ORDER BY shop_id');
  names.all();

  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(notNullIn(database, name), ['organisation', key]);
  assert.deepEqual(
    database
      .prepare('SELECT shop_id, name, region, is_public, is_deleted FROM shops ORDER BY shop_id')
      .all()
      .map((row) => Object.values(row)),
    [
      ['a', "it's old", 'GB', null, 1],
      ['b', 'newer', 'IE', null, 0],
    ],
  );
  assert.deepEqual({ ...database.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' });
  // A connection that was open during the migration sees the new schema.
  other.exec(`INSERT INTO shops (organisation, shop_id) VALUES (1, 'c')`);
  assert.deepEqual(
    names.all().map((row) => row.name),
    ["it's old", 'newer', null],
  );
  assert.throws(() => other.exec(`INSERT INTO shops (organisation) VALUES (1)`), /NOT NULL/);
  assert.equal(other.prepare('SELECT name FROM my_view').all().length, 3);
  // The connection can no longer write to the schema.
  assert.throws(() => database.exec(`UPDATE sqlite_schema SET sql = '' WHERE 0`), /may not be modified/);
  const before = schemaOf(database);
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(schemaOf(database), before);
});

test('an older index of whole user ids is built anew with their beginnings', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  const before = schemaOf(database);
  database.exec(`DROP INDEX interactions_by_user;
    CREATE INDEX interactions_by_user ON interactions (organisation, user_id, occurred_at, interaction_id)
      WHERE user_id IS NOT NULL;
    PRAGMA user_version = 3`);
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(schemaOf(database), before);
  const index = database.prepare("SELECT sql FROM sqlite_schema WHERE name = 'interactions_by_user'").get();
  assert.match(String(index?.sql), /substr\("user_id", 1, 128\)/);
});

test('an older index with long beginnings of user ids is built anew with short ones', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  const before = schemaOf(database);
  database.exec(`DROP INDEX interactions_by_user;
    CREATE INDEX interactions_by_user ON interactions (organisation, (substr("user_id", 1, 256)), occurred_at)
      WHERE (substr("user_id", 1, 256)) IS NOT NULL;
    PRAGMA user_version = 6`);
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(schemaOf(database), before);
});

test('an older index by source is dropped', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  const before = schemaOf(database);
  database.exec(`CREATE INDEX interactions_by_source ON interactions (organisation, source, occurred_at, interaction_id)
      WHERE source IS NOT NULL;
    PRAGMA user_version = 4`);
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(schemaOf(database), before);
});

test('older indexes that contain ids are built anew without them', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  const before = schemaOf(database);
  const { indexes } = catalogueTables.interactions;
  for (const index of indexes) {
    database.exec(`DROP INDEX "${index.name}"`);
    database.exec(createIndexSql(catalogueTables.interactions, index, indexedPart));
  }
  assert.notDeepEqual(schemaOf(database), before);
  database.exec('PRAGMA user_version = 5');
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(schemaOf(database), before);
});

test('a file that is up to date is not changed', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  const before = schemaOf(database);
  const changesBefore = database.prepare('PRAGMA schema_version').get();
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(schemaOf(database), before);
  assert.deepEqual(database.prepare('PRAGMA schema_version').get(), changesBefore);
});

test('a field that was declared later becomes a column, and older records get its default', (t) => {
  const database = freshDatabase(t);
  const { shop_id, name, updated, is_deleted } = recordTypes.shops.fields;
  const first = { shops: recordType('Shop', 'shop_id', { shop_id, name, updated, is_deleted }) };
  prepareDatabase(database, PATH, tablesOf(first, storedInteraction));
  database.exec(`INSERT INTO shops (organisation, shop_id, name, is_deleted) VALUES (1, 'a', 'old', 0)`);
  const second = {
    shops: recordType('Shop', 'shop_id', {
      shop_id,
      rating: required(number()),
      is_open: optional(boolean, { omitted: true }),
      motto: optional(text),
      name,
      updated,
      is_deleted,
    }),
    'shop-mottos': recordType('Motto', 'shop_id', { shop_id, name, updated, is_deleted }),
  };
  prepareDatabase(database, PATH, tablesOf(second, storedInteraction));
  assert.deepEqual(
    { ...database.prepare('SELECT rating, is_open, motto, name FROM shops').get() },
    { rating: null, is_open: 1, motto: null, name: 'old' },
  );
  assert.deepEqual(columnsOf(database, 'shop_mottos'), [
    'organisation',
    'shop_id',
    'updated',
    'is_deleted',
    'name',
  ]);
});

test('a missing index is created', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  const before = schemaOf(database);
  database.exec('DROP INDEX interactions_by_item');
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(schemaOf(database), before);
});

test('tables of other programs are not changed', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  database.exec('CREATE TABLE my_report (a); CREATE VIEW my_view AS SELECT * FROM shops');
  prepareDatabase(database, PATH, catalogueTables);
  assert.deepEqual(columnsOf(database, 'my_report'), ['a']);
});

test('a newer schema is refused with both versions', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 6}`);
  assert.equal(
    refusal(database),
    `headgate.db was made by a newer Headgate (schema ${SCHEMA_VERSION + 6}; this one knows ${SCHEMA_VERSION}): ` +
      'upgrade Headgate',
  );
});

test('a column that is not in the catalogue is refused with its name', (t) => {
  const database = freshDatabase(t);
  prepareDatabase(database, PATH, catalogueTables);
  database.exec('ALTER TABLE shops ADD COLUMN colour TEXT');
  assert.equal(
    refusal(database),
    'headgate.db was made by a newer Headgate (its table shops has a column colour that this one does not know): ' +
      'upgrade Headgate',
  );
});

test('a column of another type is refused with both types', (t) => {
  const database = freshDatabase(t);
  const { shop_id, updated, is_deleted } = recordTypes.shops.fields;
  const numbered = recordType('Shop', 'shop_id', { shop_id, name: required(number()), updated, is_deleted });
  prepareDatabase(database, PATH, tablesOf({ shops: numbered }, storedInteraction));
  assert.equal(
    refusal(database),
    'headgate.db stores the column shops.name as REAL, but this Headgate stores TEXT: use the version that made it',
  );
});

test("another program's database is refused and not touched", (t) => {
  const database = freshDatabase(t);
  database.exec('CREATE TABLE notes (note TEXT)');
  const before = schemaOf(database);
  assert.equal(
    refusal(database),
    'headgate.db is a SQLite database that Headgate has not made: name another file',
  );
  assert.deepEqual(schemaOf(database), before);
  assert.equal(database.prepare('PRAGMA journal_mode').get()?.journal_mode, 'delete');
});

test('a migration that fails changes nothing', (t) => {
  const database = freshDatabase(t);
  const impossible: Tables = {
    ...catalogueTables,
    interactions: { ...catalogueTables.interactions, key: 'no_such_column' },
  };
  assert.throws(() => prepareDatabase(database, PATH, impossible), /no_such_column/);
  assert.deepEqual(schemaOf(database), []);
  prepareDatabase(database, PATH, catalogueTables);
});

test('a migration that is killed midway changes nothing, and the next one succeeds', async (t) => {
  const whole = freshDatabase(t);
  prepareDatabase(whole, PATH, catalogueTables);
  for (const stepsUntilDeath of [1, 4, 12, 22]) {
    const path = join(testFolder(t), PATH);
    const { ending } = await endOf(
      startProcess(
        `import { DatabaseSync } from 'node:sqlite';
        import { prepareDatabase } from './migrations.ts';
        import { catalogueTables } from '../tables.ts';
        const [path, stepsUntilDeath] = process.argv.slice(1);
        let steps = 0;
        class Dying extends DatabaseSync {
          exec(sql) {
            if (/^(CREATE|ALTER|PRAGMA (user|app))/.test(sql) && ++steps > Number(stepsUntilDeath)) {
              process.kill(process.pid, 'SIGKILL');
            }
            super.exec(sql);
          }
        }
        prepareDatabase(new Dying(path), path, catalogueTables);`,
        path,
        String(stepsUntilDeath),
      ),
    );
    assert.equal(ending, 'SIGKILL');
    const database = openFile(t, path);
    assert.deepEqual(schemaOf(database), [], `after ${stepsUntilDeath} steps`);
    prepareDatabase(database, path, catalogueTables);
    assert.deepEqual(schemaOf(database), schemaOf(whole));
  }
});
