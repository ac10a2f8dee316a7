// Several processes on one PostgreSQL database: workers behind one port, and servers side by side.
//
// HEADGATE_TEST_SEED repeats the choices of a run; how the requests meet still depends on the machine.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { MIGRATION_LOCK } from '../server/store/postgres/migrator.ts';
import { type TestDatabase, testServer } from '../server/store/postgres/test-server.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type Reply, totals, type UploadBody } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import {
  commandLine,
  type Environment,
  type Headgate,
  type IssuedKey,
  newDatabaseFolder,
  startHeadgate,
} from './harness/headgate.ts';
import { chosenSeed, Random } from './harness/random.ts';
import { bearer, connectRaw, type RawConnection } from './harness/raw-connection.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord, type TestRecord } from './harness/records.ts';
import { exitCodeOf, takesConnections, waitUntil } from './harness/waiting.ts';
import { childrenOf, isRunning } from './harness/worker-processes.ts';

const WORKERS = 2;
/** So many that they are hardly ever all with one worker. */
const CONNECTIONS = 24;
const REVOKED_WITHIN_MS = 5000;
/** The uploads of each client of a random workload. */
const ROUNDS = times(25, 10);
const SERVERS_AT_ONCE = times(4, 3);

const newDatabase = async (): Promise<TestDatabase> => (await testServer()).newDatabase();
const keyPattern = /hg_[A-Za-z0-9_-]+/g;

