// Tests failures of a server and its connections, and several processes on one database.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IdempotencyRecord, Written } from '../idempotency-records.ts';
import { type OpenedStore, openStore } from '../open-store.ts';
import type { Upload } from '../records.ts';
import type { Row } from '../rows.ts';
import { StoreUnavailable } from '../store.ts';
import { everyInteraction } from '../test-lists.ts';
import { interactionRow, recordRow } from '../test-rows.ts';
import { times } from '../test-thoroughness.ts';
import { readAddress, withSslMode } from './address.ts';
import { callsOf, slotLimits } from './connection-slots.ts';
import { openConnections, type Sessions } from './connections.ts';
import { type OwnTestServer, startTestServer, type TestDatabase } from './test-server.ts';

const RESUMES_WITHIN_MS = 5000;

let server: OwnTestServer;
let database: TestDatabase;
let name: string;
/** Two stores on one database, as in two processes. */
let store: OpenedStore;
let other: OpenedStore;
let organisation: number;

before(async () => {
  server = await startTestServer();
});
beforeEach(async () => {
  database = await server.newDatabase();
  name = new URL(database.url).pathname.slice(1);
  [store, other] = await Promise.all([openStore(database.url), openStore(database.url)]);
  organisation = (await store.createOrganisation('one', randomUUID(), 1))!.organisation;
});
afterEach(async () => {
  await Promise.all([store.close(), other.close()]);
  await database.drop();
});

const ask = (sql: string) => server.ask(name, sql);

function connectionsTo(url: string): Sessions & { close(): Promise<void> } {
  const connections = openConnections(withSslMode(readAddress(url), 'disable'));
  return { ...connections.for(callsOf(0)), close: connections.close };
}

function tagUpload(rows: readonly Row[], idempotencyRecord: IdempotencyRecord | null = null): Upload {
  return { organisation, type: 'tags', batches: [rows], idempotencyRecord, entry: null };
}

function tags(count: number): readonly Row[] {
  return Array.from({ length: count }, () => recordRow('tags'));
}

function idsOf(rows: readonly Row[]): readonly string[] {
  return rows.map((row) => row[0] as string);
}

async function endOtherSessions(): Promise<number> {
  const ended = await ask(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  return ended.length;
}

async function untilItServes(): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    try {
      await store.ping();
      return performance.now() - startMs;
    } catch (error) {
      assert.ok(error instanceof StoreUnavailable, String(error));
      assert.ok(performance.now() - startMs < RESUMES_WITHIN_MS, `still not serving: ${error.message}`);
      await sleep(20);
    }
  }
}

/** Blocks every write to the table until `letGo` is called. */
async function lockTable(table: string): Promise<{ letGo(): Promise<void> }> {
  const blocker = connectionsTo(database.url);
  const begun = Promise.withResolvers<void>();
  const ending = Promise.withResolvers<void>();
  const done = blocker.transaction(async ({ run }) => {
    await run({ text: `LOCK TABLE ${table} IN EXCLUSIVE MODE`, values: [] });
    begun.resolve();
    await ending.promise;
  });
  await begun.promise;
  return {
    async letGo() {
      ending.resolve();
      await done;
      await blocker.close();
    },
  };
}

