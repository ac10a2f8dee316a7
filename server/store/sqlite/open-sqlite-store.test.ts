import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { attachStore, type OpenedStore, openStore, transferablesOf } from '../open-store.ts';
import {
  type OrganisationNumber,
  type Store,
  StoreUnavailable,
  StoreUnusable,
  type Upload,
} from '../store.ts';
import { recordRow } from '../test-rows.ts';
import { asOpeningError } from './database.ts';
import { SCHEMA_VERSION } from './migrations.ts';
import type { ThreadName, ThreadNews } from './sqlite-store.ts';
import { testFolder } from './test-folder.ts';
import { endOf, startProcess } from './test-process.ts';

function pathIn(t: TestContext): string {
  return join(testFolder(t), 'headgate.db');
}

async function opened(t: TestContext, path: string = pathIn(t)): Promise<OpenedStore> {
  const store = await openStore(path);
  t.after(() => store.close());
  return store;
}

async function organisationIn(store: Store): Promise<OrganisationNumber> {
  return (await store.createOrganisation(randomUUID(), randomUUID(), 1))!.organisation;
}

function uploadOf(organisation: OrganisationNumber, rowCount = 1): Upload {
  const rows = Array.from({ length: rowCount }, () => recordRow('tags'));
  return { organisation, type: 'tags', batches: [rows], dryRun: false, memory: null };
}

const ALL = { afterId: null, limit: 100_000, includeDeleted: true };

