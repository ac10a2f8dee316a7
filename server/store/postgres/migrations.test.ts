import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { recordTypeNames } from '@headgate/catalogue/record-types.ts';
import pg from 'pg';
import { openStore } from '../open-store.ts';
import { StoreUnusable } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { recordRow } from '../test-rows.ts';
import { readAddress } from './address.ts';
import { prepareDatabase, SCHEMA_VERSION } from './migrations.ts';
import { inTurn, MIGRATION_LOCK, type Migrator, type StepProgress } from './migrator.ts';
import { type TestDatabase, type TestServer, testServer } from './test-server.ts';

let server: TestServer;
let database: TestDatabase;
let name: string;
const dropped: TestDatabase[] = [];

before(async () => {
  server = await testServer();
});
beforeEach(async () => {
  database = await server.newDatabase();
  dropped.push(database);
  name = new URL(database.url).pathname.slice(1);
});
after(async () => {
  for (const one of dropped) await one.drop();
});

const ask = (sql: string) => server.ask(name, sql);

async function openAndClose(url = database.url): Promise<void> {
  const store = await openStore(url);
  await store.close();
}

async function tablesThere(): Promise<readonly string[]> {
  const rows = await ask(
    `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
  );
  return rows.map(({ relname }) => String(relname)).toSorted();
}

const ours = [
  'api_keys',
  'headgate_schema',
  'idempotency_answers',
  'interactions',
  'ledger_entries',
  'ledgers',
  'organisations',
  'segment_memberships',
  'segment_sets',
  'segments',
  'usage_days',
  ...recordTypeNames.map((type) => type.replaceAll('-', '_')),
].toSorted();

async function notNull(): Promise<readonly string[]> {
  const tables = [...catalogueTables.records.values(), catalogueTables.interactions];
  const rows = await ask(
    `SELECT attrelid::regclass || '.' || attname AS name FROM pg_attribute WHERE attnum > 0 AND attnotnull
      AND attrelid = ANY ('{${tables.map((table) => table.name).join(',')}}'::regclass[])`,
  );
  return rows.map((row) => String(row.name)).toSorted();
}

function keyColumns(): readonly string[] {
  return [...catalogueTables.records.values(), catalogueTables.interactions]
    .flatMap((table) => [`${table.name}.organisation`, `${table.name}.${table.key}`])
    .toSorted();
}

/** Asserts that opening fails with one sentence that names the database and contains no password. */
async function assertRefused(reason: RegExp, url = database.url): Promise<void> {
  await assert.rejects(openStore(url), (error) => {
    assert.ok(error instanceof StoreUnusable, String(error));
    assert.match(error.message, reason);
    assert.match(
      error.message,
      new RegExp(`^the PostgreSQL database ${new URL(url).pathname.slice(1)} at 127\\.0\\.0\\.1:`),
    );
    assert.ok(!error.message.includes(server.password) && !error.message.includes('\n'));
    return true;
  });
}

describe('an empty database', () => {
  test('gets every table, with a primary key that begins with the organisation', async () => {
    await openAndClose();
    assert.deepEqual(await tablesThere(), ours);
    for (const { name: table, key } of [...catalogueTables.records.values(), catalogueTables.interactions]) {
      const columns = await ask(
        `SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
          WHERE indrelid = '${table}'::regclass AND indisprimary ORDER BY array_position(indkey::int2[], attnum)`,
      );
      assert.deepEqual(
        columns.map(({ attname }) => attname),
        ['organisation', key],
      );
    }
  });

  test('accepts null in every column except those of a key', async () => {
    await openAndClose();
    assert.deepEqual(await notNull(), keyColumns());
  });

  test('has columns with the types of their values', async () => {
    await openAndClose();
    const columns = await ask(
      `SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute
        WHERE attrelid = 'customers'::regclass AND attnum > 0 ORDER BY attnum`,
    );
    assert.deepEqual(
      columns.map(({ attname, type }) => `${attname} ${type}`),
      [
        'organisation integer',
        'customer_id uuid',
        'user_id uuid',
        'region text',
        'birthdate date',
        'institute_id uuid',
        'course_id uuid',
        'gender text',
        'created timestamp with time zone',
        'updated timestamp with time zone',
        'is_deleted boolean',
      ],
    );
  });

  test('is prepared once if many stores open it at the same time', async () => {
    const stores = await Promise.all(Array.from({ length: 12 }, () => openStore(database.url)));
    const names = stores.map((_, n) => `org ${n}`);
    await Promise.all(stores.map((store, n) => store.createOrganisation(names[n]!, randomUUID(), 1)));
    const listed = await stores[0]!.organisations();
    assert.deepEqual(new Set(listed.map((one) => one.name)), new Set(names));
    await Promise.all(stores.map((store) => store.close()));
    assert.deepEqual(await ask('SELECT version FROM headgate_schema'), [{ version: SCHEMA_VERSION }]);
  });

  test('is unchanged if preparing it fails halfway', async () => {
    await ask(`CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF EXISTS (SELECT FROM pg_class WHERE relname = 'tags') THEN RAISE EXCEPTION 'no tags here'; END IF;
        END $$;
      CREATE EVENT TRIGGER refuse_tags ON ddl_command_end EXECUTE FUNCTION refuse()`);
    await assert.rejects(openStore(database.url), /no tags here/);
    assert.deepEqual(await tablesThere(), []);
    await ask('DROP EVENT TRIGGER refuse_tags');
    await openAndClose();
    assert.deepEqual(await tablesThere(), ours);
  });
});

const READ_TIMEOUT_MS = 500;

/** Opens a connection on which an ordinary statement times out after `readTimeoutMs`. */
async function connectWith(readTimeoutMs: number): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url, query_timeout: readTimeoutMs });
  client.on('error', () => {});
  await client.connect();
  return client;
}

function migratorOf(client: pg.Client, onProgress: Migrator['onProgress'] = () => {}): Migrator {
  return {
    client,
    address: readAddress(database.url),
    connect: () => connectWith(READ_TIMEOUT_MS),
    lockPatienceMs: READ_TIMEOUT_MS,
    onProgress,
  };
}

describe('a long step', () => {
  beforeEach(async () => {
    await openAndClose();
    await ask('DROP INDEX interactions_by_user');
    // Builds of indexes take longer than the read timeout.
    await ask(`CREATE FUNCTION slow_down() RETURNS event_trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_sleep(${(3 * READ_TIMEOUT_MS) / 1000}); END $$;
      CREATE EVENT TRIGGER slow_down ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
        EXECUTE FUNCTION slow_down()`);
  });

  test('may take longer than the read timeout of ordinary statements', async () => {
    const client = await connectWith(READ_TIMEOUT_MS);
    await assert.rejects(client.query(`SELECT pg_sleep(${(3 * READ_TIMEOUT_MS) / 1000})`), /read timeout/);
    await client.end();
    const preparing = await connectWith(READ_TIMEOUT_MS);
    await prepareDatabase(migratorOf(preparing), catalogueTables);
    await preparing.end();
    assert.equal((await ask(`SELECT 1 FROM pg_class WHERE relname = 'interactions_by_user'`)).length, 1);
  });

  test('fails if its connection is lost', async () => {
    const preparing = await connectWith(READ_TIMEOUT_MS);
    const { rows } = await preparing.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const ended = assert.rejects(prepareDatabase(migratorOf(preparing), catalogueTables), /terminat/);
    while (
      (
        await ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid = ${rows[0]!.pid} AND query LIKE 'CREATE INDEX%'`)
      ).length === 0
    )
      await sleep(20);
    await ended;
    await preparing.end();
  });
});