async function untilWaiting(count: number): Promise<void> {
  for (;;) {
    const [row] = await ask(
      `SELECT count(*)::integer AS waiting FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (row!.waiting === count) return;
    await sleep(10);
  }
}

describe('connections that the server ends', () => {
  test('while they are idle are replaced without a failed call', async () => {
    const idle = [
      ...Array.from({ length: 2 }, () => store.ping()),
      ...Array.from({ length: 3 }, () => store.existing(organisation, 'tags', [randomUUID()])),
    ];
    await Promise.all(idle);
    assert.ok((await endOtherSessions()) >= 4);
    await untilItServes();
    await store.write(tagUpload(tags(1)));
  });

  test('in the middle of writes make these fail with the cause, and nothing of them is stored', async () => {
    const lock = await lockTable('tags');
    const rows = tags(50);
    const failing = [store.write(tagUpload(rows)), other.write(tagUpload(tags(1)))].map((write) =>
      assert.rejects(write, (error) => {
        assert.ok(error instanceof StoreUnavailable, String(error));
        assert.match(error.message, /terminating connection|[Cc]onnection terminated/);
        return true;
      }),
    );
    await untilWaiting(2);
    await ask(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    await Promise.all(failing);
    await lock.letGo();
    assert.equal((await store.existing(organisation, 'tags', idsOf(rows))).size, 0);
    assert.deepEqual(await store.write(tagUpload(rows)), {
      kind: 'written',
      tallies: [{ created: 50, updated: 0, unchanged: 0 }],
      seq: null,
    });
  });

  test('in the middle of a transaction leave neither records nor an idempotency record', async () => {
    const lock = await lockTable('idempotency_answers');
    const idempotencyRecord = idempotencyRecordOf('key');
    const rows = tags(3);
    const failing = assert.rejects(store.write(tagUpload(rows, idempotencyRecord)), StoreUnavailable);
    await untilWaiting(1);
    await ask(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    await failing;
    await lock.letGo();
    assert.equal((await store.existing(organisation, 'tags', idsOf(rows))).size, 0);
    assert.equal(await store.storedResponse(idempotencyRecord, idempotencyRecord.storedAtMs), null);
    assert.equal((await other.write(tagUpload(rows, idempotencyRecord))).kind, 'written');
  });
});

describe('a server', () => {
  test('that is killed and restarted under load loses no acknowledged write', async () => {
    const KILLS = times(10, 4);
    const acknowledged: string[] = [];
    const interactions: Row[] = [];
    let failures = 0;
    let isOver = false;
    const load = async (work: () => Promise<void>): Promise<void> => {
      while (!isOver) {
        try {
          await work();
        } catch (error) {
          assert.ok(error instanceof StoreUnavailable, String(error));
          failures++;
          await sleep(20);
        }
      }
    };
    const loads = [
      ...[store, other, store, other].map((target) =>
        load(async () => {
          const rows = tags(100);
          await target.write(tagUpload(rows));
          acknowledged.push(...idsOf(rows));
        }),
      ),
      load(async () => {
        const rows = tags(5);
        await other.write(tagUpload(rows, idempotencyRecordOf(randomUUID())));
        acknowledged.push(...idsOf(rows));
      }),
      load(async () => {
        const row = interactionRow();
        await store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null });
        interactions.push(row);
      }),
    ];
    for (let kill = 0; kill < KILLS; kill++) {
      await sleep(100 + 100 * Math.random());
      await server.kill();
      await assert.rejects(store.ping(), StoreUnavailable);
      await server.start();
      await untilItServes();
    }
    isOver = true;
    await Promise.all(loads);
    assert.ok(failures >= KILLS && acknowledged.length > 1000, `${failures}, ${acknowledged.length}`);
    assert.deepEqual(await store.existing(organisation, 'tags', acknowledged), new Set(acknowledged));
    const idPosition = interactionRow().length - 3;
    for (const row of interactions) {
      assert.deepEqual(await store.interaction(organisation, row[idPosition] as string), row);
    }
    // An upload of 100 or 5 rows is stored entirely or not at all, even if it was not acknowledged.
    const [row] = await ask('SELECT (count(*) % 5)::integer AS torn FROM tags');
    assert.equal(row!.torn, 0);
  });

  test('that is a read-only standby is reported as such, and works again as the primary', async () => {
    await store.write(tagUpload(tags(1)));
    await server.kill();
    await server.start('standby');
    const refusals = [
      () => store.ping(),
      () => store.write(tagUpload(tags(1))),
      () => openStore(database.url),
    ];
    for (const refusal of refusals) {
      await assert.rejects(refusal, (error) => {
        assert.ok(error instanceof StoreUnavailable, String(error));
        assert.match(error.message, /read-only|recovery/);
        return true;
      });
    }
    await server.kill();
    await server.start();
    await untilItServes();
    await store.write(tagUpload(tags(1)));
  });

  test('that accepts no more connections is reported as an outage with the cause', async () => {
    await ask(`ALTER DATABASE ${name} CONNECTION LIMIT 1; CREATE ROLE limited_${name} LOGIN PASSWORD 'weak'`);
    await ask(`GRANT ALL ON ALL TABLES IN SCHEMA public TO limited_${name}`);
    const url = Object.assign(new URL(database.url), { username: `limited_${name}`, password: 'weak' }).href;
    const connections = connectionsTo(url);
    await assert.rejects(connections.run({ text: 'SELECT 1', values: [] }), (error) => {
      assert.ok(error instanceof StoreUnavailable, String(error));
      assert.match(error.message, /too many connections .*\(SQLSTATE 53300\)/);
      return true;
    });
    await connections.close();
    await ask(`DROP OWNED BY limited_${name}; DROP ROLE limited_${name}`);
  });

  test('with an internal error is reported as an outage with the cause', async () => {
    await ask(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'lost a worker' USING ERRCODE = 'XX000'; END $$;
      CREATE TRIGGER fail BEFORE INSERT ON tags EXECUTE FUNCTION fail()`);
    await assert.rejects(
      store.write(tagUpload(tags(1))),
      new StoreUnavailable('PostgreSQL is not available: lost a worker (SQLSTATE XX000)'),
    );
  });

  test('with synchronous_commit off is set to on, and stricter settings are kept', async () => {
    await ask(`ALTER DATABASE ${name} SET synchronous_commit = off`);
    const connections = connectionsTo(database.url);
    assert.deepEqual(await connections.run({ text: 'SHOW synchronous_commit', values: [] }), [['on']]);
    await connections.close();
    await ask(`ALTER DATABASE ${name} SET synchronous_commit = remote_apply`);
    const stricter = connectionsTo(database.url);
    assert.deepEqual(await stricter.run({ text: 'SHOW synchronous_commit', values: [] }), [['remote_apply']]);
    await stricter.close();
  });
});