async function refusalOf(path: string): Promise<string> {
  const error = await openStore(path).then(
    () => assert.fail('the database was accepted'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StoreUnusable, String(error));
  return error.message;
}

test('a file that is no database is refused and left as it was', async (t) => {
  const path = pathIn(t);
  writeFileSync(path, 'name;region\n'.repeat(500));
  assert.equal(await refusalOf(path), `${path} is not a SQLite database`);
  assert.equal(existsSync(`${path}-wal`), false);
});

test('of uploads that are committed together, one that cannot be written takes none of the others with it', async (t) => {
  const store = await opened(t);
  const organisation = await organisationIn(store);
  const good = Array.from({ length: 4 }, () => uploadOf(organisation, 3));
  const broken: Upload = {
    ...uploadOf(organisation),
    batches: [[recordRow('tags'), recordRow('tags').slice(1)]],
  };
  const uploads = [...good.slice(0, 2), broken, ...good.slice(2)];
  const written = await Promise.allSettled(uploads.map((upload) => store.write(upload)));
  assert.deepEqual(
    written.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  );
  const there = await store.records(organisation, 'tags', ALL);
  assert.deepEqual(
    new Set(there.map(([id]) => id)),
    new Set(good.flatMap(({ batches }) => batches.flat().map(([id]) => id))),
  );
});

test('a newer database is refused', async (t) => {
  const path = pathIn(t);
  await (await openStore(path)).close();
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  database.close();
  assert.match(await refusalOf(path), /was made by a newer Headgate .* upgrade Headgate$/);
});

test('a folder is refused', async (t) => {
  const path = pathIn(t);
  mkdirSync(path);
  assert.equal(await refusalOf(path), `the database ${path} is not a file: name a file`);
});

test('a folder that cannot be made is refused', async (t) => {
  const folder = testFolder(t);
  writeFileSync(join(folder, 'file'), '');
  for (const path of [join(folder, 'file', 'headgate.db'), join(folder, 'file', 'deeper', 'headgate.db')]) {
    assert.equal(
      await refusalOf(path),
      `${join(folder, 'file')} is not a folder: no database can be made in it`,
    );
  }
});

test('a file that may not be written is refused', (t) => {
  const folder = testFolder(t);
  const path = join(folder, 'headgate.db');
  const made = new DatabaseSync(path);
  made.exec('CREATE TABLE notes (note)');
  made.close();
  chmodSync(folder, 0o555);
  chmodSync(path, 0o444);
  const root = process.geteuid?.() === 0;
  // Permissions do not bind root, so it becomes somebody else for a moment.
  if (root) process.seteuid!(65_534);
  try {
    const database = new DatabaseSync(path);
    t.after(() => database.close());
    database.exec('INSERT INTO notes VALUES (1)');
    assert.fail('the file was written');
  } catch (error) {
    const opening = asOpeningError(path, error);
    assert.ok(opening instanceof StoreUnusable, String(error));
    assert.match(opening.message, /cannot be opened for writing: attempt to write a readonly database$/);
  } finally {
    if (root) process.seteuid!(0);
    chmodSync(folder, 0o755);
  }
});

test('several processes that start on the same new file all succeed', async (t) => {
  const path = pathIn(t);
  const processes = Array.from({ length: 4 }, (_, n) =>
    startProcess(
      `import { openStore } from '../open-store.ts';
      const [path, name] = process.argv.slice(1);
      const store = await openStore(path);
      await store.createOrganisation(name, name, 1);
      await store.close();`,
      path,
      `org ${n}`,
    ),
  );
  const endings = await Promise.all(processes.map(endOf));
  assert.deepEqual(
    endings.map(({ ending }) => ending),
    [0, 0, 0, 0],
  );
  const store = await opened(t, path);
  assert.equal((await store.organisations()).length, 4);
});

test('a process that forgets to close the store still ends', async (t) => {
  const path = pathIn(t);
  const { ending, printed } = await endOf(
    startProcess(
      `import { openStore } from '../open-store.ts';
      const store = await openStore(process.argv[1]);
      await store.createOrganisation('one', 'one', 1);
      console.log((await store.organisations()).length);`,
      path,
    ),
  );
  assert.equal(ending, 0);
  assert.equal(printed, '1\n');
});

test('what was acknowledged survives the death of the process, each upload whole or not at all', async (t) => {
  const path = pathIn(t);
  const child = startProcess(
    `import { openStore } from '../open-store.ts';
    import { recordRow } from '../test-rows.ts';
    const store = await openStore(process.argv[1]);
    const { organisation } = await store.createOrganisation('one', 'one', 1);
    let number = 0;
    const uploadWithoutEnd = async () => {
      for (;;) {
        const name = 'upload ' + ++number;
        const rows = Array.from({ length: 100 }, () => recordRow('tags', { name }));
        await store.write({ organisation, type: 'tags', batches: [rows], dryRun: false, memory: null });
        process.stdout.write(name + '\\n');
      }
    };
    await Promise.all([uploadWithoutEnd(), uploadWithoutEnd(), uploadWithoutEnd()]);`,
    path,
  );
  child.stdout.once('data', () => setTimeout(() => child.kill('SIGKILL'), 300));
  const { printed, ending } = await endOf(child);
  assert.equal(ending, 'SIGKILL');
  const acknowledged = printed.split('\n').slice(0, -1);
  assert.ok(acknowledged.length > 3);
  const store = await opened(t, path);
  const kept = new Map<string, number>();
  for (const row of await store.records(1, 'tags', ALL)) {
    const name = String(row[1]);
    kept.set(name, (kept.get(name) ?? 0) + 1);
  }
  for (const name of acknowledged) assert.equal(kept.get(name), 100, name);
  for (const [name, rows] of kept) assert.equal(rows, 100, name);
});

test('another process gets twelve keys in within two seconds while this one writes without pause', async (t) => {
  const path = pathIn(t);
  const store = await opened(t, path);
  const organisation = await organisationIn(store);
  let isDone = false;
  const writeWithoutPause = async (): Promise<void> => {
    const upload = uploadOf(organisation, 5000);
    while (!isDone) await store.write(upload);
  };
  const writing = Promise.all([1, 2, 3, 4].map(writeWithoutPause));
  const { printed } = await endOf(
    startProcess(
      `import { openStore } from '../open-store.ts';
      const store = await openStore(process.argv[1]);
      const startedAtMs = performance.now();
      for (const keyId of 'abcdefghijkl') {
        await store.addKey({
          keyId, organisation: 1, secretHash: '', name: null, scopes: [], createdAtMs: 1,
          expiresAtMs: null, revokedAtMs: null, lastUsedAtMs: null, replacedBy: null,
        });
      }
      console.log(performance.now() - startedAtMs);
      await store.close();`,
      path,
    ),
  );
  isDone = true;
  await writing;
  assert.equal((await store.keysOf(organisation)).length, 12);
  assert.ok(Number(printed) < 2000, `twelve keys took ${printed} ms`);
});

test('a store attached in another thread works on the same database, and closes by itself', async (t) => {
  const store = await opened(t);
  const organisation = await organisationIn(store);
  const handle = store.handle();
  const row = recordRow('tags');
  const worker = new Worker(
    `const { workerData, parentPort } = require('node:worker_threads');
    import(workerData.module).then(async ({ attachStore }) => {
      const store = await attachStore(workerData.handle);
      const { organisation, row } = workerData;
      await store.write({ organisation, type: 'tags', batches: [[row]], dryRun: false, memory: null });
      parentPort.postMessage(await store.records(organisation, 'tags', workerData.all));
      await store.close();
    });`,
    {
      eval: true,
      workerData: {
        module: new URL('../open-store.ts', import.meta.url).href,
        handle,
        organisation,
        row,
        all: ALL,
      },
      transferList: transferablesOf(handle),
    },
  );
  const seen = new Promise((resolve) => worker.once('message', resolve));
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  assert.deepEqual(await seen, [row]);
  assert.equal(await ended, 0);
  assert.deepEqual(await store.records(organisation, 'tags', ALL), [row]);
});

test('an attached store is told when the opened one is closed', async (t) => {
  const store = await opened(t);
  const attached = await attachStore(store.handle());
  t.after(() => attached.close());
  await attached.ping();
  await store.close();
  await assert.rejects(attached.ping(), StoreUnavailable);
});

/** Ends a thread as a bug in it would: by a message that it does not expect. */
function breakThread(store: OpenedStore, name: ThreadName): void {
  const handle = store.handle();
  assert.ok(handle.kind === 'sqlite');
  const { newsPort } = handle;
  for (let next = receiveMessageOnPort(newsPort); next; next = receiveMessageOnPort(newsPort)) {
    const news = next.message as ThreadNews & { readonly port: MessagePort };
    if (news.thread === name) news.port.postMessage(null);
    news.port.unref();
  }
  newsPort.unref();
}

async function untilItServes(store: Store): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  for (;;) {
    try {
      return await store.ping();
    } catch (error) {
      assert.ok(error instanceof StoreUnavailable);
      if (performance.now() > deadlineMs) throw error;
      await pause(20);
    }
  }
}