describe('several workers on one port', () => {
  let database: TestDatabase;
  let headgate: Headgate;
  const start = async (environment: Environment = {}): Promise<void> => {
    headgate = await startHeadgate(database.url, { HEADGATE_WORKERS: String(WORKERS), ...environment });
  };
  const workers = (): Promise<readonly number[]> => childrenOf(headgate.process.pid!);

  before(async () => {
    database = await newDatabase();
  });
  after(() => database.drop());

  const openConnections = async (): Promise<readonly RawConnection[]> => {
    const connections = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => connectRaw(headgate.url)),
    );
    for (const connection of connections) await assertServes(connection);
    return connections;
  };
  const assertServes = async (connection: RawConnection): Promise<void> => {
    connection.send({ path: '/livez' });
    assert.equal((await connection.answer()).status, 200);
  };

  describe('until they are stopped', () => {
    before(() => start({ HEADGATE_WORKRES: '3', HEADGATE_SHUTDOWN_TIMEOUT: '25s' }));
    after(() => headgate.kill());

    test('the first key and `listening on` are printed once, when all workers can respond', async () => {
      assert.equal((await workers()).length, WORKERS);
      const output = headgate.output();
      assert.equal(output.match(/^listening on /gm)?.length, 1, output);
      assert.equal(output.match(/^ *hg_\S+$/gm)?.length, 1, output);
      assert.equal(output.match(/HEADGATE_WORKRES is not a setting/g)?.length, 1, output);
      const keys = [...new Set(output.match(keyPattern))];
      assert.equal(keys.length, 1);
      assert.ok(output.includes(`curl ${headgate.url}/v1/data/`), output);
      const api = apiOf(headgate.url, keys[0]!);
      assert.equal((await api.upload('tags', [leastRecord('tags')])).status, 200);
    });

    test('each worker listens itself, so that no new connection waits for the primary', {
      skip: process.platform !== 'linux' && 'elsewhere, the primary accepts connections for the workers',
    }, async () => {
      const { port } = new URL(headgate.url);
      // Each line has the local address and port, the remote ones, and the state. 0A is a listening socket.
      const listening = readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(
          ([, local, , state]) => state === '0A' && Number(`0x${local!.split(':')[1]}`) === Number(port),
        );
      assert.equal(listening.length, WORKERS);
    });

    test('requests reach every worker, and a lost worker is replaced while the others serve', async () => {
      const { key } = await headgate.newKey();
      const first = await workers();
      const seen = new Set<number>();
      for (const lost of first) {
        const connections = await openConnections();
        const ended = new Set<RawConnection>();
        for (const connection of connections) void connection.ended.then(() => ended.add(connection));
        process.kill(lost, 'SIGKILL');
        await waitUntil('a connection has ended with its worker', () => ended.size > 0);
        await waitUntil('the loss is told', () =>
          headgate.output().includes(`headgate: worker ${lost} ended with SIGKILL unexpectedly`),
        );
        const alive = connections.filter((connection) => !ended.has(connection));
        assert.ok(alive.length > 0, 'all connections were with one worker');
        for (const connection of alive) await assertServes(connection);
        const api = apiOf(headgate.url, key);
        assert.equal((await api.upload('tags', [leastRecord('tags')])).status, 200);
        await waitUntil('another serves in its place', async () => {
          const replacements = (await workers()).filter((pid) => !first.includes(pid));
          return replacements.some((pid) => {
            const isTold = headgate.output().includes(`headgate: worker ${pid} replaces it`);
            return isTold && !seen.has(pid) && seen.add(pid);
          });
        });
        assert.equal((await workers()).length, WORKERS);
        for (const connection of alive) connection.destroy();
      }
      assert.ok(first.every((pid) => !isRunning(pid)));
    });

    test('SIGTERM lets every worker finish its requests, and the exit code is 0', async () => {
      const { key } = await headgate.newKey();
      const pids = await workers();
      const perUpload = 50;
      const begun = await Promise.all(
        Array.from({ length: CONNECTIONS }, async () => {
          const connection = await connectRaw(headgate.url);
          const records = Array.from({ length: perUpload }, () => leastRecord('courses'));
          const finish = await connection.sendAllButTheLastByte({
            path: '/v1/data/courses',
            headers: bearer(key),
            body: JSON.stringify({ records }),
          });
          return { connection, finish };
        }),
      );
      const printedBefore = headgate.output().length;
      headgate.process.kill('SIGTERM');
      await waitUntil('no connection is taken', async () => !(await takesConnections(headgate.url)));
      assert.equal(headgate.process.exitCode, null);
      for (const { connection, finish } of begun) {
        finish();
        const { status, text } = await connection.answer();
        assert.equal(status, 200, text);
      }
      assert.equal(await exitCodeOf(headgate.process), 0);
      assert.ok(pids.every((pid) => !isRunning(pid)));
      assert.doesNotMatch(headgate.output().slice(printedBefore), /^headgate: /m);

      const sql = 'SELECT count(*)::integer AS courses FROM courses';
      const stored = await (await testServer()).ask(database.name, sql);
      assert.deepEqual(stored, [{ courses: CONNECTIONS * perUpload }]);
    });
  });

  describe('with a server of its own', () => {
    afterEach(() => headgate.kill());

    test('a stop disconnects a client that never finishes, and exits with 0', async () => {
      await start({ HEADGATE_SHUTDOWN_TIMEOUT: '3s' });
      const { key } = await headgate.newKey();
      const stuck = await connectRaw(headgate.url);
      await stuck.sendAllButTheLastByte({
        path: '/v1/data/tags',
        headers: bearer(key),
        body: '{"records":[]}',
      });
      assert.equal(await headgate.stop(), 0, headgate.output());
      assert.match(headgate.output(), /closed the connections of stalled clients while stopping/);
      await stuck.ended;
    });

    test('no worker outlives the process that started it', async () => {
      await start();
      const pids = await workers();
      assert.equal(pids.length, WORKERS);
      await headgate.kill();
      await waitUntil('the workers are gone', () => pids.every((pid) => !isRunning(pid)));
    });
  });

  test('the reason why workers cannot start is printed once', async () => {
    await start();
    const { port } = new URL(headgate.url);
    const serve = ['serve', '--workers', '3', '--port'];
    const refusals = [
      await failedHeadgate([...serve, port], { HEADGATE_DATABASE: database.url }),
      await failedHeadgate([...serve, '0'], { HEADGATE_DATABASE: 'postgres://u:sesame@127.0.0.1:1/app' }),
    ];
    await headgate.stop();
    for (const [at, { exitCode, stdout, stderr }] of refusals.entries()) {
      assert.equal(exitCode, 1, stderr);
      assert.doesNotMatch(stdout, /listening/);
      assert.match(stderr, oneSentence);
      assert.match(stderr, [new RegExp(`port ${port} .* is taken`), /ECONNREFUSED/][at]!);
    }
  });

  test('a SQLite file is refused in one sentence, because only one process can write it', async () => {
    const { folder, remove } = await newDatabaseFolder();
    const { exitCode, stdout, stderr } = await failedHeadgate(
      ['serve', '--workers', '2', '--database', `sqlite:${folder}/headgate.db`],
      {},
    ).finally(remove);
    assert.equal(exitCode, 2, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, oneSentence);
    assert.match(stderr, /--workers\) is 2.*SQLite.*postgres:/);
  });
});

