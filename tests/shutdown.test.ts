// How Headgate starts, refuses to start, and stops.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openForWriting } from '../server/store/sqlite/writing-connection.ts';
import { isThorough } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type RefusalBody, type UploadBody } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { describeOnceOn, forEachStore } from './harness/for-each-store.ts';
import { type Environment, type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { bearer, connectRaw } from './harness/raw-connection.ts';
import { leastRecord, type TestRecord } from './harness/records.ts';
import { exitCodeOf, hasProgram, takesConnections, waitUntil } from './harness/waiting.ts';
import { childrenOf, isRunning } from './harness/worker-processes.ts';

/** Longer than any test waits. A stop that reaches it has another exit code. */
const patient: Environment = { HEADGATE_SHUTDOWN_TIMEOUT: '25s' };
const LARGE_UPLOAD_RECORDS = 5000;
/** A thorough run tries both in each test, others one. */
const signals = ['SIGTERM', 'SIGINT'] as const;

forEachStore((store) => {
  let database: Awaited<ReturnType<typeof store.newDatabase>>;
  let headgate: Headgate;
  let key: string | undefined;
  let api: Api;

  const start = async (environment: Environment): Promise<void> => {
    headgate = await startHeadgate(database.database, environment);
  };
  const courses = (count: number, name: string): TestRecord[] =>
    Array.from({ length: count }, () => leastRecord('courses', { name }));
  const upload = (records: readonly TestRecord[]) => ({
    path: '/v1/data/courses',
    headers: bearer(key!),
    body: JSON.stringify({ records }),
  });
  const nameCounts = async (): Promise<Map<unknown, number>> => {
    const counted = await store.ask(
      database.database,
      'SELECT name, CAST(count(*) AS integer) AS number FROM courses GROUP BY name',
    );
    return new Map(counted.map(({ name, number }) => [name, number as number]));
  };

  describe('a stop', () => {
    const serve = async (environment: Environment): Promise<void> => {
      await start(environment);
      key ??= (await headgate.newKey()).key;
      api = apiOf(headgate.url, key);
    };
    before(async () => {
      database = await store.newDatabase();
    });
    afterEach(() => headgate.kill());
    after(() => database.remove());

    for (const signal of isThorough ? signals : (['SIGTERM'] as const)) {
      test(`${signal} lets requests in flight finish, accepts no new ones, and exits with 0`, async () => {
        await serve(patient);
        const received = await connectRaw(headgate.url);
        const finishReceived = await received.sendAllButTheLastByte(
          upload(courses(LARGE_UPLOAD_RECORDS, `${signal} received`)),
        );
        const halfSent = await connectRaw(headgate.url);
        const finishHalfSent = await halfSent.sendAllButTheLastByte(
          upload(courses(3, `${signal} half sent`)),
        );
        finishReceived();
        headgate.process.kill(signal);
        await waitUntil('no connection is taken', async () => !(await takesConnections(headgate.url)));
        assert.equal(headgate.process.exitCode, null);
        finishHalfSent();
        for (const connection of [received, halfSent]) {
          const { status, text } = await connection.answer();
          assert.equal(status, 200, text);
          assert.deepEqual(
            new Set((JSON.parse(text) as UploadBody).batches.map((batch) => batch.status)),
            new Set([200]),
          );
        }
        assert.equal(await exitCodeOf(headgate.process), 0);
        await Promise.all([received.ended, halfSent.ended]);

        const counts = await nameCounts();
        assert.equal(counts.get(`${signal} received`), LARGE_UPLOAD_RECORDS);
        assert.equal(counts.get(`${signal} half sent`), 3);
      });
    }

    for (const signal of isThorough ? signals : (['SIGINT'] as const)) {
      test(`${signal} under load exits with 0, and everything acknowledged is stored`, async () => {
        await serve(patient);
        const acknowledged = new Set<string>();
        const sent = new Set<string>();
        const perUpload = 200;
        let isOver = false;
        const client = async (client: number): Promise<void> => {
          for (let round = 0; !isOver; round++) {
            const name = `${signal} client ${client} round ${round}`;
            sent.add(name);
            const reply = await api.upload('courses', courses(perUpload, name)).catch(() => null);
            if (reply === null || reply.status === 503) return;
            assert.equal(reply.status, 200, reply.text);
            acknowledged.add(name);
          }
        };
        const clients = Promise.all([0, 1, 2, 3].map(client));
        await waitUntil('the load is running', () => acknowledged.size >= 8);
        headgate.process.kill(signal);
        assert.equal(await exitCodeOf(headgate.process), 0);
        isOver = true;
        await clients;

        const counts = await nameCounts();
        for (const name of acknowledged) assert.equal(counts.get(name), perUpload, name);
        for (const name of sent)
          assert.ok([undefined, perUpload].includes(counts.get(name)), `${name} in part`);
      });
    }

    test('ends the evaluation of a segment, which the client may ask for again', async (t) => {
      const { folder, remove } = await newDatabaseFolder();
      t.after(remove);
      await serve({ ...patient, HEADGATE_ANALYTICS_DIR: folder });
      const query = await api.request('/v1/sql', { body: { sql: 'SELECT 1' } });
      assert.equal(query.status, 200, query.text);
      const [analytics] = await childrenOf(headgate.process.pid!);
      const others = await childrenOf(analytics!);
      t.after(() => {
        for (const other of others) if (isRunning(other)) process.kill(other, 'SIGCONT');
      });
      // So the evaluation never ends by itself.
      for (const other of others) process.kill(other, 'SIGSTOP');
      const saved = api.request<RefusalBody>('/v1/segments/all', {
        method: 'PUT',
        body: { condition: { customer: 'region', exists: true } },
      });
      await sleep(500);
      headgate.process.kill('SIGTERM');
      const { status, body } = await saved;
      assert.deepEqual([status, body.message], [503, 'The service is shutting down.']);
      assert.equal(await exitCodeOf(headgate.process), 0);
    });

    test('ends queries that would take longer than it may take', async (t) => {
      const { folder, remove } = await newDatabaseFolder();
      t.after(remove);
      await serve({ HEADGATE_SHUTDOWN_TIMEOUT: '8s', HEADGATE_ANALYTICS_DIR: folder });
      const sql = 'SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3';
      const query = api.request<RefusalBody>('/v1/sql', { body: { sql } });
      await sleep(1000);
      headgate.process.kill('SIGTERM');
      const { status, body } = await query;
      assert.equal(status, 503);
      assert.match(body.message, /^The service is shutting down/);
      assert.equal(await exitCodeOf(headgate.process), 0);
    });

    describeOnceOn(store, 'that clients hinder', () => {
      test('is not delayed by idle keep-alive connections', async () => {
        await serve(patient);
        const connections = await Promise.all(Array.from({ length: 5 }, () => connectRaw(headgate.url)));
        for (const connection of connections.slice(1)) {
          connection.send({ path: '/livez' });
          assert.equal((await connection.answer()).status, 200);
        }
        assert.equal(await headgate.stop(), 0);
        await Promise.all(connections.map(({ ended }) => ended));
      });

      test('refuses new requests and /readyz with 503, while /livez still responds', async () => {
        await serve(patient);
        const probe = async (path: string) => {
          const connection = await connectRaw(headgate.url);
          // A request that has begun keeps its connection. Its path is sent after the signal.
          connection.write('GET ');
          return async () => {
            connection.write(`${path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${key}\r\n\r\n`);
            const answer = await connection.answer();
            await connection.ended;
            return answer;
          };
        };
        const [readyz, livez, list] = [
          await probe('/readyz'),
          await probe('/livez'),
          await probe('/v1/data/courses'),
        ];
        const upload = await probe('/user-interactions');
        await waitUntil(
          'the server has read all beginnings',
          async () => (await api.list('courses')).status === 200,
        );
        headgate.process.kill('SIGTERM');
        await waitUntil('no connection is taken', async () => !(await takesConnections(headgate.url)));
        assert.equal((await livez()).status, 200);
        for (const ask of [readyz, list, upload]) {
          const { status, headers, text } = await ask();
          assert.equal(status, 503, text);
          assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
          assert.equal(headers.get('connection'), 'close');
          assert.equal(headers.get('x-content-type-options'), 'nosniff');
          const body = JSON.parse(text) as RefusalBody;
          assert.equal(body.error, 'Service Unavailable');
          assert.match(body.message, /shutting down/);
          assert.equal(body.request_id, headers.get('x-request-id'));
        }
        assert.equal(await exitCodeOf(headgate.process), 0);
      });

      test('disconnects stalled clients in time, finishes complete requests, and exits with 0', async () => {
        await serve({ HEADGATE_SHUTDOWN_TIMEOUT: '12s' });
        const [halfBody, halfHead, slow] = [
          await connectRaw(headgate.url),
          await connectRaw(headgate.url),
          await connectRaw(headgate.url),
        ];
        await halfBody.sendAllButTheLastByte(upload(courses(3, 'half body')));
        halfHead.write('POST /v1/data/courses HTTP/1.1\r\nHost: x\r\n');
        const finishSlow = await slow.sendAllButTheLastByte(upload(courses(3, 'slow')));
        const stopped = headgate.stop();
        await waitUntil('no connection is taken', async () => !(await takesConnections(headgate.url)));
        finishSlow();
        assert.equal((await slow.answer()).status, 200);
        assert.equal(await stopped, 0, headgate.output());
        assert.match(headgate.output(), /"connections":2,.*stalled clients/);
        assert.doesNotMatch(headgate.output(), /did not end within/);
        await Promise.all([halfBody.ended, halfHead.ended]);

        const counts = await nameCounts();
        assert.equal(counts.get('half body'), undefined);
        assert.equal(counts.get('slow'), 3);
      });

      test('a second signal ends it at once', async () => {
        await serve(patient);
        const stuck = await connectRaw(headgate.url);
        await stuck.sendAllButTheLastByte(upload(courses(3, 'stuck')));
        headgate.process.kill('SIGTERM');
        await waitUntil('no connection is taken', async () => !(await takesConnections(headgate.url)));
        // Two signals in quick succession count as one.
        await sleep(500);
        assert.equal(headgate.process.exitCode, null);
        headgate.process.kill('SIGINT');
        assert.equal(await exitCodeOf(headgate.process), 1);
        assert.doesNotMatch(headgate.output(), /did not end within/);
        stuck.destroy();
      });
    });
  });

  describe('a start', () => {
    beforeEach(async () => {
      database = await store.newDatabase();
    });
    afterEach(async () => {
      await headgate.kill();
      await database.remove();
    });

    const keyPattern = /hg_[A-Za-z0-9_-]+/g;

    test('prints a key and a working curl command the first time, and none the second time', async () => {
      await start({});
      const output = headgate.output();
      assert.equal(output.match(/^listening on /gm)?.length, 1);
      assert.equal(output.match(/^ *hg_\S+$/gm)?.length, 1);
      const keys = new Set(output.match(keyPattern));
      assert.equal(keys.size, 1);
      const [demoKey] = keys;
      assert.deepEqual(
        (await headgate.command<{ name: string }[]>('orgs', 'list')).map(({ name }) => name),
        ['demo'],
      );

      const printed = /^ *curl (?:.*\\\n)*.*$/m.exec(output)?.[0];
      assert.ok(printed !== undefined, output);
      const answer = await runPrintedCurl(printed);
      assert.deepEqual(
        answer.batches.map(({ status, data }) => [status, data.counts.created]),
        [[200, 1]],
      );
      const { records } = (await apiOf(headgate.url, demoKey!).list(answer.type)).body;
      assert.equal(records.length, 1);

      assert.equal(await headgate.stop(), 0);
      assert.equal(headgate.output().match(/^listening on /gm)?.length, 1);
      await start({});
      assert.deepEqual(headgate.output().match(keyPattern), null);
      assert.equal(headgate.output().match(/^listening on /gm)?.length, 1);
      assert.doesNotMatch(headgate.output(), /curl/);
      assert.equal((await apiOf(headgate.url, demoKey!).list(answer.type)).status, 200);
    });

    test('on a port in use is refused in one sentence', async () => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      const refused = await failedHeadgate(['serve', '--port', String(port)], {
        HEADGATE_DATABASE: database.database,
      });
      other.close();
      assert.equal(refused.exitCode, 1);
      assert.equal(refused.stdout, '');
      assert.match(refused.stderr, oneSentence);
      assert.match(refused.stderr, new RegExp(`port ${port} `));
    });
  });
});

