// SQL over HTTP, on a real analytics process. What a query may contain is tested in server/analytics/sql/, and the
// replica in server/analytics/replica.test.ts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RecommendationsReport } from '@headgate/client/recommendations.ts';
import { socketPath } from '../server/analytics/analytics-orders.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type RefusalBody } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { startHeadgate } from './harness/headgate.ts';
import { bearer, connectRaw } from './harness/raw-connection.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';
import { childrenOf, isRunning, stoppedChildrenOf } from './harness/worker-processes.ts';

interface SqlBody {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  readonly row_count: number;
  readonly truncated: boolean;
  readonly ms: number;
  readonly as_of: { readonly seq: number; readonly at: string; readonly complete: boolean };
}

/** The default of HEADGATE_SQL_TIMEOUT. */
const LONGEST_QUERY_MS = 30_000;

/** A query that takes minutes. */
const ENDLESS =
  'SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE (a.range * b.range) % 7 = 3';

/** DuckDB cannot be stopped within one call of a function, which takes about 45 s here. */
const UNSTOPPABLE = {
  sql: 'SELECT levenshtein(?, ?)',
  params: ['a'.repeat(100_000), 'b'.repeat(100_000)],
};

async function query(api: Api, sql: string, params: readonly unknown[] = []): Promise<SqlBody> {
  const { status, text, body } = await api.request<SqlBody>('/v1/sql', { body: { sql, params } });
  assert.equal(status, 200, text);
  return body;
}

async function refused(
  api: Api,
  body: unknown,
): Promise<RefusalBody & { readonly status: number; readonly position?: number }> {
  const reply = await api.request<RefusalBody>('/v1/sql', { body });
  return { status: reply.status, ...reply.body };
}

