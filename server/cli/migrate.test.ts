import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { SCHEMA_VERSION } from '../store/postgres/migrations.ts';
import { testClusters } from '../store/postgres/test-cluster.ts';
import { testServer } from '../store/postgres/test-server.ts';
import { SCHEMA_VERSION as SQLITE_SCHEMA_VERSION } from '../store/sqlite/migrations.ts';
import { runHeadgate } from './run.ts';

async function migrate(
  database: string,
  ...options: string[]
): Promise<{ exitCode: number; out: string[]; err: string[] }> {
  const out: string[] = [];
  const err: string[] = [];
  const exitCode = await runHeadgate(['migrate', '--database', database, ...options], {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    isTerminal: false,
    rewrite: (text) => err.push(text),
    env: {},
    nowMs: Date.now,
  });
  return { exitCode, out, err };
}

const isUpToDate = (version: number): string =>
  `The database is up to date, with version ${version} of the schema.`;

test('an SQLite file is migrated, and a second migration changes nothing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-migrate-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'headgate.db');
  const database = `sqlite:${path}`;
  await writeFile(path, '');
  for (let times = 1; times <= 2; times++) {
    assert.deepEqual(await migrate(database), {
      exitCode: 0,
      out: [isUpToDate(SQLITE_SCHEMA_VERSION), 'It is an SQLite file, on this machine.'],
      err: [],
    });
  }
  assert.deepEqual((await migrate(database, '--json')).out, [
    `{"database":"sqlite","schema_version":${SQLITE_SCHEMA_VERSION},"citus":null}`,
  ]);
});

test('a PostgreSQL database without Citus is migrated', async (t) => {
  const server = await testServer();
  const { url, drop } = await server.newDatabase();
  t.after(drop);
  assert.deepEqual((await migrate(url, '--json')).out, [
    `{"database":"postgres","schema_version":${SCHEMA_VERSION},"citus":null}`,
  ]);
  assert.deepEqual(await migrate(url), {
    exitCode: 0,
    out: [isUpToDate(SCHEMA_VERSION), 'It is a PostgreSQL database without Citus, on one server.'],
    err: [],
  });
});

test('a long step shows its name and its duration so far', async (t) => {
  const server = await testServer();
  const { url, name, drop } = await server.newDatabase();
  t.after(drop);
  await migrate(url);
  await server.ask(name, 'DROP INDEX interactions_by_user');
  await server.ask(
    name,
    `CREATE FUNCTION slow_down() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(4); END $$;
      CREATE EVENT TRIGGER slow_down ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
        EXECUTE FUNCTION slow_down()`,
  );
  const { exitCode, out, err } = await migrate(url, '--json');
  assert.deepEqual([exitCode, out.length], [0, 1]);
  assert.ok(err.length > 0);
  for (const line of err) {
    assert.match(line, /^building the index interactions_by_user of the table interactions: \d+(\.\d)? s$/);
  }
});

test('a database that cannot be reached is reported with one sentence', async () => {
  const { exitCode, out, err } = await migrate('postgres://nobody@127.0.0.1:1/none');
  assert.deepEqual([exitCode, out, err.length], [1, [], 1]);
  assert.match(err[0]!, /^headgate: the PostgreSQL database none at 127\.0\.0\.1:1 cannot be reached: /);
});

for (const testCluster of testClusters) {
  test('the tables of a Citus database are distributed once', async (t) => {
    const cluster = await testCluster();
    const plain = await cluster.newPlainDatabase();
    t.after(plain.drop);
    await migrate(plain.url);
    await plain.addCitus();
    const first = await migrate(plain.url);
    assert.equal(first.exitCode, 0);
    assert.deepEqual(first.out.slice(-2), [
      isUpToDate(SCHEMA_VERSION),
      `It is a Citus cluster; its tables are distributed over ${cluster.workers} nodes.`,
    ]);
    const lines = first.out.slice(0, -2);
    assert.ok(lines.includes('Distributed the table transactions.'));
    assert.ok(lines.every((line) => /^Distributed the table [a-z_]+\.$/.test(line)));
    assert.deepEqual((await migrate(plain.url)).out, [
      isUpToDate(SCHEMA_VERSION),
      `It is a Citus cluster; its tables are already distributed over ${cluster.workers} nodes.`,
    ]);
    assert.deepEqual((await migrate(plain.url, '--json')).out, [
      `{"database":"postgres","schema_version":${SCHEMA_VERSION},"citus":{"distributed":[],"made_local":[],"nodes":${cluster.workers}}}`,
    ]);
  });
}
