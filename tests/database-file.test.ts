// The database file is deleted, moved or replaced while a server runs. Specific to SQLite.
//
// Writes to a file that is no longer at its path are lost when the server ends, so they must not be acknowledged.

import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../server/store/open-store.ts';
import { everyRecord } from '../server/store/test-lists.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type RefusalBody, type Reply } from './harness/api.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { idOf, leastRecord, type TestRecord } from './harness/records.ts';
import { waitUntil } from './harness/waiting.ts';

const ROUNDS = times(5, 3);

interface Served {
  /** The folder that contains only the database; `aside` is another folder. */
  readonly folder: string;
  readonly aside: string;
  readonly path: string;
  readonly headgate: Headgate;
  readonly api: Api;
  /** Ends the server, opens the database as the next server does, and returns the ids of all shops. */
  idsAfterRestart(how: 'stop' | 'kill'): Promise<readonly string[]>;
}

async function serve(t: TestContext): Promise<Served> {
  const { folder: outer, remove } = await newDatabaseFolder();
  const [folder, aside] = [join(outer, 'data'), join(outer, 'aside')];
  mkdirSync(folder);
  mkdirSync(aside);
  const path = join(folder, 'headgate.db');
  const headgate = await startHeadgate(path);
  t.after(async () => {
    await headgate.kill();
    await remove();
  });
  const { key, org_id } = await headgate.newKey();
  return {
    folder,
    aside,
    path,
    headgate,
    api: apiOf(headgate.url, key),
    async idsAfterRestart(how) {
      if (how === 'stop') assert.equal(await headgate.stop(), 0);
      else await headgate.kill();
      const store = await openStore(path);
      try {
        const { organisation } = (await store.organisations()).find(({ orgId }) => orgId === org_id)!;
        return (await everyRecord(store, organisation, 'shops')).map(([id]) => String(id)).sort();
      } finally {
        await store.close();
      }
    },
  };
}

async function acknowledged(api: Api): Promise<string> {
  const shop = leastRecord('shops');
  const { status, text } = await api.upload('shops', [shop]);
  assert.equal(status, 200, text);
  return idOf('shops', shop);
}

/** Checks that uploads, interactions and reads fail as in the contract, `/readyz` is 503, and the log says why. */
async function assertFails({ api, headgate }: Served, why: RegExp): Promise<void> {
  const loggedBefore = headgate.output().length;
  const uploaded = await api.upload('shops', [leastRecord('shops')]);
  assert.equal(uploaded.status, 500, uploaded.text);
  assert.deepEqual(
    uploaded.body.batches.flatMap(({ data }) => data.errors.map(({ code }) => code)),
    ['store_unavailable'],
  );
  const recorded = await api.record<RefusalBody>(interaction());
  assert.equal(recorded.status, 500, recorded.text);
  assert.deepEqual(
    recorded.body.details?.map(({ code }) => code),
    ['store_unavailable'],
  );
  assert.equal((await api.list('shops')).status, 503);
  await assertNotReady(api);
  await waitUntil('the log says why', () => why.test(headgate.output().slice(loggedBefore)));
  assert.equal((await api.request('/livez')).status, 200);
}

async function assertNotReady(api: Api): Promise<void> {
  const { status, headers } = await api.request('/readyz');
  assert.equal(status, 503);
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
}

function interaction(): TestRecord {
  return { interaction_type: 'SHARE', item_type: 'SHOP', item_id: crypto.randomUUID(), event_timestamp: 1 };
}

function integrityOf(path: string): unknown {
  const database = new DatabaseSync(path);
  try {
    return database.prepare('PRAGMA integrity_check').get()?.integrity_check;
  } finally {
    database.close();
  }
}

const gone = /the database \S+headgate\.db was deleted or moved away while it was in use/;
const replaced = /another file was put in the place of the database \S+headgate\.db while it was in use/;

test('an idle server notices that its database was deleted, and requests fail', async (t) => {
  const served = await serve(t);
  const { api, folder, aside, headgate } = served;
  const ids = [await acknowledged(api)];
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  await assertNotReady(api);
  await assertFails(served, gone);
  assert.deepEqual(readdirSync(folder), [], 'nothing is put in its place');
  if (process.platform !== 'linux') return;

  // As described in docs/backup.md.
  const files = ['headgate.db', 'headgate.db-wal'];
  for (const file of files) copyOpenFile(headgate.process.pid!, file, join(aside, file));
  assert.equal(await headgate.stop(), 0);
  for (const file of files) renameSync(join(aside, file), join(folder, file));
  assert.deepEqual(await served.idsAfterRestart('kill'), ids);
});

