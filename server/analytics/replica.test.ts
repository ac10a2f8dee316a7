import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  INTERACTIONS,
  recordTypeNames,
  recordTypes,
  storedInteraction,
  type UploadTypeName,
  uploadTypeNames,
} from '@headgate/catalogue/record-types.ts';
import fc from 'fast-check';
import { openStore } from '../store/open-store.ts';
import type { OrganisationNumber, Row } from '../store/rows.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { isTriedInFull, type TestDatabases, testDatabases } from '../store/test-databases.ts';
import { everyInteraction, everyRecord } from '../store/test-lists.ts';
import { anyRow, interactionRow, recordRow } from '../store/test-rows.ts';
import { times } from '../store/test-thoroughness.ts';
import { type AsOf, Replica, ReplicaClosed, type Wanted } from './replica.ts';
import { recordTables } from './replica-tables.ts';
import type { ReplicaOrder } from './test-replica-process.ts';

const KILLS = times(6, 3);
const DAMAGED_ROWS = times(3000, 300);
const LATEST_KILL_MS = 240;
const PATIENCE_MS = 60_000;
const DAY_MS = 24 * 60 * 60 * 1000;

function optionsIn(folder: string) {
  return {
    memoryMb: 200,
    temporaryMb: 500,
    threads: 2,
    temporaryFolder: join(folder, 'tmp'),
    exportFolder: join(folder, 'export'),
  };
}

/** SQL for a replicated value in the form in which stores have it. */
function storedFormSql({ name, type }: { readonly name: string; readonly type: string }): string {
  const column = `"${name}"`;
  if (type === 'TIMESTAMPTZ') return `strftime(${column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')`;
  return type === 'UUID' || type === 'DATE' ? `${column}::VARCHAR` : column;
}

async function broughtUpToDate(replica: Replica): Promise<Wanted> {
  const wanted = await replica.wanted();
  await replica.catchUp(wanted, PATIENCE_MS);
  return wanted;
}