describe('two servers on one database', () => {
  let database: TestDatabase;
  let servers: readonly [Headgate, Headgate];
  before(async () => {
    database = await newDatabase();
    servers = [await startHeadgate(database.url), await startHeadgate(database.url)];
  });
  after(async () => {
    for (const server of servers) await server.kill();
    await database.drop();
  });

  const newPair = async (): Promise<{ issued: IssuedKey; apis: readonly [Api, Api] }> => {
    const issued = await servers[0].newKey();
    return { issued, apis: [apiOf(servers[0].url, issued.key), apiOf(servers[1].url, issued.key)] };
  };

  test('random uploads of the same ids to both end in a state that the model allows', async (t) => {
    const seed = chosenSeed();
    t.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const { apis } = await newPair();
    // With dates the newest record wins, without dates the last one.
    for (const isDated of [true, false]) {
      const type = isDated ? 'shops' : 'courses';
      const ids = Array.from({ length: 60 }, () => randomUUID());
      const uploads: SentUpload[] = [];
      const client = async (api: Api, own: Random): Promise<void> => {
        for (let round = 0; round < ROUNDS; round++) {
          const records = shuffled(ids, own)
            .slice(0, own.integer(1, 40))
            .map((id) =>
              leastRecord(type, {
                [isDated ? 'shop_id' : 'course_id']: id,
                name: randomUUID(),
                ...(isDated ? { updated: `2024-05-${own.integer(10, 28)}T00:00:00Z` } : {}),
              }),
            );
          const startedAtMs = performance.now();
          const reply = await api.upload(type, records);
          assert.equal(reply.status, 200, reply.text);
          uploads.push({ records, reply, startedAtMs, endedAtMs: performance.now() });
        }
      };
      const clients = [...apis, ...apis, ...apis];
      await Promise.all(clients.map((api) => client(api, new Random(random.integer(0, 2 ** 32 - 1)))));

      const [first, second] = await Promise.all(apis.map((api) => readAllRecords(api, type)));
      assert.deepEqual(first, second);
      assertAllowed(type, first!, uploads);
    }
  });

  test('overlapping uploads in opposite order both succeed', async () => {
    const { apis } = await newPair();
    const records = Array.from({ length: 2500 }, () => leastRecord('courses'));
    for (let round = 0; round < times(5, 2); round++) {
      const named = (name: string) => records.map((record) => ({ ...record, name: `${name} ${round}` }));
      const replies = await Promise.all([
        apis[0].upload('courses', named('forwards')),
        apis[1].upload('courses', named('backwards').toReversed()),
        apis[1].upload('courses', named('forwards, too')),
        apis[0].upload('courses', named('backwards, too').toReversed()),
      ]);
      for (const { status, text } of replies) assert.equal(status, 200, text);
      const created = replies.reduce((sum, { body }) => sum + totals(body).created, 0);
      assert.equal(created, round === 0 ? records.length : 0);
      const updated = replies.reduce((sum, { body }) => sum + totals(body).updated, 0);
      assert.equal(created + updated, replies.length * records.length);
    }
    assert.equal((await readAllRecords(apis[0], 'courses')).length, records.length);
  });

  test('a key that was revoked is refused by both within 5 seconds', async () => {
    const { issued, apis } = await newPair();
    for (const api of apis) assert.equal((await api.list('tags')).status, 200);
    await servers[0].command('keys', 'revoke', issued.key_id);
    const revokedAtMs = performance.now();
    for (const api of apis) {
      await waitUntil('the key is refused', async () => (await api.list('tags')).status === 401);
      const tookMs = performance.now() - revokedAtMs;
      assert.ok(tookMs < REVOKED_WITHIN_MS, `the key was refused after ${tookMs} ms`);
    }
    for (const api of apis) assert.equal((await api.list('tags')).status, 401);
  });

  test('a record uploaded to one can be referenced through the other at once', async () => {
    const { apis } = await newPair();
    for (let round = 0; round < 10; round++) {
      const [here, there] = round % 2 === 0 ? apis : [apis[1], apis[0]];
      const shop = leastRecord('shops');
      const branch = leastRecord('branches', { shop_id: idOf('shops', shop) });
      assert.equal((await there.upload('branches', [branch])).status, 400);
      assert.equal((await here.upload('shops', [shop])).status, 200);
      assert.equal((await there.upload('branches', [branch])).status, 200);
      assert.equal((await here.read('branches', idOf('branches', branch))).status, 200);
    }
  });

  test('an Idempotency-Key that was used on one replays on the other', async () => {
    const { apis } = await newPair();
    const [here, there] = apis;
    const shop = leastRecord('shops');
    const headers = { 'Idempotency-Key': randomUUID() };
    const uploaded = await here.upload('shops', [shop], { headers });
    assert.equal(totals(uploaded.body).created, 1);
    assertReplay(uploaded, await there.upload('shops', [shop], { headers }));
    const otherBody = [{ ...shop, name: 'other' }];
    assert.equal((await there.upload('shops', otherBody, { headers })).status, 422);

    const interaction = interactionWith(shop);
    const recorded = await there.record(interaction, headers);
    assert.equal(recorded.status, 201, recorded.text);
    assertReplay(recorded, await here.record(interaction, headers));
    assert.deepEqual(await readAllInteractions(here), [recorded.body]);
  });

  test('requests with one Idempotency-Key to both at once are processed once', async () => {
    const { apis } = await newPair();
    const shop = leastRecord('shops');
    assert.equal((await apis[0].upload('shops', [shop])).status, 200);
    for (let round = 0; round < times(10, 4); round++) {
      const headers = { 'Idempotency-Key': randomUUID() };
      const records = Array.from({ length: 300 }, () => leastRecord('courses', { name: `round ${round}` }));
      const uploaded = await carriedOutOnce(200, apis, (api) => api.upload('courses', records, { headers }));
      assert.equal(totals(uploaded.body).created, records.length);
      const interaction = interactionWith(shop, { user_id: `round ${round}` });
      const recorded = await carriedOutOnce(201, apis, (api) => api.record(interaction, headers));
      const found = (await readAllInteractions(apis[0])).filter(
        ({ user_id }) => user_id === `round ${round}`,
      );
      assert.deepEqual(found, [recorded.body]);
    }
  });
});