test('a migration is durable even if the session was set up by another program', async () => {
  const client = await connectWith(READ_TIMEOUT_MS);
  // Through a pooler, this may be a session that other programs have used.
  await client.query("SET synchronous_commit = 'off'; SET DateStyle = 'German'");
  const found = await inTurn(migratorOf(client), async () => {
    const { rows } = await client.query(
      `SELECT current_setting('synchronous_commit') AS durable, current_setting('DateStyle') AS dates`,
    );
    return rows[0];
  });
  await client.end();
  assert.deepEqual(found, { durable: 'on', dates: 'ISO, YMD' });
});

describe('while another process migrates', () => {
  /** The advisory lock that the build of the slow index waits for. Any number will do. */
  const SLOW_LOCK = 4711;

  test('a process waits for its turn without a time limit, and reports its progress', {
    timeout: 60_000,
  }, async () => {
    const [other, holder] = [await connectWith(60_000), await connectWith(60_000)];
    // The migration that the other process runs is the build of an index, which goes on until `holder` lets it end.
    await other.query(`CREATE TABLE slow (n integer); INSERT INTO slow VALUES (1);
      CREATE FUNCTION slowly(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${SLOW_LOCK}); RETURN n; END $$`);
    await holder.query(`SELECT pg_advisory_lock(${SLOW_LOCK})`);
    await other.query('BEGIN');
    await other.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    const building = other.query('CREATE INDEX ON slow (slowly(n))');
    // It comes only after more than the timeouts.
    const progress = Promise.withResolvers<StepProgress>();
    const preparing = await connectWith(READ_TIMEOUT_MS);
    const prepared = prepareDatabase(
      migratorOf(preparing, (step) => {
        if (step.detail !== null) progress.resolve(step);
      }),
      catalogueTables,
    );
    try {
      await Promise.race([progress.promise, building, prepared]);
      assert.deepEqual(await tablesThere(), ['slow']);
      await holder.query(`SELECT pg_advisory_unlock(${SLOW_LOCK})`);
      await building;
      await other.query('COMMIT');
      await prepared;
    } finally {
      for (const client of [holder, other, preparing]) await client.end();
    }
    assert.deepEqual(await tablesThere(), [...ours, 'slow'].toSorted());
    const { doing, detail } = await progress.promise;
    assert.equal(doing, 'waiting for another process to migrate the database');
    assert.match(detail!, /^scanning table/);
  });

  test('a process waits for the lock of a table for a limited time', async () => {
    await openAndClose();
    await ask('DROP INDEX interactions_by_user');
    const other = await connectWith(60_000);
    await other.query('BEGIN; LOCK TABLE interactions');
    const preparing = await connectWith(60_000);
    try {
      await assert.rejects(prepareDatabase(migratorOf(preparing), catalogueTables), /lock timeout/);
    } finally {
      await other.end();
      await preparing.end();
    }
  });
});