for (const name of ['writer', 'reader'] as const) {
  test(`a ${name} thread that ends unexpectedly fails what waits, and is started again`, async (t) => {
    const store = await opened(t);
    const attached = await attachStore(store.handle());
    t.after(() => attached.close());
    const organisation = await organisationIn(store);
    await store.write(uploadOf(organisation));
    breakThread(store, name);
    await assert.rejects(async () => {
      for (;;) {
        await store.ping();
        await pause(1);
      }
    }, StoreUnavailable);
    await assert.rejects(store.ping(), {
      name: 'StoreUnavailable',
      message: new RegExp(`the store's ${name} thread ended unexpectedly`),
    });
    for (const holder of [store, attached]) {
      await untilItServes(holder);
      await holder.write(uploadOf(organisation));
    }
    assert.equal((await attached.records(organisation, 'tags', ALL)).length, 3);
  });
}

for (const name of ['writer', 'reader'] as const) {
  test(`a ${name} thread that ends while the database is moved away opens no other file`, {
    timeout: 30_000,
  }, async (t) => {
    const path = pathIn(t);
    const store = await opened(t, path);
    const organisation = await organisationIn(store);
    await store.write(uploadOf(organisation));
    renameSync(path, `${path}.aside`);
    breakThread(store, name);
    const use = (): Promise<unknown> =>
      name === 'writer' ? store.write(uploadOf(organisation)) : store.records(organisation, 'tags', ALL);
    const expected = /thread cannot be started: the database .* was deleted or moved away/;
    for (let message = ''; !expected.test(message); await pause(10)) {
      await assert.rejects(store.ping(), StoreUnavailable);
      await assert.rejects(use(), (error) => {
        message = String(error);
        return error instanceof StoreUnavailable;
      });
    }
    assert.equal(existsSync(path), false);
    renameSync(`${path}.aside`, path);
    await untilItServes(store);
    await store.write(uploadOf(organisation));
    assert.equal((await store.records(organisation, 'tags', ALL)).length, 2);
  });
}

test('a mistake in a call fails that call alone, as a mistake', async (t) => {
  const store = await opened(t);
  const organisation = await organisationIn(store);
  const wrong = { ...uploadOf(organisation), batches: [[['too', 'short']]] };
  const right = uploadOf(organisation);
  const [failing, passing] = await Promise.allSettled([store.write(wrong), store.write(right)]);
  assert.equal(failing.status, 'rejected');
  assert.ok(!(failing.reason instanceof StoreUnavailable));
  assert.match(failing.reason.message, /a row for tags has 2 values, not 5/);
  assert.equal(passing.status, 'fulfilled');
});

test('a closed store leaves a single file that any SQL tool can read', async (t) => {
  const path = pathIn(t);
  const store = await openStore(path);
  const organisation = await organisationIn(store);
  const shop = recordRow('shops', { is_public: true, updated: '2024-05-01T09:30:00.000000Z' });
  await store.write({ ...uploadOf(organisation), type: 'shops', batches: [[shop]] });
  await store.close();
  assert.equal(existsSync(`${path}-wal`), false);
  const database = new DatabaseSync(path, { readOnly: true });
  t.after(() => database.close());
  assert.deepEqual(
    { ...database.prepare('SELECT * FROM shops').get() },
    {
      organisation,
      shop_id: shop[0],
      name: 'text',
      region: 'GB',
      is_public: 1,
      created: null,
      updated: '2024-05-01T09:30:00.000000Z',
      is_deleted: 0,
    },
  );
});
