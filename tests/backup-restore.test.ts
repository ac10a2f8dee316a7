// The ways back that docs/backup.md tells of, line by line as they stand there.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { testServer } from '../server/store/postgres/test-server.ts';
import { apiOf } from './harness/api.ts';
import { examplesOf } from './harness/docs-page.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord } from './harness/records.ts';

const run = promisify(execFile);
const examples = examplesOf(readFileSync(new URL('../docs/backup.md', import.meta.url), 'utf8'));

/** The lines of the page's only example that holds the words. */
function linesWith(words: string): readonly string[] {
  const found = examples.filter(({ text }) => text.includes(words));
  assert.equal(found.length, 1, `${found.length} examples hold ${words}`);
  return found[0]!.text.split('\n');
}

test('a SQLite database that is restored is as it was, whatever the old one had left', async (t) => {
  const { folder, remove } = await newDatabaseFolder();
  t.after(remove);
  const place = join(folder, 'headgate');
  const backups = join(folder, 'backups');
  mkdirSync(place);
  mkdirSync(backups);
  const database = `sqlite:${join(place, 'headgate.db')}`;
  let headgate: Headgate = await startHeadgate(database);
  t.after(() => headgate.kill());
  const { key } = await headgate.newKey();
  const [kept, lost] = [leastRecord('shops'), leastRecord('shops')];
  assert.equal((await apiOf(headgate.url, key).upload('shops', [kept])).status, 200);
  await headgate.command('backup', join(backups, 'monday.db'));
  assert.equal((await apiOf(headgate.url, key).upload('shops', [lost])).status, 200);
  const logs = ['-wal', '-shm'].map((suffix) => join(place, `headgate.db${suffix}`));
  for (const log of logs) copyFileSync(log, `${log}.left`);

  for (const line of linesWith('systemctl stop headgate')) {
    if (line === 'systemctl start headgate') headgate = await startHeadgate(database);
    else if (line === 'systemctl stop headgate') {
      await headgate.stop();
      // As after a crash, when nobody has cleared the log away.
      for (const log of logs) copyFileSync(`${log}.left`, log);
    } else {
      const command = line.replaceAll('/var/lib/headgate', place).replaceAll('/mnt/backups', backups);
      await run('sh', ['-euc', command]);
    }
  }

  const ids = (await readAllRecords(apiOf(headgate.url, key), 'shops')).map((shop) => idOf('shops', shop));
  assert.deepEqual(ids, [idOf('shops', kept)]);
  assert.equal((await apiOf(headgate.url, key).upload('shops', [lost])).status, 200);
});

test('a PostgreSQL database that is restored from a dump is as it was', async (t) => {
  const server = await testServer();
  const version = async (program: string): Promise<number> =>
    run(program, ['--version']).then(
      ({ stdout }) => Number(/(\d+)[.\d]*/.exec(stdout)![1]),
      () => 0,
    );
  const [settings] = await server.ask('postgres', 'SHOW server_version_num');
  const serverVersion = Math.floor(Number(settings?.server_version_num) / 10_000);
  const toolVersion = Math.min(await version('pg_dump'), await version('pg_restore'));
  if (toolVersion < serverVersion) {
    return t.skip(
      `needs pg_dump and pg_restore of PostgreSQL ${serverVersion}, and there are ${toolVersion || 'none'}`,
    );
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
  for (const command of [...linesWith('pg_dump --format'), ...linesWith('pg_restore --no-owner')]) {
    await run('sh', ['-euc', command.replaceAll('/mnt/backups', folder)], { env });
  }
  const second = await startHeadgate(restored.url);
  t.after(() => second.kill());
  assert.equal((await apiOf(second.url, key).read('shops', idOf('shops', shop))).body.name, shop.name);
  assert.equal((await apiOf(second.url, key).upload('shops', [leastRecord('shops')])).status, 200);
});
