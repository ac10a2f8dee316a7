import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { attachStore, type OpenedStore, openStore, transferablesOf } from '../open-store.ts';
import type { Upload } from '../records.ts';
import type { OrganisationNumber } from '../rows.ts';
import { type Store, StoreUnavailable, StoreUnusable } from '../store.ts';
import { everyRecord } from '../test-lists.ts';
import { recordRow } from '../test-rows.ts';
import { asOpeningError } from './errors.ts';
import { SCHEMA_VERSION } from './migrations.ts';
import { type OpenSqliteStore, openSqliteStore } from './open-sqlite-store.ts';
import { attachSqliteStore } from './sqlite-store.ts';
import { testFolder } from './test-folder.ts';
import { endOf, startProcess } from './test-process.ts';
import type { ThreadName } from './thread-loop.ts';
import { defaultTuning } from './tuning.ts';

function pathIn(t: TestContext): string {
  return join(testFolder(t), 'headgate.db');
}

async function opened(t: TestContext, path: string = pathIn(t)): Promise<OpenedStore> {
  const store = await openStore(path);
  t.after(() => store.close());
  return store;
}

/** For tests that neither close nor break their store. Each of them has organisations of its own. */
let shared: OpenedStore;
const sharedFolder = mkdtempSync(join(tmpdir(), 'headgate-sqlite-'));
before(async () => {
  shared = await openStore(join(sharedFolder, 'headgate.db'));
});
after(async () => {
  await shared.close();
  rmSync(sharedFolder, { recursive: true });
});

/** Opens a SQLite store with access to its threads. */
async function openedDirectly(t: TestContext, path: string = pathIn(t)): Promise<OpenSqliteStore> {
  const store = await openSqliteStore(path);
  t.after(() => store.close());
  return store;
}

async function organisationIn(store: Store): Promise<OrganisationNumber> {
  return (await store.createOrganisation(randomUUID(), randomUUID(), 1))!.organisation;
}

function uploadOf(organisation: OrganisationNumber, rowCount = 1): Upload {
  const rows = Array.from({ length: rowCount }, () => recordRow('tags'));
  return { organisation, type: 'tags', batches: [rows], idempotencyRecord: null, entry: null };
}

const ALL = { afterId: null, limit: 1000, includeDeleted: true };