describe('an organisation whose statements time out', () => {
  const SLOW_AFTER_MS = 300;
  const hanging = { text: 'SELECT pg_advisory_xact_lock(4711)', values: [] };
  const served = { text: 'SELECT 1', values: [] };

  test('is refused at once except for one probing call, while others are served', async () => {
    const connections = openConnections(withSslMode(readAddress(database.url), 'disable'), {
      ...slotLimits,
      slowAfterMs: SLOW_AFTER_MS,
      lateAfterMs: SLOW_AFTER_MS,
    });
    const [troubled, others] = [connections.for(callsOf(1)), connections.for(callsOf(2))];
    const begun = Promise.withResolvers<void>();
    const ending = Promise.withResolvers<void>();
    const holding = others.transaction(async ({ run }) => {
      await run(hanging);
      begun.resolve();
      await ending.promise;
    });
    await begun.promise;

    const timingOut = Array.from({ length: 3 }, () =>
      assert.rejects(troubled.run(hanging), StoreUnavailable),
    );
    await untilWaiting(3);
    await sleep(SLOW_AFTER_MS);
    await ask(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`);
    await Promise.all(timingOut);

    const probing = troubled.run(hanging);
    await untilWaiting(1);
    await sleep(SLOW_AFTER_MS);
    await assert.rejects(troubled.run(served), (error) => {
      assert.ok(error instanceof StoreUnavailable);
      assert.match(error.message, /last calls of this organisation/);
      return true;
    });
    await others.run(served);
    ending.resolve();
    await Promise.all([holding, probing]);
    await Promise.all([troubled.run(served), troubled.run(served)]);
    await connections.close();
  });
});

describe('interactions of several organisations that arrive together', () => {
  /** Makes interactions of the owner fail, as on a Citus cluster whose worker is down. */
  async function failFor(owner: number): Promise<void> {
    await ask(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.organisation = ${owner} THEN
          RAISE EXCEPTION 'connection to the remote node failed' USING ERRCODE = '08006';
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER fail BEFORE INSERT ON interactions FOR EACH ROW EXECUTE FUNCTION fail()`);
  }

  test('fail only for the organisation that is not served, and none is stored twice', async () => {
    const second = (await store.createOrganisation('two', randomUUID(), 1))!.organisation;
    const third = (await store.createOrganisation('three', randomUUID(), 1))!.organisation;
    await failFor(second);
    for (let round = 0; round < 3; round++) {
      const owners = [organisation, second, third, third, second, organisation];
      const outcomes = await Promise.allSettled(
        owners.map((owner) =>
          store.writeInteraction({
            organisation: owner,
            row: interactionRow(),
            idempotencyRecord: null,
            entry: null,
          }),
        ),
      );
      assert.deepEqual(
        outcomes.map(({ status }) => status === 'fulfilled'),
        owners.map((owner) => owner !== second),
      );
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      assert.ok(refused.every(({ reason }) => reason instanceof StoreUnavailable));
    }
    assert.deepEqual(
      await Promise.all([organisation, second, third].map((owner) => store.countInteractions(owner))),
      [6, 0, 6],
    );
    await ask('DROP TRIGGER fail ON interactions');
    await store.writeInteraction({
      organisation: second,
      row: interactionRow(),
      idempotencyRecord: null,
      entry: null,
    });
  });
});

describe('two processes', () => {
  test('that upload the same records in opposite order both succeed, and never deadlock', async () => {
    const ids = Array.from({ length: 300 }, () => randomUUID());
    const version = (n: number) => ids.map((tag_id) => recordRow('tags', { tag_id, name: `version ${n}` }));
    const outcomes: Written[] = [];
    for (let round = 0; round < 10; round++) {
      outcomes.push(
        ...(await Promise.all([
          store.write(tagUpload(version(round * 2))),
          other.write(tagUpload(version(round * 2 + 1).toReversed())),
          store.write(tagUpload(version(round * 2 + 1).toSorted(() => Math.random() - 0.5))),
        ])),
      );
    }
    assert.ok(outcomes.every(({ kind }) => kind === 'written'));
    const created = outcomes.reduce(
      (sum, one) => sum + (one.kind === 'written' ? one.tallies[0]!.created : 0),
      0,
    );
    assert.equal(created, ids.length);
    const [row] = await ask(
      `SELECT pg_stat_clear_snapshot(), deadlocks::integer FROM pg_stat_database WHERE datname = current_database()`,
    );
    assert.equal(row!.deadlocks, 0);
  });

  test('whose transactions deadlock both succeed after a retry', async () => {
    await ask(
      `CREATE TABLE counters (id integer PRIMARY KEY, value integer); INSERT INTO counters VALUES (1, 0), (2, 0)`,
    );
    const [here, there] = [connectionsTo(database.url), connectionsTo(database.url)];
    let attempts = 0;
    const meeting = { here: Promise.withResolvers<void>(), there: Promise.withResolvers<void>() };
    const increment = (connections: Sessions, first: number, second: number, side: 'here' | 'there') =>
      connections.transaction(async ({ run }) => {
        attempts++;
        const add = (id: number) =>
          run({ text: 'UPDATE counters SET value = value + 1 WHERE id = $1', values: [id] });
        await add(first);
        meeting[side].resolve();
        await Promise.all([meeting.here.promise, meeting.there.promise]);
        await add(second);
      });
    await Promise.all([increment(here, 1, 2, 'here'), increment(there, 2, 1, 'there')]);
    assert.deepEqual(await ask('SELECT value FROM counters'), [{ value: 2 }, { value: 2 }]);
    assert.ok(attempts > 2, 'neither transaction was retried');
    await Promise.all([here.close(), there.close()]);
  });

  test('with one idempotency key get "running" during the first write, then its response', async () => {
    const lock = await lockTable('tags');
    const idempotencyRecord = idempotencyRecordOf('the key');
    const first = store.write(tagUpload(tags(1), idempotencyRecord));
    await untilWaiting(1);
    const rows = tags(1);
    assert.deepEqual(await other.write(tagUpload(rows, idempotencyRecord)), { kind: 'running' });
    assert.deepEqual(
      await other.writeInteraction({ organisation, row: interactionRow(), idempotencyRecord, entry: null }),
      {
        kind: 'running',
      },
    );
    const elsewhere = { ...idempotencyRecord, path: '/user-interactions' };
    assert.equal(
      (
        await other.writeInteraction({
          organisation,
          row: interactionRow(),
          idempotencyRecord: elsewhere,
          entry: null,
        })
      ).kind,
      'written',
    );
    await lock.letGo();
    assert.equal((await first).kind, 'written');
    assert.equal((await other.write(tagUpload(rows, idempotencyRecord))).kind, 'replay');
    assert.equal((await store.existing(organisation, 'tags', idsOf(rows))).size, 0);
  });
});

describe('interactions', () => {
  test('that arrive together are stored for their own organisations, and invalid ones fail', async () => {
    const second = (await store.createOrganisation('two', randomUUID(), 1))!.organisation;
    const row = interactionRow();
    const again = interactionRow();
    const [, , unstorable, ...others] = await Promise.allSettled([
      store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null }),
      store.writeInteraction({ organisation: second, row, idempotencyRecord: null, entry: null }),
      store.writeInteraction({
        organisation,
        row: interactionRow({ item_id: 'no UUID' }),
        idempotencyRecord: null,
        entry: null,
      }),
      ...[again, again].map((same) =>
        store.writeInteraction({ organisation, row: same, idempotencyRecord: null, entry: null }),
      ),
    ]);
    assert.equal(unstorable.status, 'rejected');
    assert.ok(!(unstorable.reason instanceof StoreUnavailable), 'an invalid row is not an outage');
    assert.deepEqual(
      others.map((one) => one.status === 'fulfilled' && one.value),
      [
        { kind: 'written', tallies: [{ created: 1, updated: 0, unchanged: 0 }], seq: null },
        { kind: 'written', tallies: [{ created: 0, updated: 0, unchanged: 1 }], seq: null },
      ],
    );
    assert.equal((await everyInteraction(other, organisation)).length, 2);
    assert.deepEqual(await everyInteraction(other, second), [row]);
  });
});