for (const databases of testDatabases) {
  describe(`the replica of an organisation on ${databases.name}`, () => {
    let database: string;
    let store: Store & { close(): Promise<void> };
    let remove: Awaited<ReturnType<TestDatabases['newDatabase']>>['remove'];
    let folder: string;
    let organisation: OrganisationNumber;
    let replica: Replica;
    let reports: string[];

    before(async () => {
      ({ database, remove } = await databases.newDatabase());
      store = await openStore(database);
      folder = mkdtempSync(join(tmpdir(), 'headgate-replica-'));
    });
    after(async () => {
      await store.close();
      await remove();
      rmSync(folder, { recursive: true, force: true });
    });

    const fileOf = (number: OrganisationNumber): string => join(folder, `${number}.duckdb`);

    const openReplica = (path = fileOf(organisation), progressEveryMs?: number): Replica => {
      reports = [];
      const report = (message: string): void => void reports.push(message);
      return new Replica(path, optionsIn(folder), store, organisation, report, progressEveryMs);
    };

    const begin = async (): Promise<void> => {
      const created = await store.createOrganisation(`org ${randomUUID()}`, randomUUID(), 1);
      organisation = created!.organisation;
      replica = openReplica();
    };

    const upload = async (type: UploadTypeName, rows: readonly Row[]): Promise<void> => {
      const entry = {
        requestId: randomUUID(),
        keyId: 'a key',
        receivedAtMs: Date.now(),
        bytes: 1,
        received: rows.length,
        rejected: 0,
        causesJson: null,
      };
      await store.write({ organisation, type, batches: [rows], idempotencyRecord: null, entry });
    };

    const interact = async (): Promise<void> => {
      const entry = { requestId: randomUUID(), keyId: 'a key', receivedAtMs: Date.now(), bytes: 1 };
      await store.writeInteraction({ organisation, row: interactionRow(), idempotencyRecord: null, entry });
    };

    const replicated = async (sql: string): Promise<unknown[][]> => {
      const connection = await replica.connect();
      try {
        return (await connection.runAndReadAll(sql)).getRowsJS() as unknown[][];
      } finally {
        replica.disconnect(connection);
      }
    };

    const caughtUp = async (patienceMs: number): Promise<AsOf> => {
      const wanted = await replica.wanted();
      await replica.catchUp(wanted, patienceMs);
      const { connection, asOf } = await replica.begin(wanted);
      replica.disconnect(connection);
      return asOf;
    };

    /** Closes the replica, and brings it up to date in another process, which then keeps it open. */
    const openElsewhere = async () => {
      await replica.close();
      const order: ReplicaOrder = {
        database,
        organisation,
        path: fileOf(organisation),
        options: optionsIn(folder),
      };
      const program = fileURLToPath(import.meta.resolve('./test-replica-process.ts'));
      const args = [program, JSON.stringify(order)];
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(child, 'exit');
      await Promise.race([once(child.stdout!, 'data'), ended]);
      assert.equal(child.exitCode, null);
      return { child, ended };
    };

    /** Brings the replica up to date in another process, and kills that one after this time. */
    const killWhileCatchingUp = async (afterMs: number): Promise<void> => {
      const { child, ended } = await openElsewhere();
      await sleep(afterMs);
      child.kill('SIGKILL');
      await ended;
      replica = openReplica();
    };

    /** After a kill, a file that was not opened completely is replaced. */
    const assertNoDamage = (isKilled: boolean): void => {
      const others = reports.filter((report) => !report.endsWith('its file could not be opened'));
      assert.deepEqual(isKilled ? others : reports, []);
    };

    /** Asserts that the replica catches up and then has the same rows as the store. */
    const assertSame = async (): Promise<void> => {
      const asOf = await caughtUp(PATIENCE_MS);
      const latest = await store.latestEntry(organisation);
      assert.deepEqual({ seq: asOf.seq, complete: asOf.complete }, { seq: latest, complete: true });
      for (const [type, { name, key, columns }] of recordTables) {
        const stored =
          type === INTERACTIONS
            ? await everyInteraction(store, organisation)
            : await everyRecord(store, organisation, type);
        const keyPosition = columns.findIndex((column) => column.name === key[0]);
        const sorted = stored.toSorted((a, b) => (a[keyPosition]! < b[keyPosition]! ? -1 : 1));
        const shown = columns.map(storedFormSql).join(', ');
        assert.deepEqual(await replicated(`SELECT ${shown} FROM ${name} ORDER BY "${key[0]}"`), sorted, type);
      }
      const entries = (
        await replicated('SELECT seq, request_id::VARCHAR FROM uploads ORDER BY seq DESC')
      ).map(([seq, requestId]) => [Number(seq), requestId]);
      const page = { types: uploadTypeNames, own: null, status: null, keyId: null, fromMs: null, toMs: null };
      const ledger = await store.entries(organisation, { ...page, before: null, limit: 1000 });
      assert.deepEqual(
        entries,
        ledger.entries.map(({ seq, requestId }) => [seq, requestId]),
      );
    };

    test('has every value of every type, from a snapshot and from changes', async () => {
      await begin();
      const samples = (): ReadonlyMap<UploadTypeName, readonly Row[]> =>
        new Map(
          uploadTypeNames.map((type) => {
            const fields = type === INTERACTIONS ? storedInteraction : recordTypes[type].fields;
            return [type, fc.sample(anyRow(fields), 40)];
          }),
        );
      for (const [type, rows] of samples()) await upload(type, rows);
      await assertSame();
      for (const [type, rows] of samples()) await upload(type, rows);
      await assertSame();
      await replica.close();
      assert.deepEqual(reports, []);
    });

    test('reports how far it is while it is built', async () => {
      await begin();
      for (const type of ['tags', 'keywords'] as const) {
        await upload(
          type,
          Array.from({ length: 30 }, () => recordRow(type)),
        );
      }
      replica = openReplica(fileOf(organisation), 0);
      await broughtUpToDate(replica);
      assert.deepEqual(reports, [
        'the replica is being built: 30 rows are copied, the last ones of tags',
        'the replica is being built: 60 rows are copied, the last ones of keywords',
        'the replica is built: 60 rows were copied',
      ]);
      await upload('tags', [recordRow('tags')]);
      reports = [];
      await assertSame();
      assert.deepEqual(reports, []);
      await replica.close();
    });

    test('is the same as the store, whatever is uploaded, and if it is closed or killed in between', async () => {
      const ids = Array.from({ length: 5 }, () => randomUUID());
      const anyUpload = fc.record({
        type: fc.constantFrom('tags' as const, 'keywords' as const),
        ids: fc.uniqueArray(fc.constantFrom(...ids), { maxLength: 5 }),
        name: fc.constantFrom('a', 'b', 'c'),
        isDeleted: fc.boolean(),
      });
      const anyKill = fc.record({ killAfterMs: fc.integer({ min: 0, max: LATEST_KILL_MS }) });
      const steps = fc.array(
        fc.oneof(
          { weight: 6, arbitrary: anyUpload },
          { weight: 3, arbitrary: fc.constantFrom('interact', 'catch up', 'reopen') },
          { weight: 1, arbitrary: anyKill },
        ),
        { maxLength: 12, size: 'max' },
      );
      await fc.assert(
        fc.asyncProperty(steps, async (taken) => {
          await begin();
          let isKilled = false;
          for (const step of taken) {
            if (step === 'interact') await interact();
            else if (step === 'catch up') await broughtUpToDate(replica);
            else if (step === 'reopen') {
              await replica.close();
              replica = openReplica();
            } else if (typeof step !== 'string' && 'killAfterMs' in step) {
              await killWhileCatchingUp(step.killAfterMs);
              isKilled = true;
            } else if (typeof step !== 'string') {
              const { type, name, isDeleted } = step;
              const key = recordTypes[type].key;
              await upload(
                type,
                step.ids.map((id) => recordRow(type, { [key]: id, name, is_deleted: isDeleted })),
              );
            }
          }
          await assertSame();
          await replica.close();
          assertNoDamage(isKilled);
        }),
        { numRuns: times(15, 4) },
      );
    });

    test('runs on what is there if catching up takes too long, and says so', async () => {
      await begin();
      await upload('tags', [recordRow('tags')]);
      await assertSame();
      await upload('tags', [recordRow('tags')]);
      const { seq, complete } = await caughtUp(0);
      assert.deepEqual({ seq, complete }, { seq: 1, complete: false });
      await assertSame();
      await replica.close();
    });

    test('continues after the store failed while it was read ahead', async () => {
      await begin();
      await upload('tags', [recordRow('tags')]);
      let isDown = true;
      const down = () => Promise.reject(new StoreUnavailable('down'));
      const failing: Store = {
        ...store,
        snapshot: (...args) => (isDown ? down() : store.snapshot(...args)),
        changedRows: (...args) => (isDown ? down() : store.changedRows(...args)),
        // A failed read must be noticed even if nobody waits for it yet.
        ledgerSize: () => sleep(20).then(() => store.ledgerSize()),
      };
      replica = new Replica(fileOf(organisation), optionsIn(folder), failing, organisation, (report) =>
        reports.push(report),
      );
      await assert.rejects(broughtUpToDate(replica), StoreUnavailable);
      isDown = false;
      await assertSame();
      await upload('tags', [recordRow('tags')]);
      isDown = true;
      await assert.rejects(broughtUpToDate(replica), StoreUnavailable);
      isDown = false;
      await assertSame();
      await replica.close();
      assert.deepEqual(reports, []);
    });

    test('goes on after the last transaction if the store failed while records were copied', async () => {
      await begin();
      for (const type of recordTypeNames) await upload(type, [recordRow(type)]);
      let isDown = true;
      let asked: UploadTypeName[] = [];
      const failing: Store = {
        ...store,
        snapshot(number, type, afterId) {
          asked.push(type);
          if (isDown && type === recordTypeNames[8]) return Promise.reject(new StoreUnavailable('down'));
          return store.snapshot(number, type, afterId);
        },
      };
      replica = new Replica(fileOf(organisation), optionsIn(folder), failing, organisation, (report) =>
        reports.push(report),
      );
      await assert.rejects(broughtUpToDate(replica), StoreUnavailable);
      isDown = false;
      asked = [];
      await assertSame();
      // A transaction has five parts.
      assert.equal(asked[0], recordTypeNames[5]);
      await replica.close();
    });

    test('copies few records of several types in one transaction and without a pause, beside many uploads', async (t) => {
      await begin();
      t.mock.method(performance, 'now', () => 0);
      for (const type of ['shops', 'tags', 'customers'] as const) await upload(type, [recordRow(type)]);
      let looks = 0;
      const busy: Store = {
        ...store,
        // Each look is at the beginning of a transaction, or at its end if a pause may follow.
        ledgerSize: async () => ({ entries: ++looks * 1000, ids: 0 }),
      };
      replica = new Replica(fileOf(organisation), optionsIn(folder), busy, organisation, (report) =>
        reports.push(report),
      );
      await assertSame();
      // One transaction copies the records, and one follows the changes.
      assert.equal(looks, 2);
      await replica.close();
    });

    test('is built anew if it is of another ledger, or the changes have expired', async () => {
      await begin();
      await upload('tags', [recordRow('tags')]);
      await assertSame();
      await replica.close();
      const path = fileOf(organisation);
      await begin();
      for (let n = 0; n < 3; n++) await upload('keywords', [recordRow('keywords')]);
      replica = openReplica(path);
      await assertSame();
      assert.deepEqual(reports, ['the replica is built anew: the ledger has another entry 1']);
      for (let n = 0; n < 3; n++) await upload('keywords', [recordRow('keywords')]);
      await store.expireLedgers(Date.now() + DAY_MS, 0);
      await assertSame();
      assert.equal(reports.length, 2);
      await replica.close();
    });

    // What follows is about the file of the replica and its use. It does not depend on the store.
    if (!isTriedInFull(databases)) return;

    const damages: Readonly<Record<string, (path: string) => void>> = {
      'is deleted': (path) => rmSync(path),
      'is empty': (path) => truncateSync(path, 0),
      'is cut off': (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
      'is another file': (path) => writeFileSync(path, 'not a database'.repeat(1000)),
      'has wrong bytes': (path) => {
        const bytes = readFileSync(path);
        for (let at = 3 * 4096; at < bytes.length; at += 997) bytes[at] = bytes[at]! ^ 0xff;
        writeFileSync(path, bytes);
      },
      'is a folder': (path) => {
        rmSync(path);
        mkdirSync(join(path, 'with a folder'), { recursive: true });
      },
      'could not be opened last time': (path) => writeFileSync(`${path}.opening`, ''),
    };
    describe('is built anew if its file', () => {
      before(async () => {
        await begin();
        await upload(
          'tags',
          Array.from({ length: DAMAGED_ROWS }, () => recordRow('tags')),
        );
        await assertSame();
        await replica.close();
      });
      for (const [damage, apply] of Object.entries(damages)) {
        test(damage, async () => {
          const path = `${fileOf(organisation)} that ${damage}`;
          copyFileSync(fileOf(organisation), path);
          apply(path);
          replica = openReplica(path);
          await upload('tags', [recordRow('tags')]);
          await assertSame();
          await replica.close();
          assert.equal(reports.length, damage === 'is deleted' ? 0 : 1, `${reports}`);
          assert.doesNotMatch(`${reports}`, /exception_type/);
        });
      }
    });

    test('is opened once if queries arrive while its damaged file is replaced', async () => {
      await begin();
      writeFileSync(fileOf(organisation), 'not a database'.repeat(1000));
      let isOpen = false;
      const connecting = [
        replica.connect().finally(() => {
          isOpen = true;
        }),
      ];
      while (!isOpen) {
        await sleep(1);
        connecting.push(replica.connect());
      }
      for (const connection of await Promise.all(connecting)) replica.disconnect(connection);
      assert.equal(reports.length, 1, `${reports}`);
      await replica.close();
    });

    test('is discarded with a report, once for all queries that ask for it, and never while it is opened', async () => {
      await begin();
      await upload('tags', [recordRow('tags')]);
      const opening = replica.connect();
      const discarding = ['damage', 'the same damage'].map((reason) => replica.discard(reason));
      replica.disconnect(await opening);
      await Promise.all(discarding);
      assert.equal(existsSync(fileOf(organisation)), false);
      assert.deepEqual(reports, ['the replica is built anew: damage']);
      await assertSame();
      await replica.close();
    });

    test('is closed without making the queries of others wait', async () => {
      await begin();
      await upload(
        'customers',
        Array.from({ length: 5000 }, () => recordRow('customers')),
      );
      await broughtUpToDate(replica);
      const processBefore = process.cpuUsage();
      const threadBefore = process.threadCpuUsage();
      await replica.close();
      const thread = process.threadCpuUsage(threadBefore);
      const whole = process.cpuUsage(processBefore);
      const share = (thread.user + thread.system) / (whole.user + whole.system);
      assert.ok(share < 0.5, `this thread, which serves all queries, did ${share} of the work`);
    });

    test('is not opened again once it is closed, even if a query still waits', async () => {
      await begin();
      await replica.close();
      await assert.rejects(replica.connect(), ReplicaClosed);
      assert.equal(existsSync(fileOf(organisation)), false);
    });

    test('is opened again after the store was not available, and is not considered damaged', async () => {
      await begin();
      await upload('tags', [recordRow('tags')]);
      let isDown = true;
      const latestEntry: Store['latestEntry'] = (...args) =>
        isDown ? Promise.reject(new StoreUnavailable('down')) : store.latestEntry(...args);
      const path = fileOf(organisation);
      replica = new Replica(path, optionsIn(folder), { ...store, latestEntry }, organisation, (report) =>
        reports.push(report),
      );
      for (let attempt = 0; attempt < 3; attempt++) {
        await assert.rejects(replica.connect(), StoreUnavailable);
        assert.equal(existsSync(`${path}.opening`), false);
      }
      isDown = false;
      await assertSame();
      await replica.close();
      assert.deepEqual(reports, []);
    });

    test('is compared with the ledger again if a query has opened it first', async () => {
      await begin();
      await upload('tags', [recordRow('tags')]);
      await assertSame();
      await replica.close();
      const path = fileOf(organisation);
      await begin();
      await upload('keywords', [recordRow('keywords')]);
      replica = openReplica(path);
      const beganAtMs = Date.now();
      replica.disconnect(await replica.connect());
      await assertSame();
      assert.equal(reports.length, 1);
      for (let n = 0; n < 2; n++) assert.ok(Date.parse((await caughtUp(PATIENCE_MS)).at) >= beganAtMs);
      await replica.close();
    });

    test('waits for a process that has its file open and is about to end, and is not considered damaged', async () => {
      await begin();
      await upload('tags', [recordRow('tags')]);
      await caughtUp(PATIENCE_MS);
      const { child, ended } = await openElsewhere();
      await once(child.stdout!, 'data');
      replica = openReplica();
      setTimeout(() => child.kill('SIGKILL'), 1000);
      const beganAtMs = performance.now();
      await assertSame();
      assert.ok(performance.now() - beganAtMs >= 900);
      assert.deepEqual(reports, []);
      await ended;
      await replica.close();
    });

    test('is read in transactions that cannot write', async () => {
      await begin();
      const { connection } = await replica.begin(await broughtUpToDate(replica));
      await assert.rejects(connection.run('DELETE FROM tags'), /read-only/);
      replica.disconnect(connection);
      await replica.close();
    });

    const threads = async (): Promise<unknown> =>
      (await replicated("SELECT current_setting('threads')::INTEGER"))[0]![0];

    test('is built with all threads if there are few uploads, so that its file is opened only once', async () => {
      await begin();
      for (let uploads = 0; uploads < 10; uploads++) await upload('tags', [recordRow('tags')]);
      assert.equal(await threads(), optionsIn(folder).threads);
      await assertSame();
      await replica.close();
    });

    test('is built with one thread, and has all of them when no query of that time is left', async () => {
      await begin();
      for (let uploads = 0; uploads < 11; uploads++) await upload('tags', [recordRow('tags')]);
      assert.equal(await threads(), 1);
      const early = await replica.connect();
      await assertSame();
      assert.equal(await threads(), 1);
      replica.disconnect(early);
      await upload('tags', [recordRow('tags')]);
      const queries = Array.from({ length: 5 }, () => replicated('SELECT count(*)::INTEGER FROM tags'));
      await assertSame();
      assert.equal((await Promise.all(queries)).length, 5);
      await assertSame();
      assert.equal(await threads(), optionsIn(folder).threads);
      await replica.close();
    });

    test('survives kills at any moment while it is built and while it follows', async () => {
      await begin();
      await upload(
        'tags',
        Array.from({ length: 4000 }, () => recordRow('tags')),
      );
      for (let kill = 0; kill < KILLS; kill++) {
        await upload(
          'shops',
          Array.from({ length: 2000 }, () => recordRow('shops')),
        );
        await killWhileCatchingUp((kill / KILLS) * LATEST_KILL_MS);
      }
      await assertSame();
      await replica.close();
      assertNoDamage(true);
    });
  });
}