async function refusalOf(path: string): Promise<string> {
  const error = await openStore(path).then(
    () => assert.fail('the database was accepted'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StoreUnusable, String(error));
  return error.message;
}

test('a file that is not a database is refused and not changed', async (t) => {
  const path = pathIn(t);
  writeFileSync(path, 'name;region\n'.repeat(500));
  assert.equal(await refusalOf(path), `${path} is not a SQLite database`);
  assert.equal(existsSync(`${path}-wal`), false);
});

test('if one of several uploads that are committed together fails, the others are stored', async () => {
  const organisation = await organisationIn(shared);
  const good = Array.from({ length: 4 }, () => uploadOf(organisation, 3));
  const broken: Upload = {
    ...uploadOf(organisation),
    batches: [[recordRow('tags'), recordRow('tags').slice(1)]],
  };
  const uploads = [...good.slice(0, 2), broken, ...good.slice(2)];
  const written = await Promise.allSettled(uploads.map((upload) => shared.write(upload)));
  assert.deepEqual(
    written.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  );
  const there = await everyRecord(shared, organisation, 'tags');
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

test('a path whose folder cannot be created is refused', async (t) => {
  const folder = testFolder(t);
  writeFileSync(join(folder, 'file'), '');
  for (const path of [join(folder, 'file', 'headgate.db'), join(folder, 'file', 'deeper', 'headgate.db')]) {
    assert.equal(
      await refusalOf(path),
      `${join(folder, 'file')} is not a folder: no database can be made in it`,
    );
  }
});

test('a read-only file is refused', (t) => {
  const folder = testFolder(t);
  const path = join(folder, 'headgate.db');
  const made = new DatabaseSync(path);
  made.exec('CREATE TABLE notes (note)');
  made.close();
  chmodSync(folder, 0o555);
  chmodSync(path, 0o444);
  const root = process.geteuid?.() === 0;
  // Permissions do not apply to root, so the process switches to another user here.
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

test('a process that does not close the store still ends', async (t) => {
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

test('acknowledged uploads survive a killed process, and no upload is stored in part', async (t) => {
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
        await store.write({ organisation, type: 'tags', batches: [rows], idempotencyRecord: null, entry: null });
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
  for (const row of await everyRecord(store, 1, 'tags')) {
    const name = String(row[1]);
    kept.set(name, (kept.get(name) ?? 0) + 1);
  }
  for (const name of acknowledged) assert.equal(kept.get(name), 100, name);
  for (const [name, rows] of kept) assert.equal(rows, 100, name);
});

test('another process adds twelve keys within two seconds while this one writes without pause', async (t) => {
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

test('a store attached in another thread uses the same database, and lets the thread end', async () => {
  const organisation = await organisationIn(shared);
  const handle = shared.handle();
  const row = recordRow('tags');
  const worker = new Worker(
    `const { workerData, parentPort } = require('node:worker_threads');
    import(workerData.module).then(async ({ attachStore }) => {
      const store = await attachStore(workerData.handle);
      const { organisation, row } = workerData;
      await store.write({ organisation, type: 'tags', batches: [[row]], idempotencyRecord: null, entry: null });
      parentPort.postMessage(await store.existing(organisation, 'tags', [row[0], workerData.other]));
      await store.close();
    });`,
    {
      eval: true,
      workerData: {
        module: new URL('../open-store.ts', import.meta.url).href,
        handle,
        organisation,
        row,
        other: randomUUID(),
      },
      transferList: transferablesOf(handle),
    },
  );
  const seen = new Promise((resolve) => worker.once('message', resolve));
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  assert.deepEqual(await seen, new Set([row[0]]));
  assert.equal(await ended, 0);
  assert.deepEqual(await everyRecord(shared, organisation, 'tags'), [row]);
});

test('an attached store is unavailable once the opened one is closed', async (t) => {
  const store = await opened(t);
  const attached = await attachStore(store.handle());
  t.after(() => attached.close());
  const organisation = await organisationIn(store);
  await attached.write(uploadOf(organisation));
  await store.close();
  await assert.rejects(attached.write(uploadOf(organisation)), StoreUnavailable);
});

/** Makes a thread end unexpectedly, by sending it an invalid message. */
function breakThread(store: OpenSqliteStore, name: ThreadName): void {
  const statusPort = store.statusPort(name);
  const { port } = receiveMessageOnPort(statusPort)!.message as { readonly port: MessagePort };
  port.postMessage(null);
  port.unref();
  statusPort.unref();
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
  test(`a ${name} thread that ends unexpectedly fails waiting calls, and is restarted`, async (t) => {
    const store = await openedDirectly(t);
    const attached = attachSqliteStore({ files: store.files, statusPort: store.statusPort('writer') });
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
    await untilItServes(store);
    for (const holder of [store, attached]) await holder.write(uploadOf(organisation));
    assert.equal((await everyRecord(store, organisation, 'tags')).length, 3);
  });
}

for (const name of ['writer', 'reader'] as const) {
  test(`a ${name} thread that ends while the database is moved away opens no other file`, {
    timeout: 30_000,
  }, async (t) => {
    const path = pathIn(t);
    const store = await openedDirectly(t, path);
    const organisation = await organisationIn(store);
    await store.write(uploadOf(organisation));
    renameSync(path, `${path}.aside`);
    breakThread(store, name);
    const use = (): Promise<unknown> =>
      name === 'writer' ? store.write(uploadOf(organisation)) : store.organisations();
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
    assert.equal((await store.records(organisation, 'tags', ALL)).rows.length, 2);
  });
}

test('a lister thread that ends unexpectedly is restarted, and other calls do not wait for it', async (t) => {
  const store = await openedDirectly(t);
  const organisation = await organisationIn(store);
  await store.write(uploadOf(organisation));
  breakThread(store, 'lister');
  await assert.rejects(
    async () => {
      for (;;) {
        await store.ping();
        await store.countRecords(organisation, 'tags');
      }
    },
    { name: 'StoreUnavailable', message: /the store's lister thread ended unexpectedly/ },
  );
  await store.ping();
  const deadlineMs = performance.now() + 10_000;
  let count: number | null = null;
  while (count === null && performance.now() < deadlineMs) {
    count = await store.countRecords(organisation, 'tags').catch(() => pause(20, null));
  }
  assert.equal(count, 1);
});

test('a read that has waited too long is refused with StoreBusy', async (t) => {
  const store = await openSqliteStore(pathIn(t), { ...defaultTuning, readPatienceMs: -1 });
  t.after(() => store.close());
  for (const read of [() => store.records(1, 'tags', ALL), () => store.findKey('one')]) {
    await assert.rejects(read, {
      name: 'StoreBusy',
      message: /^the call waited 0 s for the store: try again/,
    });
  }
  assert.notEqual(await store.createOrganisation('one', randomUUID(), 1), null);
});

/** Returns how many of the others have resolved before `one` has. */
async function answeredBefore(one: Promise<unknown>, others: readonly Promise<unknown>[]): Promise<number> {
  let answered = 0;
  for (const other of others) void other.then(() => answered++);
  await one;
  const before = answered;
  await Promise.all(others);
  return before;
}

test('a small write does not wait for all uploads of another organisation', async () => {
  const [greedy, modest] = [await organisationIn(shared), await organisationIn(shared)];
  const uploads = Array.from({ length: 16 }, () => shared.write(uploadOf(greedy, 5000)));
  const before = await answeredBefore(shared.write(uploadOf(modest)), uploads);
  assert.ok(before <= 6, `${before} of 16 uploads came first`);
});

test('a write does not wait for dry runs', async () => {
  const [greedy, modest] = [await organisationIn(shared), await organisationIn(shared)];
  const dryRuns = Array.from({ length: 16 }, () => shared.dryRun(uploadOf(greedy, 5000)));
  assert.equal(await answeredBefore(shared.write(uploadOf(modest)), dryRuns), 0);
});

test('a small write that arrives while a large group is written waits for few of its uploads', async () => {
  const [greedy, modest] = [await organisationIn(shared), await organisationIn(shared)];
  const uploads = Array.from({ length: 12 }, () => shared.write(uploadOf(greedy, 5000)));
  await uploads[0];
  await pause(30);
  const before = await answeredBefore(shared.write(uploadOf(modest)), uploads.slice(4));
  assert.ok(before <= 3, `${before} of the uploads that were not written came first`);
  for (const written of await Promise.all(uploads)) assert.equal(written.kind, 'written');
  assert.equal(await shared.countRecords(greedy, 'tags'), 12 * 5000);
});

test('look-ups wait neither for lists nor for all look-ups of another organisation', async () => {
  const [greedy, modest] = [await organisationIn(shared), await organisationIn(shared)];
  const rows = Array.from({ length: 20_000 }, () => recordRow('tags', { is_deleted: true }));
  await shared.write({ ...uploadOf(greedy), batches: [rows] });
  const own = uploadOf(modest);
  await shared.write(own);
  const ids = rows.slice(0, 5000).map(([id]) => id as string);
  const lookUps = Array.from({ length: 100 }, () => shared.existing(greedy, 'tags', ids));
  const readOne = shared.record(modest, 'tags', own.batches[0]![0]![0] as string);
  assert.ok((await answeredBefore(Promise.all([readOne, shared.findKey('none')]), lookUps)) <= 10);

  const page = { afterId: null, limit: 10, includeDeleted: false };
  const lists = Array.from({ length: 30 }, () => shared.records(greedy, 'tags', page));
  assert.equal(await answeredBefore(shared.findKey('none'), lists), 0);
  const listsAgain = Array.from({ length: 30 }, () => shared.records(greedy, 'tags', page));
  assert.ok((await answeredBefore(shared.records(modest, 'tags', page), listsAgain)) <= 3);
});

test('expired responses are deleted in steps, however large they are', async () => {
  const organisation = await organisationIn(shared);
  const keys = Array.from({ length: 12 }, (_, n) => `key ${n}`);
  for (const key of keys) {
    const idempotencyRecord = {
      organisation,
      path: '/v1/data/tags',
      key,
      fingerprint: 'print',
      response: new Uint8Array(1024 * 1024),
      storedAtMs: 1,
      expiresAtMs: 2,
    };
    await shared.write({ ...uploadOf(organisation), idempotencyRecord });
  }
  const forgetting = shared.deleteExpiredResponses(2);
  const write = shared.write(uploadOf(organisation));
  assert.equal(await answeredBefore(write, [forgetting]), 0);
  for (const key of keys)
    assert.equal(await shared.storedResponse({ organisation, path: '/v1/data/tags', key }, 1), null);
});

test('an invalid call fails alone, and not as an outage', async () => {
  const organisation = await organisationIn(shared);
  const wrong = { ...uploadOf(organisation), batches: [[['too', 'short']]] };
  const right = uploadOf(organisation);
  const [failing, passing] = await Promise.allSettled([shared.write(wrong), shared.write(right)]);
  assert.equal(failing.status, 'rejected');
  assert.ok(!(failing.reason instanceof StoreUnavailable));
  assert.match(failing.reason.message, /a row for tags has 2 values, not 5/);
  assert.equal(passing.status, 'fulfilled');
});

test('a closed store leaves a single file that other SQLite programs can read', async (t) => {
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