describe('a database with tables of another program', () => {
  test('is accepted if their names differ from those of Headgate', async () => {
    await ask('CREATE TABLE ledger (entry text)');
    await openAndClose();
    await openAndClose();
    assert.deepEqual(await tablesThere(), [...ours, 'ledger'].toSorted());
  });

  test('is refused if one has the name of a table of Headgate', async () => {
    await ask('CREATE TABLE offers (offer_id integer)');
    await assertRefused(/has a table offers that Headgate has not made/);
    assert.deepEqual(await tablesThere(), ['offers']);
  });

  test('can be shared if Headgate has its own schema', async () => {
    await ask('CREATE TABLE offers (offer_id integer); CREATE SCHEMA ours');
    const url = `${database.url}?options=-csearch_path%3Dours`;
    const store = await openStore(url);
    const { organisation } = (await store.createOrganisation('one', randomUUID(), 1))!;
    const row = recordRow('offers');
    await store.write({
      organisation,
      type: 'offers',
      batches: [[row]],
      idempotencyRecord: null,
      entry: null,
    });
    assert.deepEqual(await store.record(organisation, 'offers', row[0] as string), row);
    await store.close();
    assert.deepEqual(await tablesThere(), ['offers']);
  });
});

describe('a database of another version', () => {
  beforeEach(() => openAndClose());

  test('that is newer is refused', async () => {
    await ask(`UPDATE headgate_schema SET version = ${SCHEMA_VERSION + 1}`);
    await assertRefused(/made by a newer Headgate \(schema \d+; this one knows \d+\): upgrade Headgate$/);
  });

  test('with an unknown column is refused', async () => {
    await ask('ALTER TABLE shops ADD COLUMN colour text');
    await assertRefused(/its table shops has a column colour that this one does not know/);
  });

  test('with a column of another type is refused', async () => {
    await ask('ALTER TABLE shops ALTER COLUMN is_public TYPE text');
    await assertRefused(/stores the column shops\.is_public as text, but this Headgate stores boolean/);
  });

  test('that lacks a type, a field and an index gets them, and keeps its records', async () => {
    await ask(`INSERT INTO organisations (org_id, name, created_at_ms) VALUES ('id', 'one', 1);
      INSERT INTO shops (organisation, shop_id, name, region, is_deleted)
        VALUES (1, '8d7ce2ca-5c5b-4ef6-9b1e-3b7d9a0f4c11', 'Corner Books', 'GB', true);
      ALTER TABLE shops DROP COLUMN is_deleted, DROP COLUMN is_public;
      DROP TABLE tags;
      DROP INDEX interactions_by_user`);
    const store = await openStore(database.url);
    assert.deepEqual(await store.record(1, 'shops', '8d7ce2ca-5c5b-4ef6-9b1e-3b7d9a0f4c11'), [
      '8d7ce2ca-5c5b-4ef6-9b1e-3b7d9a0f4c11',
      'Corner Books',
      'GB',
      null,
      null,
      null,
      false,
    ]);
    await store.close();
    assert.deepEqual(await tablesThere(), ours);
    assert.equal((await ask(`SELECT 1 FROM pg_class WHERE relname = 'interactions_by_user'`)).length, 1);
  });
});

