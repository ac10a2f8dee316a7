// Files that Headgate writes are accessible to their owner only, whatever the umask is.

import assert from 'node:assert/strict';
import { chmod, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openStore } from '../server/store/open-store.ts';
import { apiOf } from './harness/api.ts';
import { startFaultyProxy } from './harness/faulty-proxy.ts';
import { type Headgate, newDatabaseFolder, runHeadgate, startHeadgate } from './harness/headgate.ts';
import { type LoadFolder, loadFolder } from './harness/loading.ts';
import { leastRecord } from './harness/records.ts';
import { waitUntil } from './harness/waiting.ts';

// The processes that are started here inherit this umask. It removes no permission, so Headgate sets every mode.
process.umask(0);

const permissionsOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

/** Returns the permissions of everything below the folder, by path. */
async function permissionsBelow(folder: string): Promise<Record<string, string>> {
  const names = await readdir(folder, { recursive: true });
  const found = await Promise.all(
    names.sort().map(async (name) => [name, await permissionsOf(join(folder, name))]),
  );
  return Object.fromEntries(found);
}

/** Makes a folder that others may read, like most folders. */
async function openFolder(t: TestContext): Promise<string> {
  const { folder, remove } = await newDatabaseFolder();
  t.after(remove);
  await chmod(folder, 0o755);
  return folder;
}

async function startIn(t: TestContext, database: string): Promise<Headgate> {
  const headgate = await startHeadgate(database);
  t.after(() => headgate.stop());
  return headgate;
}

async function filesOf(t: TestContext, headgate: Headgate): Promise<LoadFolder> {
  const { key } = await headgate.newKey();
  await apiOf(headgate.url, key).upload('tags', [leastRecord('tags')]);
  return loadFolder(t, { HEADGATE_URL: headgate.url, HEADGATE_KEY: key });
}

test('the database, its new folders and its copies are accessible to their owner only', async (t) => {
  const folder = await openFolder(t);
  const headgate = await startIn(t, join(folder, 'made', 'too', 'headgate.db'));
  await headgate.newKey('acme');
  await runHeadgate(['backup', join(folder, 'backup.db'), '--database', headgate.database], process.env);
  await runHeadgate(['copy', '--from', headgate.database, '--to', join(folder, 'copy.db')], process.env);
  assert.deepEqual(await permissionsBelow(folder), {
    'backup.db': '600',
    'copy.db': '600',
    made: '700',
    'made/too': '700',
    'made/too/headgate.db': '600',
    'made/too/headgate.db-shm': '600',
    'made/too/headgate.db-wal': '600',
  });
  assert.equal(await permissionsOf(folder), '755', 'a folder that existed stays as it was');
  assert.doesNotMatch(headgate.output(), /chmod/);
});

test('exports, samples and rejected records are accessible to their owner only', async (t) => {
  const headgate = await startIn(t, join(await openFolder(t), 'headgate.db'));
  const files = await filesOf(t, headgate);
  assert.equal((await files.run('export', 'tags', '--out', 'tags.csv')).exitCode, 0);
  assert.equal((await files.run('export', 'tags', '--out', 'tags.ndjson.gz')).exitCode, 0);
  assert.equal((await files.run('sample', 'sample', '--customers', '1')).exitCode, 0);
  await files.write('bad/shops.csv', 'shop_id,name,region\nx,y,z\n');
  assert.equal((await files.run('load', 'bad')).exitCode, 1);
  const permissions = Object.entries(await permissionsBelow(files.path)).filter(
    ([name]) => !name.startsWith('bad'),
  );
  assert.ok(permissions.some(([name]) => name === join('rejected', 'shops.ndjson')));
  for (const [name, given] of permissions) {
    const isFolder = ['rejected', 'sample'].includes(name);
    assert.equal(given, isFolder ? '700' : '600', name);
  }
});

test('the files of queries are accessible to their owner only', async (t) => {
  const folder = await openFolder(t);
  const headgate = await startIn(t, join(folder, 'headgate.db'));
  const { key } = await headgate.newKey();
  const api = apiOf(headgate.url, key);
  await api.upload('tags', [leastRecord('tags')]);
  assert.equal((await api.request('/v1/sql', { body: { sql: 'SELECT * FROM tags' } })).status, 200);
  const analytics = join(folder, 'analytics');
  assert.equal(await permissionsOf(analytics), '700');
  const permissions = Object.entries(await permissionsBelow(analytics));
  assert.ok(
    permissions.some(([name]) => name.endsWith('.duckdb')),
    JSON.stringify(permissions),
  );
  for (const [name, given] of permissions) assert.match(given, /^[67]00$/, name);
});

test('the journal of a running load is accessible to its owner only; its folder is unchanged', async (t) => {
  const headgate = await startIn(t, join(await openFolder(t), 'headgate.db'));
  const files = await filesOf(t, headgate);
  const proxy = await startFaultyProxy(headgate.url);
  t.after(() => proxy.close());
  const rows = (from: string) =>
    Array.from({ length: 5000 }, (_, at) => `${from}-0000-4000-8000-${String(at).padStart(12, '0')},a`);
  const bad = ['not an id,a'];
  await files.write(
    'tags.csv',
    ['tag_id,name', ...bad, ...rows('00000000'), ...rows('00000001'), ''].join('\n'),
  );
  await mkdir(join(files.path, 'rejected'));
  let uploads = 0;
  proxy.fault = ({ method }) => (method === 'POST' && ++uploads > 1 ? 'silence' : null);
  const loading = files.start('load', 'tags.csv', '--concurrency', '1', '--url', proxy.url);
  const isNoted = async () => (await files.names('rejected')).some((name) => name.endsWith('.json'));
  await waitUntil('the first part is noted', isNoted);
  const permissions = Object.entries(await permissionsBelow(join(files.path, 'rejected')));
  assert.deepEqual(
    permissions.map(([name, given]) => [name.replace(/^.*\./, ''), given]),
    [
      ['lock', '600'],
      ['json', '600'],
      ['part', '600'],
    ],
  );
  assert.equal(await permissionsOf(join(files.path, 'rejected')), '777');
  loading.child.kill('SIGKILL');
  await loading.ended;
});

test('the start warns once of a database that others may read, and keeps its permissions', async (t) => {
  const folder = await openFolder(t);
  const database = join(folder, 'headgate.db');
  await (await openStore(database)).close();
  await chmod(database, 0o644);
  const open = await startHeadgate(database);
  await open.stop();
  assert.equal(await permissionsOf(database), '644');
  const warnings = open
    .output()
    .split('\n')
    .filter((line) => line.includes('chmod'));
  assert.equal(warnings.length, 1, open.output());
  const { level, message } = JSON.parse(warnings[0]!) as { level: string; message: string };
  assert.equal(level, 'warn');
  assert.ok(message.includes(`chmod 600 ${database} ${database}-wal ${database}-shm`), message);

  await chmod(database, 0o600);
  const closed = await startHeadgate(database);
  await closed.stop();
  assert.doesNotMatch(closed.output(), /chmod/);
});