test('a server that waits for the migration of another one ends after a signal, exit code 1', {
  timeout: 60_000,
}, async () => {
  const database = await newDatabase();
  const migrating = new pg.Client(database.url);
  await migrating.connect();
  await migrating.query(`SELECT pg_advisory_lock(${MIGRATION_LOCK})`);
  const [program, ...args] = commandLine(['serve', '--port', '0']);
  const child = spawn(program!, args, {
    env: { ...process.env, HEADGATE_DATABASE: database.url, HEADGATE_SHUTDOWN_TIMEOUT: '1s' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    const printed = text(child.stderr);
    await waitUntil('it waits', async () => {
      const { rows } = await migrating.query(`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event = 'advisory'`);
      return rows.length > 0;
    });
    child.kill('SIGTERM');
    assert.equal(await exitCodeOf(child), 1);
    assert.match(await printed, /^headgate: the server did not start within 1 s; stopped without waiting$/m);
  } finally {
    child.kill('SIGKILL');
    await migrating.end();
    await database.drop();
  }
});

test('servers that start at once on an empty database create tables and first key once', async () => {
  const database = await newDatabase();
  const starting = Array.from({ length: SERVERS_AT_ONCE }, () => startHeadgate(database.url));
  const settled = await Promise.allSettled(starting);
  const servers = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  try {
    for (const one of settled)
      assert.equal(one.status, 'fulfilled', String((one as { reason?: unknown }).reason));
    const keys = servers.flatMap((server) => [...new Set(server.output().match(keyPattern))]);
    assert.equal(keys.length, 1);
    const organisations = await servers[0]!.command<{ name: string }[]>('orgs', 'list');
    assert.deepEqual(
      organisations.map(({ name }) => name),
      ['demo'],
    );
    for (const [at, { url }] of servers.entries()) {
      const api = apiOf(url, keys[0]!);
      assert.equal((await api.upload('tags', [leastRecord('tags')])).status, 200);
      assert.equal((await readAllRecords(api, 'tags')).length, at + 1);
    }
    for (const server of servers) assert.equal(await server.stop(), 0);
  } finally {
    for (const server of servers) await server.kill();
    await database.drop();
  }
});

interface SentUpload {
  readonly records: readonly TestRecord[];
  readonly reply: Reply<UploadBody>;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/**
 * Fails unless exactly one upload created each id, and the stored record is one of the uploaded ones that no upload
 * sent after its acknowledgement should have replaced.
 */
function assertAllowed(
  type: 'shops' | 'courses',
  stored: readonly Record<string, unknown>[],
  uploads: readonly SentUpload[],
): void {
  const sum = (count: 'received' | 'created' | 'updated' | 'unchanged'): number =>
    uploads.reduce((total, { reply }) => total + totals(reply.body)[count], 0);
  const versions = Map.groupBy(
    uploads.flatMap(({ records, ...upload }) => records.map((record) => ({ record, ...upload }))),
    ({ record }) => idOf(type, record),
  );
  assert.equal(sum('created'), versions.size);
  assert.equal(sum('created') + sum('updated') + sum('unchanged'), sum('received'));
  assert.deepEqual(
    stored.map((record) => idOf(type, record)),
    [...versions.keys()].sort(),
  );
  for (const shown of stored) {
    const sent = versions.get(idOf(type, shown))!;
    const last = sent.find(({ record }) => record.name === shown.name);
    assert.ok(last !== undefined, `${idOf(type, shown)} is stored with values that were never sent`);
    for (const [field, value] of Object.entries(last.record)) assert.equal(shown[field], value);
    for (const { record, startedAtMs } of sent) {
      const isOlder = record.updated !== undefined && String(record.updated) < String(shown.updated);
      assert.ok(
        record.updated === undefined || String(record.updated) <= String(shown.updated),
        'an older record has replaced a newer one',
      );
      assert.ok(isOlder || startedAtMs <= last.endedAtMs, 'an earlier record has replaced a later one');
    }
  }
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  return items
    .map((item) => ({ item, place: random.fraction() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

function interactionWith(shop: TestRecord, given: TestRecord = {}): TestRecord {
  return {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: idOf('shops', shop),
    event_timestamp: 1_700_000_000,
    ...given,
  };
}

function assertReplay(first: Reply, again: Reply): void {
  assert.deepEqual([again.status, again.text], [first.status, first.text]);
  assert.equal(first.headers.get('idempotency-replayed'), null);
  assert.equal(again.headers.get('idempotency-replayed'), 'true');
}

/** Sends the same request through both at once. Returns the response of the one that processed it. */
async function carriedOutOnce<Body>(
  status: number,
  apis: readonly Api[],
  send: (api: Api) => Promise<Reply<Body>>,
): Promise<Reply<Body>> {
  const replies = await Promise.all(
    apis.map(async (api) => {
      for (;;) {
        const reply = await send(api);
        if (reply.status !== 409) return reply;
        assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
        await sleep(20);
      }
    }),
  );
  const first = replies.filter(({ headers }) => headers.get('idempotency-replayed') === null);
  assert.equal(first.length, 1, replies.map(({ text }) => text).join('\n'));
  assert.equal(first[0]!.status, status, first[0]!.text);
  for (const reply of replies) if (reply !== first[0]) assertReplay(first[0]!, reply);
  return first[0]!;
}