describe('a start is refused on a SQLite file', () => {
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  before(async () => {
    folder = await newDatabaseFolder();
  });
  after(() => folder.remove());

  const assertRefused = async (path: string, reason: RegExp): Promise<void> => {
    const before = await readFile(path).catch(() => null);
    const { exitCode, stdout, stderr } = await failedHeadgate(['serve', '--port', '0'], {
      HEADGATE_DATABASE: path,
    });
    assert.equal(exitCode, 1, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, oneSentence);
    assert.match(stderr, reason);
    assert.ok(stderr.includes(path), stderr);
    assert.deepEqual(await readFile(path).catch(() => null), before);
  };
  const newHeadgateFile = async (name: string, change: string): Promise<string> => {
    const path = join(folder.folder, name);
    const database = openForWriting(path);
    database.exec(change);
    database.close();
    return path;
  };

  test('with a newer schema', async () => {
    const path = await newHeadgateFile('schema.db', 'PRAGMA user_version = 999');
    await assertRefused(path, /made by a newer Headgate.*upgrade/);
  });

  test('that is another program’s database', async () => {
    const path = join(folder.folder, 'foreign.db');
    const database = new DatabaseSync(path);
    database.exec('CREATE TABLE shops (id INTEGER PRIMARY KEY)');
    database.close();
    await assertRefused(path, /Headgate has not made/);
  });
});

/** Runs the printed command; without curl, sends the same request. */
async function runPrintedCurl(printed: string): Promise<UploadBody> {
  if (await hasProgram('curl')) {
    const { stdout } = await promisify(execFile)('sh', ['-c', printed]);
    return JSON.parse(stdout) as UploadBody;
  }
  const url = /https?:\/\/\S+/.exec(printed)![0];
  const headers = [...printed.matchAll(/-H '([^:]+): ([^']+)'/g)].map(
    ([, name, value]) => [name!, value!] as const,
  );
  const body = /-d '([^']+)'/.exec(printed)![1]!;
  const response = await fetch(url, { method: 'POST', headers: Object.fromEntries(headers), body });
  return (await response.json()) as UploadBody;
}
