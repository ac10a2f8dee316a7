// Runs the restore instructions of docs/backup.md, line by line.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openStore } from '../server/store/open-store.ts';
import { startTestServer } from '../server/store/postgres/test-server.ts';
import { isThorough } from '../server/store/test-thoroughness.ts';
import { apiOf } from './harness/api.ts';
import { examplesOf } from './harness/docs-page.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord } from './harness/records.ts';

const run = promisify(execFile);
const page = readFileSync(new URL('../docs/backup.md', import.meta.url), 'utf8');
const examples = examplesOf(page);

/** Returns the page's only example that contains the words. */
function exampleWith(words: string): string {
  const found = examples.filter(({ text }) => text.includes(words));
  assert.equal(found.length, 1, `${found.length} examples hold ${words}`);
  return found[0]!.text;
}

test('a restored SQLite database equals the backup, whatever files the old one left', async (t) => {
  const { folder, remove } = await newDatabaseFolder();
  t.after(remove);
  const place = join(folder, 'headgate');
  const backups = join(folder, 'backups');
  mkdirSync(place);
  mkdirSync(backups);
  const database = `sqlite:${join(place, 'headgate.db')}`;
  let headgate: Headgate = await startHeadgate(database);
  t.after(() => headgate.kill());
  const { key, org_id } = await headgate.newKey();
  const [kept, lost] = [leastRecord('shops'), leastRecord('shops')];
  assert.equal((await apiOf(headgate.url, key).upload('shops', [kept])).status, 200);
  await headgate.command('backup', join(backups, 'monday.db'));
  assert.equal((await apiOf(headgate.url, key).upload('shops', [lost])).status, 200);
  const logs = ['-wal', '-shm'].map((suffix) => join(place, `headgate.db${suffix}`));
  for (const log of logs) copyFileSync(log, `${log}.left`);

  const steps = /^systemctl stop headgate\n(.+)\nsystemctl start headgate$/s.exec(
    exampleWith('systemctl stop headgate'),
  );
  await headgate.stop();
  // As after a crash, which leaves the log behind.
  for (const log of logs) copyFileSync(`${log}.left`, log);
  const script = steps![1]!.replaceAll('/var/lib/headgate', place).replaceAll('/mnt/backups', backups);
  await run('sh', ['-euc', script]);
  headgate = await startHeadgate(database);

  const ids = (await readAllRecords(apiOf(headgate.url, key), 'shops')).map((shop) => idOf('shops', shop));
  assert.deepEqual(ids, [idOf('shops', kept)]);
  assert.equal((await apiOf(headgate.url, key).upload('shops', [lost])).status, 200);

  const asides = readdirSync(place).filter((name) => name.startsWith('before-'));
  assert.equal(asides.length, 1);
  const old = await openStore(join(place, asides[0]!, 'headgate.db'));
  t.after(() => old.close());
  const { organisation } = (await old.organisations()).find(({ orgId }) => orgId === org_id)!;
  const shops = [kept, lost].map((shop) => idOf('shops', shop));
  assert.deepEqual(await old.existing(organisation, 'shops', shops), new Set(shops));
});

test('the documented cron line makes a backup in the environment of cron', async (t) => {
  const { folder, remove } = await newDatabaseFolder();
  t.after(remove);
  const [, path] = /`PATH=([^`]+)`/.exec(page)!;
  const [, line] = /`0 3 \* \* \* ([^`]+)`/.exec(page)!;
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  symlinkSync(fileURLToPath(import.meta.resolve('headgate/bin/headgate.js')), join(programs, 'headgate'));
  symlinkSync(process.execPath, join(programs, 'node'));
  const env = { PATH: path!.replace('/usr/local/bin', programs), LC_ALL: 'C' };
  const command = line!
    .replaceAll('\\%', '%')
    .replace('/mnt/backups', folder)
    .replace('/var/lib/headgate/headgate.db', join(folder, 'headgate.db'));
  await run('headgate', ['orgs', 'create', 'acme', '--database', join(folder, 'headgate.db')], { env });
  const { stderr } = await run('/bin/sh', ['-c', command], { env });
  assert.equal(stderr, '');
  assert.ok(readdirSync(folder).some((name) => /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\.db$/.test(name)));
});

test('a PostgreSQL database restored from a dump holds the same data', async (t) => {
  const toolVersion = Math.min(await versionOf('pg_dump'), await versionOf('pg_restore'));
  // Use Debian's server of the same version, if there is one: the tools do not dump from a newer server.
  const itsPrograms = `/usr/lib/postgresql/${toolVersion}/bin`;
  if (existsSync(join(itsPrograms, 'initdb'))) process.env.HEADGATE_TEST_POSTGRES_PROGRAMS ??= itsPrograms;
  const server = await startTestServer();
  const [settings] = await server.ask('postgres', 'SHOW server_version_num');
  const serverVersion = Math.floor(Number(settings?.server_version_num) / 10_000);
  if (toolVersion < serverVersion) {
    const reason = `needs pg_dump and pg_restore of PostgreSQL ${serverVersion}, and there are ${toolVersion || 'none'}`;
    assert.ok(!isThorough, `${reason}, and HEADGATE_TEST_ALL is 1`);
    return t.skip(reason);
  }
  const [original, restored] = [await server.newDatabase(), await server.newDatabase()];
  t.after(original.drop);
  t.after(restored.drop);
  const folder = mkdtempSync(join(tmpdir(), 'headgate-dump-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const first = await startHeadgate(original.url);
  t.after(() => first.kill());
  const { key } = await first.newKey();
  const shop = leastRecord('shops');
  assert.equal((await apiOf(first.url, key).upload('shops', [shop])).status, 200);

  const env = { ...process.env, HEADGATE_DATABASE: original.url, RESTORED_DATABASE: restored.url };
  for (const command of [exampleWith('pg_dump --format'), exampleWith('pg_restore --no-owner')]) {
    await run('sh', ['-euc', command.replaceAll('/mnt/backups', folder)], { env });
  }
  const second = await startHeadgate(restored.url);
  t.after(() => second.kill());
  assert.equal((await apiOf(second.url, key).read('shops', idOf('shops', shop))).body.name, shop.name);
  assert.equal((await apiOf(second.url, key).upload('shops', [leastRecord('shops')])).status, 200);
});

/** Resolves to the major version of a program of PostgreSQL; 0 if this machine does not have it. */
async function versionOf(program: string): Promise<number> {
  return run(program, ['--version']).then(
    ({ stdout }) => Number(/(\d+)[.\d]*/.exec(stdout)![1]),
    () => 0,
  );
}