function copyOpenFile(pid: number, name: string, to: string): void {
  const folder = `/proc/${pid}/fd`;
  const opened = readdirSync(folder).find((number) =>
    readlinkSync(join(folder, number)).endsWith(`/${name} (deleted)`),
  );
  copyFileSync(join(folder, opened!), to);
}

test('a database that was moved away and back, alone or with its folder, is served again', async (t) => {
  const served = await serve(t);
  const { api, path, folder, aside, headgate } = served;
  const ids = [await acknowledged(api)];
  renameSync(path, join(aside, 'headgate.db'));
  await assertFails(served, gone);
  await assert.rejects(
    headgate.command('orgs', 'list'),
    /there is no database .*, but its log .*-wal exists/,
  );
  assert.equal(existsSync(path), false, 'the command puts nothing in its place');
  renameSync(join(aside, 'headgate.db'), path);
  assert.equal((await api.request('/readyz')).status, 200);
  ids.push(await acknowledged(api));

  renameSync(folder, `${folder}-moved`);
  await assertFails(served, gone);
  assert.equal(existsSync(folder), false, 'nothing is put in its place');
  renameSync(`${folder}-moved`, folder);
  assert.equal((await api.request('/readyz')).status, 200);
  ids.push(await acknowledged(api));
  assert.deepEqual(await served.idsAfterRestart('kill'), ids.sort());
});

for (const how of ['stop', 'kill'] as const) {
  test(`a backup that replaces the database is served undamaged after a restart (${how})`, async (t) => {
    const served = await serve(t);
    const { api, folder, path, aside, headgate } = served;
    const ids = [await acknowledged(api)];
    const backup = join(aside, 'backup.db');
    await headgate.command('backup', backup);
    const later = await acknowledged(api);
    renameSync(path, join(aside, 'old.db'));
    copyFileSync(backup, path);
    await assertFails(served, replaced);
    assert.equal((await api.request('/readyz')).status, 503);

    assert.deepEqual(await served.idsAfterRestart(how), ids);
    assert.equal(integrityOf(path), 'ok');
    const logAside = readdirSync(folder).filter((name) => name.startsWith('headgate.db-wal.'));
    assert.equal(logAside.length, 1);
    renameSync(join(folder, logAside[0]!), join(aside, 'old.db-wal'));
    const old = new DatabaseSync(join(aside, 'old.db'));
    t.after(() => old.close());
    const kept = old.prepare('SELECT shop_id FROM shops ORDER BY shop_id').all();
    assert.deepEqual(
      kept.map(({ shop_id }) => shop_id),
      [...ids, later].sort(),
      'the file that was moved aside and its log hold all that was acknowledged',
    );
  });

  test(`requests fail if the log is deleted, and nothing acknowledged is lost (${how})`, async (t) => {
    const served = await serve(t);
    const ids = [await acknowledged(served.api), await acknowledged(served.api)].sort();
    assert.ok(statSync(`${served.path}-wal`).size > 0);
    rmSync(`${served.path}-wal`);
    await assertFails(served, /headgate\.db-wal, a part of the database, was deleted or moved away/);
    assert.deepEqual(await served.idsAfterRestart(how), ids);
  });
}

test('nothing acknowledged is lost when the database is moved away and back under load', async (t) => {
  const served = await serve(t);
  const { api, path, aside } = served;
  const ids = [await acknowledged(api)];
  let isOver = false;
  const failed: Reply[] = [];
  const uploadWithoutPause = async (): Promise<void> => {
    while (!isOver) {
      const shops = Array.from({ length: 50 }, () => leastRecord('shops'));
      const reply = await api.upload('shops', shops);
      if (reply.status === 200) ids.push(...shops.map((shop) => idOf('shops', shop)));
      else failed.push(reply);
    }
  };
  const clients = Array.from({ length: 4 }, uploadWithoutPause);
  let takenMeanwhile = 0;
  for (let round = 0; round < ROUNDS; round++) {
    await sleep(100);
    renameSync(path, join(aside, 'headgate.db'));
    // Uploads in flight may have been committed before, and their responses are late on a busy machine.
    await assertNotReady(api);
    await sleep(500);
    const before = ids.length;
    await sleep(100);
    takenMeanwhile += ids.length - before;
    renameSync(join(aside, 'headgate.db'), path);
  }
  isOver = true;
  await Promise.all(clients);
  assert.equal((await api.request('/readyz')).status, 200);
  assert.ok(failed.length > 0);
  for (const { status, text } of failed) assert.ok(status === 500 || status === 503, text);
  t.diagnostic(`${ids.length} shops acknowledged, ${failed.length} uploads failed`);
  assert.equal(takenMeanwhile, 0);
  ids.push(await acknowledged(api));
  const there = new Set(await served.idsAfterRestart('kill'));
  for (const id of ids) assert.ok(there.has(id), id);
});