forEachStore((store) => {
  const folder = join(process.env.TMPDIR ?? '/tmp', `hg-${process.pid}-${store.name.length}`);
  const server = runningHeadgate(store, { HEADGATE_ANALYTICS_DIR: folder });
  after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

  test('a query sees what its organisation has uploaded before, and nothing of another', async () => {
    const [api, other] = [await server.newApi(), await server.newApi()];
    await other.upload('shops', [leastRecord('shops')]);
    for (let uploads = 1; uploads <= 3; uploads++) {
      await api.upload('shops', [leastRecord('shops', { name: `Shop ${uploads}`, region: 'GB' })]);
      const { columns, rows, row_count, truncated, as_of } = await query(
        api,
        'SELECT name, region FROM shops WHERE region = ? ORDER BY name',
        ['GB'],
      );
      assert.deepEqual(columns, [
        { name: 'name', type: 'VARCHAR' },
        { name: 'region', type: 'VARCHAR' },
      ]);
      assert.deepEqual(
        rows,
        Array.from({ length: uploads }, (_, n) => [`Shop ${n + 1}`, 'GB']),
      );
      assert.deepEqual({ row_count, truncated }, { row_count: uploads, truncated: false });
      assert.deepEqual({ seq: as_of.seq, complete: as_of.complete }, { seq: uploads, complete: true });
      assert.ok(Math.abs(Date.parse(as_of.at) - Date.now()) < 60_000);
    }
  });

  test('the recommendation report sees what was uploaded before', async () => {
    const api = await server.newApi();
    const [shop, customer] = [leastRecord('shops'), leastRecord('customers')];
    await api.upload('shops', [shop]);
    await api.upload('customers', [customer]);
    const now = new Date();
    const touch = {
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      student_id: customer.customer_id,
      source: 'SERVICE',
      recommendation_id: randomUUID(),
      event_timestamp: new Date(now.getTime() - 60_000).toISOString(),
    };
    assert.equal((await api.record(touch)).status, 201);
    const purchase = leastRecord('transactions', {
      shop_id: shop.shop_id!,
      student_id: customer.customer_id!,
      amount: 12.5,
      created: now.toISOString(),
    });
    assert.equal((await api.upload('transactions', [purchase])).status, 200);
    const { status, text, body } = await api.request<RecommendationsReport>('/v1/reports/recommendations');
    assert.equal(status, 200, text);
    assert.deepEqual([body.as_of.seq, body.as_of.complete, body.by, body.groups.length], [4, true, null, 1]);
    const { touches, windows } = body.groups[0]!.recommended;
    assert.deepEqual([touches, windows[7].purchases, windows[7].amount], [1, 1, 12.5]);
    const bad = await api.request('/v1/reports/recommendations?by=week');
    assert.equal(bad.status, 400);
    assert.match(bad.body.message, /by must be one of item_type/);
    const { key } = await server.headgate.newKey('uploader', ['data:read']);
    assert.equal((await apiOf(server.headgate.url, key).request('/v1/reports/recommendations')).status, 403);
  });

  test('the analytics process is started again after a kill, even if its folder was deleted', async () => {
    const api = await server.newApi();
    await api.upload('tags', [leastRecord('tags')]);
    assert.deepEqual((await query(api, 'SELECT count(*) FROM tags')).rows, [[1]]);
    const [analytics] = await childrenOf(server.headgate.process.pid!);
    const others = await childrenOf(analytics!);
    process.kill(analytics!, 'SIGKILL');
    await waitUntil('all have ended', async () => ![analytics!, ...others].some(isRunning));
    rmSync(folder, { recursive: true });
    await waitUntil('queries run again', async () => {
      const { status, text } = await api.request('/v1/sql', { body: { sql: 'SELECT count(*) FROM tags' } });
      return status === 200 && text.includes('[[1]]');
    });
  });

  test('a copy can be opened again if the analytics process was killed while its process was stopped', async () => {
    const api = await server.newApi();
    await query(api, 'SELECT 1');
    const [analytics] = await childrenOf(server.headgate.process.pid!);
    const others = await childrenOf(analytics!);
    for (const other of others) process.kill(other, 'SIGSTOP');
    process.kill(analytics!, 'SIGKILL');
    assert.deepEqual((await query(api, 'SELECT 1')).rows, [[1]]);
    await waitUntil('the earlier processes have ended', async () => !others.some(isRunning));
  });

  test('if memory is used up, Linux ends the analytics process, not the server', {
    skip: !existsSync('/proc/self/oom_score_adj') && 'this system has no scores',
  }, async () => {
    const scoreOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
    await query(await server.newApi(), 'SELECT 1');
    const pid = server.headgate.process.pid!;
    const [analytics] = await childrenOf(pid);
    assert.equal(scoreOf(analytics!), 1000);
    assert.equal(scoreOf(pid), scoreOf(process.pid));
  });

  test('the analytics process ends soon after the server, also while more organisations query than there are places', async () => {
    const { database, remove } = await store.newDatabase();
    const own = `${folder}-full`;
    const headgate = await startHeadgate(database, { HEADGATE_ANALYTICS_DIR: own });
    try {
      const keys = await Promise.all(Array.from({ length: 6 }, () => headgate.newKey()));
      const apis = keys.map(({ key }) => apiOf(headgate.url, key));
      for (const api of apis) await query(api, 'SELECT 1');
      const slow = {
        sql: 'SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b WHERE a.range > b.range',
      };
      const running = apis.flatMap((api) => [1, 2, 3].map(() => api.request('/v1/sql', { body: slow })));
      const allFail = Promise.all(running.map((reply) => assert.rejects(reply)));
      await sleep(500);
      const [analytics] = await childrenOf(headgate.process.pid!);
      const others = await childrenOf(analytics!);
      await headgate.kill();
      await allFail;
      await waitUntil('all have ended', async () => ![analytics!, ...others].some(isRunning));
    } finally {
      await headgate.kill();
      await remove();
      rmSync(own, { recursive: true, force: true });
    }
  });

  test('the analytics process ends with the server', async () => {
    const { database, remove } = await store.newDatabase();
    const own = `${folder}-own`;
    const headgate = await startHeadgate(database, { HEADGATE_ANALYTICS_DIR: own });
    try {
      const { key } = await headgate.newKey();
      await query(apiOf(headgate.url, key), 'SELECT 1');
      const [analytics] = await childrenOf(headgate.process.pid!);
      const others = await childrenOf(analytics!);
      // Two plan queries, one has the replica, and one is for the next organisation.
      assert.ok(others.length >= 3, `${others.length} processes`);
      await headgate.stop();
      await waitUntil('all have ended', async () => ![analytics!, ...others].some(isRunning));
    } finally {
      await headgate.kill();
      await remove();
      rmSync(own, { recursive: true, force: true });
    }
  });
});