describe('a database of an older version whose index contains whole texts', () => {
  test('gets an index that accepts every text', async () => {
    await openAndClose();
    await ask(`DROP INDEX interactions_by_user;
      CREATE INDEX interactions_by_user ON interactions (organisation, user_id, occurred_at, interaction_id)
        WHERE user_id IS NOT NULL;
      DROP TABLE ledgers, ledger_entries, usage_days, segment_sets, segments, segment_memberships;
      UPDATE headgate_schema SET version = 1`);
    await openAndClose();
    const [index] = await ask(`SELECT indexdef FROM pg_indexes WHERE indexname = 'interactions_by_user'`);
    assert.match(String(index!.indexdef), /"?left"?\(user_id, 256\)/);
    assert.deepEqual(await ask('SELECT version FROM headgate_schema'), [{ version: SCHEMA_VERSION }]);
  });
});

describe('a database of an older version with an index by source', () => {
  test('loses the index', async () => {
    await openAndClose();
    await ask(`CREATE INDEX interactions_by_source ON interactions (organisation, source, occurred_at, interaction_id)
        WHERE source IS NOT NULL;
      UPDATE headgate_schema SET version = ${SCHEMA_VERSION - 1}`);
    await openAndClose();
    assert.deepEqual(await ask(`SELECT 1 FROM pg_class WHERE relname = 'interactions_by_source'`), []);
    assert.deepEqual(await ask('SELECT version FROM headgate_schema'), [{ version: SCHEMA_VERSION }]);
  });
});

describe('a database of an older version with NOT NULL columns', () => {
  test('gets the constraints of a new database, and no table is rewritten', async () => {
    await openAndClose();
    await ask(`ALTER TABLE shops ALTER name SET NOT NULL, ALTER region SET NOT NULL;
      ALTER TABLE interactions ALTER item_id SET NOT NULL`);
    const files = () => ask(`SELECT relname, relfilenode FROM pg_class WHERE relkind = 'r' ORDER BY relname`);
    const before = await files();
    await openAndClose();
    assert.deepEqual(await notNull(), keyColumns());
    assert.deepEqual(await files(), before);
  });
});

describe('a database that cannot be prepared', () => {
  test('because the role may not create tables is refused', async () => {
    const role = `weak_${name}`;
    // Up to PostgreSQL 14 every role may create tables by default.
    await ask(`CREATE ROLE ${role} LOGIN PASSWORD 'weak'; REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
    const url = Object.assign(new URL(database.url), { username: role, password: 'weak' }).href;
    await assertRefused(
      /the role weak_\w+ lacks a right \(permission denied for schema public\); grant it CREATE/,
      url,
    );
    await openAndClose();
    // After another role has prepared the database, rights to the tables are enough.
    await ask(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role}`);
    const store = await openStore(url);
    assert.notEqual(await store.createOrganisation('one', randomUUID(), 1), null);
    await store.close();
    await ask(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });

  test('because it is not encoded in UTF-8 is refused', async () => {
    const latin = `${name}_latin`;
    await ask(
      `CREATE DATABASE ${latin} TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'`,
    );
    await assertRefused(/is encoded in LATIN1: create one with ENCODING 'UTF8'/, server.urlOf(latin));
    await ask(`DROP DATABASE ${latin}`);
  });
});
