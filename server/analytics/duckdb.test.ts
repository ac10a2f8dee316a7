import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openReplicaDatabase } from './duckdb.ts';

test('a replica is stored, confined to its file, and has time zones, JSON and Parquet', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "headgate-duckdb's-"));
  t.after(() => rm(folder, { recursive: true }));
  const temporaryFolder = join(folder, 'temporary');
  const exportFolder = join(folder, 'export');
  await mkdir(temporaryFolder);
  await mkdir(exportFolder);
  const options = { memoryMb: 200, threads: 2, temporaryFolder, temporaryMb: 100, exportFolder };
  const path = join(folder, 'replica.duckdb');

  const first = await openReplicaDatabase(path, options);
  const writing = await first.connect();
  await writing.run('CREATE TABLE t AS SELECT 1 AS a');
  await writing.run('INSERT INTO t VALUES (2)');
  writing.disconnectSync();
  first.closeSync();

  const second = await openReplicaDatabase(path, options);
  t.after(() => second.closeSync());
  const connection = await second.connect();
  const rows = async (sql: string) => (await connection.runAndReadAll(sql)).getRowsJson();
  const quoted = (name: string) => `'${join(exportFolder, name).replaceAll("'", "''")}'`;

  assert.deepEqual(await rows('SELECT a FROM t ORDER BY a'), [[1], [2]]);
  assert.deepEqual(
    await rows("SELECT (TIMESTAMPTZ '2024-07-01 12:00:00+00' AT TIME ZONE 'Europe/Berlin')::VARCHAR"),
    [['2024-07-01 14:00:00']],
  );
  assert.deepEqual(await rows("SELECT (TIMESTAMPTZ '2024-07-01 12:00:00+00')::VARCHAR"), [
    ['2024-07-01 12:00:00+00'],
  ]);
  assert.deepEqual(await rows(`SELECT '{"a": [1, 2]}'::JSON -> '$.a[1]'`), [['2']]);
  await connection.run(`COPY t TO ${quoted('t.parquet')} (FORMAT parquet, COMPRESSION zstd)`);
  assert.deepEqual(await readdir(exportFolder), ['t.parquet']);
  assert.deepEqual(await rows(`SELECT count(*)::INTEGER FROM read_parquet(${quoted('t.parquet')})`), [[2]]);

  assert.deepEqual(
    await rows(`
      SELECT name, value FROM duckdb_settings() WHERE name IN ('allow_community_extensions', 'allow_persistent_secrets',
        'allow_unsigned_extensions', 'autoinstall_known_extensions', 'autoload_known_extensions',
        'enable_external_access', 'lock_configuration', 'threads', 'TimeZone')
      ORDER BY lower(name)`),
    [
      ['allow_community_extensions', 'false'],
      ['allow_persistent_secrets', 'false'],
      ['allow_unsigned_extensions', 'false'],
      ['autoinstall_known_extensions', 'false'],
      ['autoload_known_extensions', 'false'],
      ['enable_external_access', 'false'],
      ['lock_configuration', 'true'],
      ['threads', '2'],
      ['TimeZone', 'UTC'],
    ],
  );
  for (const refused of [
    `COPY t TO ${quoted('../t.parquet')}`,
    `COPY t TO '/tmp/t.parquet'`,
    'SET lock_configuration = false',
    'SET threads = 3',
  ]) {
    await assert.rejects(connection.run(refused), /disabled by configuration|has been locked/, refused);
  }
  connection.disconnectSync();
});

test('a query that does not fit into memory uses the temporary folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-duckdb-'));
  t.after(() => rm(folder, { recursive: true }));
  const options = {
    memoryMb: 100,
    threads: 2,
    temporaryFolder: join(folder, 'temporary'),
    temporaryMb: 500,
    exportFolder: folder,
  };
  const instance = await openReplicaDatabase(join(folder, 'replica.duckdb'), options);
  t.after(() => instance.closeSync());
  const connection = await instance.connect();
  const reader = await connection.runAndReadAll(
    'SELECT count(*)::INTEGER FROM (SELECT DISTINCT md5(i::VARCHAR) FROM range(3000000) t(i))',
  );
  assert.deepEqual(reader.getRowsJson(), [[3_000_000]]);
  connection.disconnectSync();
});