describe('analytics on SQLite', () => {
  const store = testDatabases[0]!;
  const on = runningHeadgate(store);
  const off = runningHeadgate(store, { HEADGATE_ANALYTICS: 'off' });
  const hurried = runningHeadgate(store, { HEADGATE_SQL_TIMEOUT: '1s' });
  /** The folder of `on`. */
  const folder = (): string => join(dirname(on.headgate.database.replace('sqlite:', '')), 'analytics');

  test('a query that is not valid is refused with the place of the error', async () => {
    const api = await on.newApi();
    const sql = 'SELECT nam FROM shops';
    const { status, error, message, position } = await refused(api, { sql });
    assert.deepEqual({ status, error }, { status: 400, error: 'Bad Request' });
    assert.match(message, /"nam"/);
    assert.equal(position, sql.indexOf('nam'));
    assert.match((await refused(api, { sql: 'SELECT * FROM shop' })).message, /shops/);
    assert.match(
      (await refused(api, { sql: "SELECT * FROM read_text('/etc/passwd')" })).message,
      /read_text/,
    );
    for (const body of [
      {},
      [],
      { sql: 1 },
      { sql: '' },
      { sql: 'SELECT 1', parms: [] },
      { sql: 'SELECT ?', params: {} },
      { sql: 'SELECT ?', params: ['\ud800'] },
    ]) {
      assert.equal((await refused(api, body)).status, 400, JSON.stringify(body));
    }
    const infinite = await api.request('/v1/sql', { body: '{"sql": "SELECT ?", "params": [1e999]}' });
    assert.equal(infinite.status, 400, infinite.text);
    assert.match((await refused(api, { sql: 'SELECT 1', parms: [] })).message, /did you mean params/);
    assert.match(
      (await refused(api, { query: 'SELECT 1' })).message,
      /^The field "query" is not known; the body takes sql and params\.$/,
    );
    for (const [unreadable, says] of Object.entries({
      '{"sql": "SELECT 1", "sql": "SELECT 2"}': /has the key "sql" twice/,
      '{"sql": "SELECT 1"': /is not valid JSON/,
      [`{"sql": "SELECT 1", "params": [${'0,'.repeat(100_000)}0]}`]:
        /holds more than 33000 keys and elements/,
    })) {
      const { status: refusedWith, text } = await api.request('/v1/sql', { body: unreadable });
      assert.equal(refusedWith, 400, text);
      assert.match((JSON.parse(text) as RefusalBody).message, says);
    }
  });

  test('a key without the scope is refused', async () => {
    const { key } = await on.headgate.newKey('reader', ['data:read']);
    const { status, message } = await refused(apiOf(on.headgate.url, key), { sql: 'SELECT 1' });
    assert.equal(status, 403);
    assert.match(message, /analytics:read/);
  });

  test('a format that there is not is refused, with those that there are', async () => {
    const api = await on.newApi();
    const headers = { Accept: 'application/parquet' };
    const { status, body } = await api.request('/v1/sql', { headers, body: { sql: 'SELECT 1' } });
    assert.deepEqual([status, body.error], [406, 'Not Acceptable']);
    assert.match(body.message, /application\/vnd\.apache\.parquet/);
  });

  test('a result is sent as CSV, NDJSON or Parquet if the client accepts it', async () => {
    const api = await on.newApi();
    await api.upload('tags', [leastRecord('tags', { name: 'a, "b"' })]);
    const { key } = await on.headgate.newKey();
    const send = async (accept: string): Promise<{ type: string; bytes: Buffer }> => {
      const response = await fetch(`${on.headgate.url}/v1/sql`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', Accept: accept },
        body: JSON.stringify({ sql: 'SELECT 1 AS one, \'a, "b"\' AS text' }),
      });
      assert.equal(response.status, 200);
      const { seq, complete } = JSON.parse(response.headers.get('headgate-as-of')!) as SqlBody['as_of'];
      assert.deepEqual({ seq, complete }, { seq: 0, complete: true });
      return {
        type: response.headers.get('content-type')!,
        bytes: Buffer.from(await response.arrayBuffer()),
      };
    };
    const csv = await send('text/csv');
    assert.match(csv.type, /^text\/csv/);
    assert.equal(csv.bytes.toString(), 'one,text\n1,"a, ""b"""\n');
    const ndjson = await send('application/x-ndjson');
    assert.deepEqual(JSON.parse(ndjson.bytes.toString()), { one: 1, text: 'a, "b"' });
    const parquet = await send('application/vnd.apache.parquet');
    assert.equal(parquet.type, 'application/vnd.apache.parquet');
    assert.equal(parquet.bytes.subarray(0, 4).toString(), 'PAR1');
  });

  test('CSV for a spreadsheet has no formulas, and other formats cannot be asked for it', async () => {
    const api = await on.newApi();
    const body = { sql: 'SELECT \'=1+1\' AS "=a", -5 AS n' };
    const send = (value: string, accept: string) =>
      api.request(`/v1/sql?spreadsheet_safe=${value}`, { headers: { accept }, body });
    assert.equal((await send('true', 'text/csv')).text, "'=a,n\n'=1+1,-5\n");
    assert.equal((await send('false', 'text/csv')).text, '=a,n\n=1+1,-5\n');
    for (const accept of ['application/json', 'application/x-ndjson', 'application/vnd.apache.parquet']) {
      const refusal = await send('true', accept);
      assert.equal(refusal.status, 400);
      assert.equal(refusal.body.message, 'spreadsheet_safe is for CSV; send the header Accept: text/csv.');
      assert.equal((await send('false', accept)).status, 200);
    }
    const { status, body: refusal } = await send('yes', 'text/csv');
    assert.deepEqual([status, refusal.message], [400, 'spreadsheet_safe must be true or false, not "yes".']);
  });

  test('a JSON response has a limited number of rows, the other formats have none', async () => {
    const api = await on.newApi();
    const sql = 'SELECT range FROM range(12345)';
    const { rows, row_count, truncated } = await query(api, sql);
    assert.deepEqual([rows.length, row_count, truncated], [10_000, 10_000, true]);
    const numbers = Array.from({ length: 12_345 }, (_, n) => n);
    const linesOf = async (accept: string): Promise<string[]> =>
      (await api.request('/v1/sql', { body: { sql }, headers: { accept } })).text.trimEnd().split(/\r?\n/);
    assert.deepEqual(await linesOf('text/csv'), ['range', ...numbers.map(String)]);
    assert.deepEqual(
      await linesOf('application/x-ndjson'),
      numbers.map((range) => JSON.stringify({ range })),
    );
  });

  test('a client that leaves ends its query', async () => {
    const { key } = await on.headgate.newKey();
    const api = apiOf(on.headgate.url, key);
    await query(api, 'SELECT 1');
    const startedAtMs = performance.now();
    const connections = await Promise.all(Array.from({ length: 4 }, () => connectRaw(on.headgate.url)));
    for (const connection of connections) {
      connection.send({
        method: 'POST',
        path: '/v1/sql',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ sql: ENDLESS }),
      });
    }
    let waiting = Promise.resolve<SqlBody | null>(null);
    await waitUntil('the four queries run and a fifth one waits', async () => {
      waiting = query(api, 'SELECT 1');
      return (await Promise.race([waiting, sleep(1000, null)])) === null;
    });
    for (const connection of connections) connection.destroy();
    assert.deepEqual((await waiting)?.rows, [[1]]);
    // Otherwise the queries may have ended because they took too long.
    assert.ok(performance.now() - startedAtMs < LONGEST_QUERY_MS);
  });

  test('a client that leaves before it has read a Parquet file is no failure for the log', async () => {
    const { key, org_id: orgId } = await on.headgate.newKey();
    const leaving = new AbortController();
    const { status, body } = await fetch(`${on.headgate.url}/v1/sql`, {
      method: 'POST',
      headers: {
        ...bearer(key),
        'Content-Type': 'application/json',
        Accept: 'application/vnd.apache.parquet',
      },
      body: JSON.stringify({ sql: 'SELECT md5(range::VARCHAR) FROM range(1000000)' }),
      signal: leaving.signal,
    });
    assert.equal(status, 200);
    await body!.getReader().read();
    const exports = join(folder(), readdirSync(folder()).find((name) => name.endsWith('.exports'))!);
    assert.equal(readdirSync(exports).length, 1);
    leaving.abort();
    await waitUntil('its file is deleted', async () => readdirSync(exports).length === 0);
    await query(apiOf(on.headgate.url, key), 'SELECT 1');
    await waitUntil('both are in the log', async () => {
      return on.headgate.output().split(`"org_id":"${orgId}"`).length > 2;
    });
    assert.doesNotMatch(on.headgate.output(), /premature/i);
  });

  test('a damaged copy is made again, and never gives a wrong result', async () => {
    const { key, org_id } = await on.headgate.newKey();
    const api = apiOf(on.headgate.url, key);
    await api.upload(
      'tags',
      Array.from({ length: 3000 }, (_, n) => leastRecord('tags', { name: `Tag ${n}` })),
    );
    const sql = 'SELECT count(*), count(DISTINCT name), min(length(name)) FROM tags';
    assert.deepEqual((await query(api, sql)).rows, [[3000, 3000, 5]]);
    const [analytics] = await childrenOf(on.headgate.process.pid!);
    process.kill(analytics!, 'SIGKILL');
    await waitUntil('it has ended', async () => !isRunning(analytics!));
    const path = join(folder(), `${org_id}.duckdb`);
    const bytes = readFileSync(path);
    for (let at = 3 * 4096; at < bytes.length; at += 997) bytes[at] = bytes[at]! ^ 0xff;
    writeFileSync(path, bytes);
    rmSync(`${path}.wal`, { force: true });
    await waitUntil('queries run again', async () => {
      const { status, body } = await api.request<SqlBody>('/v1/sql', { body: { sql } });
      if (status === 200) assert.deepEqual(body.rows, [[3000, 3000, 5]]);
      return status === 200;
    });
  });

  test('has its folder beside the database', async () => {
    const api = await on.newApi();
    await query(api, 'SELECT 1');
    assert.ok(existsSync(folder()));
  });

  test('says at once why it cannot start, without the paths of the server', async () => {
    const { database, remove } = await store.newDatabase();
    const file = join(dirname(database.replace('sqlite:', '')), 'file');
    writeFileSync(file, '');
    const headgate = await startHeadgate(database, { HEADGATE_ANALYTICS_DIR: join(file, 'analytics') });
    try {
      const api = apiOf(headgate.url, (await headgate.newKey()).key);
      const startedAtMs = performance.now();
      const { status, message } = await refused(api, { sql: 'SELECT 1' });
      assert.ok(performance.now() - startedAtMs < 5000);
      assert.equal(status, 503);
      assert.match(message, /ENOTDIR.*HEADGATE_ANALYTICS_DIR/);
      assert.doesNotMatch(message, /tmp/);
      rmSync(file);
      mkdirSync(join(file, 'analytics'), { recursive: true });
      // It cannot be opened as a lock.
      mkdirSync(
        `${socketPath({ database: database.replace('sqlite:', ''), folder: join(file, 'analytics') })}.lock`,
      );
      assert.match((await refused(api, { sql: 'SELECT 1' })).message, /unable to open database file/);
    } finally {
      await headgate.kill();
      await remove();
    }
  });

  test('says at once that DuckDB cannot be loaded, and does not log it for every query', async () => {
    const { database, remove } = await store.newDatabase();
    const headgate = await startHeadgate(database, { NODE_OPTIONS: '--no-addons' });
    try {
      const api = apiOf(headgate.url, (await headgate.newKey()).key);
      for (let n = 0; n < 20; n++) {
        const startedAtMs = performance.now();
        const { status, message } = await refused(api, { sql: 'SELECT 1' });
        assert.ok(performance.now() - startedAtMs < 3000);
        assert.equal(status, 503);
        assert.equal(message, 'Analytics is not available: DuckDB cannot be loaded');
      }
      const logged = headgate.output().match(/"message":"analytics: .*?"/g);
      assert.ok(logged !== null && logged.length <= 6, logged?.join('\n'));
      assert.match(logged[0]!, /Cannot load native addon/);
    } finally {
      await headgate.kill();
      await remove();
    }
  });

  test('can be switched off', async () => {
    const { status, message } = await refused(await off.newApi(), { sql: 'SELECT 1' });
    assert.equal(status, 404);
    assert.match(message, /HEADGATE_ANALYTICS/);
  });

  test('a query that takes too long ends with an error, and others run on', async () => {
    const api = await hurried.newApi();
    await query(api, 'SELECT 1');
    const slow = refused(api, { sql: ENDLESS });
    assert.deepEqual((await query(api, 'SELECT 1')).rows, [[1]]);
    const { status, message } = await slow;
    assert.equal(status, 400);
    assert.match(message, /1 s/);
  });

  /** Begins a query with a large result for each key, and reads nothing of it. */
  const unreadResults = async (keys: readonly string[]): Promise<{ end(): void }> => {
    const over = new AbortController();
    const body = JSON.stringify({ sql: 'SELECT range, md5(range::VARCHAR) FROM range(100000000)' });
    const responses = await Promise.all(
      keys.map((key) =>
        fetch(`${on.headgate.url}/v1/sql`, {
          method: 'POST',
          headers: { ...bearer(key), 'Content-Type': 'application/json', Accept: 'application/x-ndjson' },
          body,
          signal: over.signal,
        }),
      ),
    );
    return {
      end() {
        // The responses are used until here, because the garbage collector ends those that nobody has.
        for (const { status } of responses) assert.equal(status, 200);
        over.abort();
      },
    };
  };

  test('clients of four organisations that do not read their results do not keep a fifth waiting', async () => {
    const keys = await Promise.all(Array.from({ length: 4 }, () => on.headgate.newKey()));
    const unread = await unreadResults(keys.map(({ key }) => key));
    const api = await on.newApi();
    const startedAtMs = performance.now();
    await query(api, 'SELECT 1');
    const tookMs = performance.now() - startedAtMs;
    unread.end();
    // Without the limit for slow clients, it waits as long as a query may take, which is 30 s.
    assert.ok(tookMs < 15_000, `it waited for ${tookMs} ms`);
  });

  test('a query whose key is revoked while it waits for a slot does not run', async () => {
    const { key, key_id: keyId, org_id: orgId } = await on.headgate.newKey();
    const other = await on.headgate.anotherKey(orgId, []);
    const unread = await unreadResults(new Array<string>(4).fill(other.key));
    const api = apiOf(on.headgate.url, key);
    const waiting = refused(api, { sql: 'SELECT 1' });
    // A key is checked again only for a request that is older.
    const oldEnough = sleep(1500);
    await on.headgate.command('keys', 'revoke', keyId);
    await waitUntil('the key is revoked', async () => (await api.request('/v1/usage')).status === 401);
    await oldEnough;
    unread.end();
    assert.equal((await waiting).status, 401);
  });

  test('the condition of a segment is checked only when one of four queries has ended', async () => {
    const api = await hurried.newApi();
    await query(api, 'SELECT 1');
    const ended: string[] = [];
    const queries = Array.from({ length: 4 }, () =>
      refused(api, { sql: ENDLESS }).then(() => ended.push('query')),
    );
    await sleep(500);
    const preview = await api.request('/v1/segments/preview', { body: { condition: { wrong: 1 } } });
    assert.equal(preview.status, 400);
    assert.notEqual(ended.length, 0);
    await Promise.all(queries);
  });

  test('a query that DuckDB does not stop ends with its process, and those of others run on', async () => {
    const [api, other] = [await hurried.newApi(), await hurried.newApi()];
    await query(other, 'SELECT 1');
    const { status, message } = await refused(api, UNSTOPPABLE);
    assert.equal(status, 400);
    assert.match(message, /1 s/);
    const isPaused = /a query could not be stopped; its analytics is paused for 30 s/;
    await waitUntil('its process has ended', async () => isPaused.test(hurried.headgate.output()));
    assert.match((await refused(api, { sql: 'SELECT 1' })).message, /paused for this organisation/);
    assert.deepEqual((await query(other, 'SELECT 1')).rows, [[1]]);
  });

  test('a long query gives way to those of another organisation', async () => {
    const [api, other] = [await on.newApi(), await on.newApi()];
    await Promise.all([query(api, 'SELECT 1'), query(other, 'SELECT 1')]);
    const [analytics] = await childrenOf(on.headgate.process.pid!);
    let suspended = 0;
    const look = async (): Promise<void> => {
      const endMs = performance.now() + 20_000;
      while (suspended === 0 && performance.now() < endMs)
        suspended += (await stoppedChildrenOf(analytics!)).length;
    };
    const ask = async (): Promise<void> => {
      while (suspended === 0)
        await query(other, 'SELECT count(*) FROM range(50000000) WHERE sqrt(range) > 3');
    };
    const long = query(api, 'SELECT count(*) FROM range(500000000) WHERE sqrt(range) > 3');
    await Promise.race([Promise.all([look(), ask()]), long]);
    assert.notEqual(suspended, 0);
    assert.deepEqual((await long).rows, [[499_999_990]]);
    assert.deepEqual(await stoppedChildrenOf(analytics!), []);
  });

  test('a query that has not begun to answer runs again if the analytics process ends', async () => {
    const api = await on.newApi();
    await api.upload('tags', [leastRecord('tags')]);
    await query(api, 'SELECT 1');
    const [analytics] = await childrenOf(on.headgate.process.pid!);
    const ROWS = times(200_000_000, 80_000_000);
    const counted = `SELECT (SELECT count(*) FROM tags), count(*) FROM range(${ROWS}) WHERE sqrt(range) > 3`;
    const loggedBefore = on.headgate.output().length;
    const running = query(api, counted);
    // The query has arrived, and has not ended even on a fast machine.
    await sleep(300);
    process.kill(analytics!, 'SIGKILL');
    assert.deepEqual((await running).rows, [[1, ROWS - 10]]);
    assert.equal(isRunning(analytics!), false);
    assert.ok(!on.headgate.output().slice(loggedBefore).includes('built anew'));
  });

  test('clients that leave at any moment free their slots', async () => {
    const { key } = await on.headgate.newKey();
    const api = apiOf(on.headgate.url, key);
    await query(api, 'SELECT 1');
    const accepts = ['application/json', 'application/x-ndjson', 'application/vnd.apache.parquet'];
    const leave = async (n: number): Promise<void> => {
      const sql = `SELECT range, md5(range::VARCHAR) FROM range(${10 ** (3 + (n % 4))}) WHERE range >= ${n}`;
      await fetch(`${on.headgate.url}/v1/sql`, {
        method: 'POST',
        headers: { ...bearer(key), 'Content-Type': 'application/json', Accept: accepts[n % 3]! },
        body: JSON.stringify({ sql }),
        signal: AbortSignal.timeout(1 + ((n * 7) % 60)),
      })
        .then((response) => response.arrayBuffer())
        .catch(() => {});
    };
    for (let n = 0; n < times(400, 80); n += 8) {
      await Promise.all(Array.from({ length: 8 }, (_, more) => leave(n + more)));
    }
    const slow = 'SELECT count(*) FROM range(20000000) WHERE sqrt(range) > 3';
    const replies = await Promise.all(Array.from({ length: 4 }, () => query(api, slow)));
    assert.equal(replies.length, 4);
    await waitUntil('no Parquet file is left', async () =>
      readdirSync(folder())
        .filter((name) => name.endsWith('.exports'))
        .every((name) => readdirSync(join(folder(), name)).length === 0),
    );
  });

  test('results that are not read to their end do not damage the replicas of organisations that take turns', async () => {
    const [first, ...others] = await Promise.all(Array.from({ length: 6 }, () => on.newApi()));
    await first!.upload('tags', [leastRecord('tags')]);
    const loggedBefore = on.headgate.output().length;
    for (let round = 0; round < 3; round++) {
      const { truncated } = await query(first!, 'SELECT tags.* FROM tags, range(100000)');
      assert.equal(truncated, true);
      for (const other of others) assert.deepEqual((await query(other, 'SELECT 1')).rows, [[1]]);
    }
    assert.doesNotMatch(on.headgate.output().slice(loggedBefore), /built anew|paused|"level":"error"/);
  });

  test('the folder may be deleted while the process runs', async () => {
    const api = await on.newApi();
    for (let n = 1; n <= 2; n++) {
      await api.upload('tags', [leastRecord('tags')]);
      assert.deepEqual((await query(api, 'SELECT count(*) FROM tags')).rows, [[n]]);
      const [analytics] = await childrenOf(on.headgate.process.pid!);
      rmSync(folder(), { recursive: true });
      assert.deepEqual((await query(api, 'SELECT count(*) FROM tags')).rows, [[n]]);
      await waitUntil('the process without a folder has ended', async () => !isRunning(analytics!));
    }
  });

  test('the folders for temporary files and exports may be deleted while the process runs', async () => {
    const api = await on.newApi();
    for (const suffix of ['.exports', '.temporary']) {
      await query(api, 'SELECT 1');
      const [analytics] = await childrenOf(on.headgate.process.pid!);
      const [deleted] = readdirSync(folder()).filter((name) => name.endsWith(suffix));
      rmSync(join(folder(), deleted!), { recursive: true });
      await waitUntil('the process has ended', async () => !isRunning(analytics!));
      const headers = { accept: 'application/vnd.apache.parquet' };
      const { status, text } = await api.request('/v1/sql', { body: { sql: 'SELECT 1' }, headers });
      assert.equal(status, 200, text);
    }
  });

  test('a copy that is cut off while it is open is made again', async () => {
    const { key, org_id } = await on.headgate.newKey();
    const api = apiOf(on.headgate.url, key);
    const tags = Array.from({ length: 5000 }, () => leastRecord('tags', { name: randomUUID() }));
    await api.upload('tags', tags);
    const sql = 'SELECT count(DISTINCT name) FROM tags';
    assert.deepEqual((await query(api, sql)).rows, [[5000]]);
    // The next process has read nothing of the file yet.
    const [analytics] = await childrenOf(on.headgate.process.pid!);
    process.kill(analytics!, 'SIGTERM');
    await waitUntil('it has ended', async () => !isRunning(analytics!));
    await query(api, 'SELECT 1');
    truncateSync(join(folder(), `${org_id}.duckdb`), 3 * 4096);
    const damaged = await api.request<RefusalBody>('/v1/sql', { body: { sql } });
    assert.equal(damaged.status, 503, damaged.text);
    assert.match(damaged.body.message, /was damaged and is made again/);
    assert.deepEqual((await query(api, sql)).rows, [[5000]]);
  });
});
