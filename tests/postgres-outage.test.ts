// The service while its PostgreSQL is killed, restarted, cut off or read-only: nothing acknowledged is lost, every
// failure is reported, nothing hangs, and service resumes by itself.
//
// HEADGATE_TEST_SEED repeats the choices of a run; the moments of the kills still depend on the machine.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type OwnTestServer,
  startTestServer,
  type TestDatabase,
} from '../server/store/postgres/test-server.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type RefusalBody, type Reply, type UploadBody } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { chosenSeed, Random } from './harness/random.ts';
import { bearer, connectRaw } from './harness/raw-connection.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord, type TestRecord } from './harness/records.ts';
import { assertRefusal } from './harness/refusal.ts';
import { waitUntil } from './harness/waiting.ts';
import { type Judge, WatchedLoad } from './harness/watched-load.ts';

const KILLS = times(10, 2);
const LONGEST_LIFE_MS = 250;
const LONGEST_OUTAGE_MS = 300;
const BATCH_SIZE = 40;
const ANSWERED_WITHIN_MS = 10_000;
const RESUMED_WITHIN_MS = 5000;
const REFUSED_WITHIN_MS = 15_000;
const FEWEST_FAILURES = 15;
const FEWEST_UPLOADS = 25;

let postgres: OwnTestServer;
let database: TestDatabase;

before(async () => {
  postgres = await startTestServer();
  database = await postgres.newDatabase();
});
after(() => database.drop());

const ask = (sql: string) => postgres.ask(database.name, sql);

/** Fails unless a server does not start on the database, says why in one sentence, and keeps the password to itself. */
async function assertRefused(url: string, reason: RegExp): Promise<void> {
  const startedAtMs = performance.now();
  const refused = await failedHeadgate(['serve', '--port', '0'], { HEADGATE_DATABASE: url });
  const tookMs = performance.now() - startedAtMs;
  assert.equal(refused.exitCode, 1, refused.stderr);
  assert.equal(refused.stdout, '');
  assert.match(refused.stderr, oneSentence);
  assert.match(refused.stderr, reason);
  const { hostname, port, password, pathname } = new URL(url);
  assert.ok(refused.stderr.includes(`${pathname.slice(1)} at ${hostname}:${port}`), refused.stderr);
  assert.ok(!refused.stderr.includes(password), 'the password is printed');
  assert.ok(tookMs < REFUSED_WITHIN_MS, `it was refused after ${tookMs} ms`);
}