describe('the smallest and largest values that can be stored', () => {
  test('come back as they were given', async () => {
    const numbers = [
      5e-324,
      2.2250738585072014e-308,
      1.7976931348623157e308,
      0.1 + 0.2,
      1e21,
      123456789.12345679,
    ];
    const moments = [
      '0001-01-01T00:00:00.000000Z',
      '9999-12-31T23:59:59.999999Z',
      '1969-12-31T23:59:59.999999Z',
    ];
    const dates = ['0001-01-01', '9999-12-31', '2000-02-29'];
    const offers = numbers.map((value, n) =>
      recordRow('offers', { value, allowed_from: moments[n % 3]!, updated: moments[(n + 1) % 3]! }),
    );
    const customers = dates.map((birthdate) =>
      recordRow('customers', { birthdate, gender: '\u{1F600}"\\,{}' }),
    );
    const written = { organisation, idempotencyRecord: null, entry: null } as const;
    await store.write({ ...written, type: 'offers', batches: [offers] });
    await store.write({ ...written, type: 'customers', batches: [customers] });
    for (const row of offers) {
      assert.deepEqual(await store.record(organisation, 'offers', row[0] as string), row);
    }
    for (const row of customers) {
      assert.deepEqual(await store.record(organisation, 'customers', row[0] as string), row);
    }
  });
});

function idempotencyRecordOf(key: string): IdempotencyRecord {
  return {
    organisation,
    path: '/v1/data/tags',
    key,
    fingerprint: 'print',
    response: new Uint8Array([1]),
    storedAtMs: 1000,
    expiresAtMs: 2000,
  };
}