describe('an outage under a running server', () => {
  let headgate: Headgate;
  /** How much the server had logged before the test. */
  let loggedBefore: number;
  let key: string;
  let api: Api;

  before(async () => {
    headgate = await startHeadgate(database.url, { HEADGATE_BATCH_SIZE: String(BATCH_SIZE) });
  });
  beforeEach(async () => {
    loggedBefore = headgate.output().length;
    ({ key } = await headgate.newKey());
    api = apiOf(headgate.url, key);
  });
  after(() => headgate.kill());

  const logged = (): string => headgate.output().slice(loggedBefore);

  /** Fails unless the service resumes in time once PostgreSQL accepts connections. */
  const assertResumes = async (): Promise<void> => {
    const returnedAtMs = performance.now();
    await waitUntil('the service has resumed', async () => {
      const [{ status: ready }, { status: uploaded }] = await Promise.all([
        api.request('/readyz'),
        api.upload('tags', [leastRecord('tags')]),
      ]);
      return ready === 200 && uploaded === 200;
    });
    const tookMs = performance.now() - returnedAtMs;
    assert.ok(tookMs < RESUMED_WITHIN_MS, `the service resumed after ${tookMs} ms`);
    assert.equal(headgate.process.exitCode, null);
  };

  /** Fails unless the request has a response in time. A failed request must name the store and suggest a retry. */
  const judge: Judge = async (sent) => {
    const sentAtMs = performance.now();
    const reply = await sent;
    const tookMs = performance.now() - sentAtMs;
    assert.ok(tookMs < ANSWERED_WITHIN_MS, `a response took ${tookMs} ms`);
    if (reply.status < 500) return reply;
    const { batches, details, message } = reply.body as Partial<UploadBody & RefusalBody>;
    if (reply.status === 503) {
      assert.match(message ?? '', /store does not respond/);
      assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      return null;
    }
    assert.equal(reply.status, 500, reply.text);
    const codes = batches?.flatMap(({ data }) => data.errors.map(({ code }) => code));
    assert.deepEqual(
      new Set(codes ?? details?.map(({ code }) => code)),
      new Set(['store_unavailable']),
      reply.text,
    );
    return null;
  };

  test('PostgreSQL is killed and restarted under load, several times: nothing acknowledged is lost', async (t) => {
    const seed = chosenSeed();
    t.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const load = await WatchedLoad.create(api, random, BATCH_SIZE);
    let longestMs = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const running = load.start(api, judge);
      const survive = (ms: number) => Promise.race([sleep(ms), running.ended]);
      await survive(random.integer(1, LONGEST_LIFE_MS));
      await postgres.kill();
      await survive(random.integer(1, LONGEST_OUTAGE_MS));
      await postgres.start();
      const returnedAtMs = performance.now();
      const before = [load.acknowledgedUploads, load.acknowledgedInteractions, load.acknowledgedRevisions];
      await waitUntil('everything is acknowledged again', () => {
        const now = [load.acknowledgedUploads, load.acknowledgedInteractions, load.acknowledgedRevisions];
        return now.every((count, at) => count > before[at]!);
      });
      longestMs = Math.max(longestMs, performance.now() - returnedAtMs);
      running.stop();
      await running.ended;
      await load.retryUnacknowledged(api);
      await load.assertAllThere(api);
    }
    t.diagnostic(`${load}; the service resumed within ${Math.round(longestMs)} ms`);
    assert.ok(longestMs < RESUMED_WITHIN_MS, `the service resumed after ${longestMs} ms`);
    assert.equal(headgate.process.exitCode, null);
  });

  test('while it is down every response says so in time, and service resumes by itself', async () => {
    const unusedKey = (await headgate.newKey()).key;
    const shop = leastRecord('shops');
    const id = idOf('shops', shop);
    assert.equal((await api.upload('shops', [shop])).status, 200);
    const interaction = {
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: idOf('shops', shop),
      event_timestamp: 1_700_000_000,
    };
    const good = Array.from({ length: 2 * BATCH_SIZE }, () => leastRecord('courses'));
    const records: unknown[] = [...good.slice(0, 3), { course_id: 'seven' }, ...good.slice(3)];
    // Requests that began before the outage have been admitted, and get as far as the store.
    const begin = async (path: string, body: unknown, idempotencyKey: string) => {
      const connection = await connectRaw(headgate.url);
      const finish = await connection.sendAllButTheLastByte({
        path,
        headers: { ...bearer(key), 'Idempotency-Key': idempotencyKey },
        body: JSON.stringify(body),
      });
      return async () => {
        finish();
        const { status, text } = await connection.answer();
        connection.destroy();
        return { status, text };
      };
    };
    const [uploadKey, interactionKey] = [randomUUID(), randomUUID()];
    const upload = await begin('/v1/data/courses', { records }, uploadKey);
    const record = await begin('/user-interactions', interaction, interactionKey);

    await postgres.kill();
    try {
      const killedAtMs = performance.now();
      const uploaded = await upload();
      assert.equal(uploaded.status, 500, uploaded.text);
      assertNothingStored(JSON.parse(uploaded.text) as UploadBody, records);
      const recorded = await record();
      assert.equal(recorded.status, 500, recorded.text);
      assert.deepEqual(
        (JSON.parse(recorded.text) as RefusalBody).details?.map(({ code }) => code),
        ['store_unavailable'],
      );
      await waitUntil('the log names the cause', () =>
        /"cause":"PostgreSQL is not available: /.test(logged()),
      );

      const stranger = apiOf(headgate.url, unusedKey);
      const refused: readonly Promise<Reply<RefusalBody>>[] = [
        stranger.request('/v1/data/courses', { body: { records } }),
        stranger.request('/user-interactions', { body: interaction }),
        ...[stranger, api].flatMap((client) => [
          client.request(`/v1/data/shops/${id}`),
          client.request('/v1/data/shops'),
          client.request('/user-interactions'),
          client.request(`/user-interactions/${randomUUID()}`),
          client.request('/readyz'),
        ]),
      ];
      for (const reply of await Promise.all(refused)) {
        assertRefusal(reply, 503, /store does not respond/);
        assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      }
      await judge(api.upload('shops', [shop]));
      await judge(api.record(interaction));
      assert.equal((await api.request('/livez')).status, 200);
      const answeredMs = performance.now() - killedAtMs;
      assert.ok(answeredMs < ANSWERED_WITHIN_MS, `the last response came after ${answeredMs} ms`);
    } finally {
      await postgres.start();
    }
    await assertResumes();
    // Failures are not stored under an idempotency key: a retry is processed.
    const again = await api.upload('courses', records, { headers: { 'Idempotency-Key': uploadKey } });
    assert.equal(again.headers.get('idempotency-replayed'), null);
    assert.deepEqual(
      again.body.batches.map(({ status, data }) => [status, data.counts.created, data.counts.rejected]),
      [
        [207, BATCH_SIZE - 1, 1],
        [200, BATCH_SIZE, 0],
        [200, 1, 0],
      ],
    );
    const recordedAgain = await api.record(interaction, { 'Idempotency-Key': interactionKey });
    assert.equal(recordedAgain.status, 201, recordedAgain.text);
    assert.deepEqual(await readAllInteractions(api), [recordedAgain.body]);
    assert.deepEqual(await readAllRecords(api, 'shops'), [(await api.read('shops', id)).body]);
  });

  test('a connection that is cut in mid-batch fails that whole batch and no other', async () => {
    const records = Array.from({ length: 3 * BATCH_SIZE }, () => leastRecord('courses')).sort((a, b) =>
      idOf('courses', a) < idOf('courses', b) ? -1 : 1,
    );
    const last = records.at(-1)!;
    assert.equal((await api.upload('courses', [last])).status, 200);
    const cut = (condition: string) =>
      ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${condition}`);
    // Rows are written in the order of their ids. An upload that waits for a lock on the last has written all others.
    const lock = ask(`BEGIN;
      SELECT FROM courses WHERE course_id = '${idOf('courses', last)}' FOR UPDATE;
      SELECT pg_sleep(60)`).catch(() => {});
    await waitUntil('the lock is held', async () => {
      const found = await ask(`SELECT FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%'
        AND wait_event = 'PgSleep' AND pid <> pg_backend_pid()`);
      return found.length === 1;
    });
    const headers = { 'Idempotency-Key': randomUUID() };
    const changed = records.map((record) => ({ ...record, name: 'changed' }));
    const reply = api.upload('courses', changed, { headers });
    const isWaiting = `application_name = 'headgate' AND wait_event_type = 'Lock'`;
    await waitUntil('the upload waits for the lock', async () => {
      const waiting = await ask(`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND ${isWaiting}`);
      return waiting.length === 1;
    });
    assert.equal((await cut(isWaiting)).length, 1);
    const { status, body, text } = await reply;
    assert.equal(status, 500, text);
    assertNothingStored(body, changed);
    assert.equal((await api.upload('tags', [leastRecord('tags')])).status, 200);
    await cut(`wait_event = 'PgSleep'`);
    await lock;
    assert.deepEqual(
      (await readAllRecords(api, 'courses')).map((course) => [course.course_id, course.name]),
      [[last.course_id, last.name]],
    );
    const again = await api.upload('courses', changed, { headers });
    assert.equal(again.status, 200, again.text);
    assert.equal(again.headers.get('idempotency-replayed'), null);
    assert.equal((await readAllRecords(api, 'courses')).length, records.length);
  });

  test('nothing acknowledged is lost, and no batch split, if connections are cut at random', async (t) => {
    const seed = chosenSeed();
    t.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const load = await WatchedLoad.create(api, random, BATCH_SIZE);
    let failures = 0;
    const running = load.start(api, async (sent) => {
      const reply = await judge(sent);
      if (reply === null) failures++;
      return reply;
    });
    const cutting = waitUntil('enough has failed and enough was acknowledged', async () => {
      await ask(`DO $$ BEGIN
        FOR round IN 1..20 LOOP
          PERFORM pg_stat_clear_snapshot();
          PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'headgate' AND state = 'active';
          PERFORM pg_sleep(0.01);
        END LOOP;
      END $$`);
      await sleep(random.integer(0, LONGEST_OUTAGE_MS));
      return failures >= FEWEST_FAILURES && load.acknowledgedUploads >= FEWEST_UPLOADS;
    });
    await Promise.race([cutting, running.ended]);
    running.stop();
    await cutting;
    await running.ended;
    await assertResumes();
    await load.retryUnacknowledged(api);
    await load.assertAllThere(api);
    t.diagnostic(`${failures} failures; ${load}`);
  });

  test('a read-only standby serves reads, refuses writes, and is not ready; no server starts on it', async () => {
    const shop = leastRecord('shops');
    assert.equal((await api.upload('shops', [shop])).status, 200);
    const shown = await readAllRecords(api, 'shops');
    await postgres.kill();
    await postgres.start('standby');
    try {
      await waitUntil('reads are served', async () => (await api.list('shops')).status === 200);
      assert.deepEqual(await readAllRecords(api, 'shops'), shown);
      const records: TestRecord[] = [leastRecord('shops'), leastRecord('shops'), { ...shop, name: 'other' }];
      for (const headers of [{}, { 'Idempotency-Key': randomUUID() }]) {
        const uploaded = await api.upload('shops', records, { headers });
        assert.equal(uploaded.status, 500, uploaded.text);
        assertNothingStored(uploaded.body, records);
        const interaction = {
          interaction_type: 'SHARE',
          item_type: 'SHOP',
          item_id: idOf('shops', shop),
          event_timestamp: 1_700_000_000,
        };
        const recorded = await api.record<RefusalBody>(interaction, headers);
        assert.equal(recorded.status, 500, recorded.text);
        assert.deepEqual(
          recorded.body.details?.map(({ code }) => code),
          ['store_unavailable'],
        );
      }
      assertRefusal(await api.request('/readyz'), 503, /store does not respond/);
      assert.equal((await api.request('/livez')).status, 200);
      await waitUntil('the log names the cause', () =>
        /"cause":"PostgreSQL is not available: .*read-only transaction/.test(logged()),
      );
      assert.deepEqual(await readAllRecords(api, 'shops'), shown);
      await assertRefused(database.url, /read-only standby/);
    } finally {
      await postgres.kill();
      await postgres.start();
    }
    await assertResumes();
  });
});

describe('a start is refused on a PostgreSQL database', () => {
  const withPassword = (password: string): string => database.url.replace(postgres.password, password);

  test('with a wrong password', () =>
    assertRefused(withPassword('wrong-sesame'), /password of the role postgres is wrong/));

  test('whose server does not respond', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    await assertRefused(`postgres://someone:sesame@127.0.0.1:${port}/app`, /cannot be reached: /).finally(
      () => {
        for (const socket of sockets) socket.destroy();
        silent.close();
      },
    );
  });
});

/** Fails unless every batch failed and every record is reported, with the store's failure if it is valid itself. */
function assertNothingStored({ batches }: UploadBody, records: readonly unknown[]): void {
  let first = 0;
  for (const { status, data } of batches) {
    const received = Math.min(BATCH_SIZE, records.length - first);
    assert.equal(status, 500);
    assert.equal(data.status, 'error');
    assert.equal(typeof data.error, 'string');
    assert.deepEqual(data.counts, { received, created: 0, updated: 0, unchanged: 0, rejected: received });
    const named = Map.groupBy(data.errors, ({ index }) => index);
    assert.deepEqual(
      [...named.keys()],
      Array.from({ length: received }, (_, at) => first + at),
    );
    for (const [index, problems] of named) {
      const { course_id, shop_id, name } = records[index] as TestRecord;
      if (name === undefined) assert.ok(problems.every(({ retryable }) => !retryable));
      else {
        const [{ code, retryable, id, field }] = problems as [(typeof problems)[number]];
        assert.deepEqual(
          [code, retryable, id, field],
          ['store_unavailable', true, course_id ?? shop_id, null],
        );
      }
    }
    first += received;
  }
  assert.equal(first, records.length);
}
