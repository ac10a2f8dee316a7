// The log has a line for every request, whatever its outcome, without any content from clients.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { apiOf } from './harness/api.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { type LogLine, lineOf, logLines } from './harness/observed.ts';
import { bearer, connectRaw } from './harness/raw-connection.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

function cutOffLines(headgate: Headgate): readonly LogLine[] {
  return logLines(headgate).filter((line) => line.cut_off === true);
}

describe('a line per request', () => {
  const server = runningHeadgate(testDatabases[0]!);

  it('shows the outcome of an upload', async () => {
    const { key, key_id, org_id } = await server.headgate.newKey();
    const records = [leastRecord('shops'), leastRecord('shops', { name: 7 })];
    const { body } = await apiOf(server.headgate.url, key).upload('shops', records, {
      headers: { traceparent },
    });
    const { time, duration_ms, ...line } = await lineOf(server.headgate, body.request_id);
    assert.deepEqual(line, {
      level: 'info',
      request_id: body.request_id,
      trace_id: traceId,
      method: 'POST',
      route: '/v1/data/{type}',
      status: 207,
      org_id,
      key_id,
      type: 'shops',
      outcome: 'partly_accepted',
      counts: { received: 2, created: 1, updated: 0, unchanged: 0, rejected: 1 },
      codes: { wrong_type: 1 },
      bytes: Buffer.byteLength(JSON.stringify({ records })),
    });
    assert.ok(Math.abs(Date.parse(time as string) - Date.now()) < 60_000);
    assert.ok((duration_ms as number) > 0 && (duration_ms as number) < 60_000);
  });

  it('has the size of a query', async () => {
    const api = await server.newApi();
    const query = { sql: 'SELECT 1' };
    const { headers } = await api.request('/v1/sql', { body: query });
    const { bytes } = await lineOf(server.headgate, headers.get('x-request-id')!);
    assert.equal(bytes, Buffer.byteLength(JSON.stringify(query)));
  });

  it('describes an interaction, a read and a refusal', async () => {
    const api = await server.newApi();
    const shop = leastRecord('shops');
    await api.upload('shops', [shop]);
    const interaction = await api.record({
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: 1_714_555_800,
    });
    const read = await api.read('shops', shop.shop_id as string);
    const refused = await apiOf(server.headgate.url, 'hg_wrong').list('shops');
    const nowhere = await api.request('/nowhere');
    const unreadable = await api.request('/%zz');
    const idOf = ({ headers }: { headers: Headers }): string | null => headers.get('X-Request-Id');
    const recorded = await lineOf(server.headgate, idOf(interaction));
    assert.equal(recorded.outcome, 'recorded');
    assert.equal(recorded.route, '/user-interactions');
    assert.equal(recorded.trace_id, undefined);
    assert.equal((await lineOf(server.headgate, idOf(read))).route, '/v1/data/{type}/{id}');
    const { code, org_id, status, type } = await lineOf(server.headgate, idOf(refused));
    assert.deepEqual(
      { code, org_id, status, type },
      { code: 'unauthorized', org_id: undefined, status: 401, type: 'shops' },
    );
    assert.equal((await lineOf(server.headgate, idOf(nowhere))).route, 'unmatched');
    assert.equal((await lineOf(server.headgate, idOf(unreadable))).code, 'bad_request');
  });

  it('describes a request that the client cut off', async () => {
    const { key } = await server.headgate.newKey();
    const body = JSON.stringify({ records: [leastRecord('shops')] });
    const half = await connectRaw(server.headgate.url);
    await half.sendAllButTheLastByte({ path: '/v1/data/shops', headers: bearer(key), body });
    half.destroy();
    await waitUntil('its line is there', () => cutOffLines(server.headgate).length === 1);
    const [{ level, status, route, type, counts }] = cutOffLines(server.headgate) as [LogLine];
    assert.deepEqual(
      { level, status, route, type, counts },
      { level: 'info', status: null, route: '/v1/data/{type}', type: 'shops', counts: undefined },
    );
    assert.deepEqual(
      logLines(server.headgate).filter((line) => line.route === 'unparsed'),
      [],
    );
  });

  it('is not written for probes, unless they fail', async () => {
    const api = await server.newApi();
    const { headers } = await api.request('/livez');
    await api.request('/readyz');
    const { headers: later } = await api.list('shops');
    await lineOf(server.headgate, later.get('X-Request-Id'));
    const probed = logLines(server.headgate).filter(
      ({ request_id }) => request_id === headers.get('X-Request-Id'),
    );
    assert.deepEqual(probed, []);
  });

  it('ignores a traceparent that is malformed', async () => {
    const api = await server.newApi();
    for (const wrong of [
      traceId,
      traceparent.toUpperCase(),
      `ff${traceparent.slice(2)}`,
      `${traceparent}-more`,
      `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
      `00-${traceId}-${'0'.repeat(16)}-01`,
    ]) {
      const { status, headers } = await api.request('/v1/data/shops', { headers: { traceparent: wrong } });
      assert.equal(status, 200);
      assert.equal((await lineOf(server.headgate, headers.get('X-Request-Id'))).trace_id, undefined, wrong);
    }
    const { headers } = await api.request('/v1/data/shops', {
      headers: { traceparent: `cc${traceparent.slice(2)}-what-comes-later` },
    });
    assert.equal((await lineOf(server.headgate, headers.get('X-Request-Id'))).trace_id, traceId);
  });

  it('does not block the server if nobody reads the log', async () => {
    const { url, process: child } = server.headgate;
    child.stderr!.pause();
    const api = apiOf(url, null);
    // At least three times the capacity of a pipe.
    for (let round = 0; round < times(100, 50); round++) {
      await Promise.all(Array.from({ length: 20 }, () => api.request('/gone')));
    }
    assert.equal((await api.request('/livez')).status, 200);
    child.stderr!.resume();
  });
});

describe('a line of a request on PostgreSQL', () => {
  const server = runningHeadgate(testDatabases[1]!);

  it('is written when the work is done, even if the client has disconnected', async () => {
    const { key, key_id } = await server.headgate.newKey();
    const lock = new pg.Client(server.headgate.database);
    await lock.connect();
    try {
      await lock.query('BEGIN; LOCK TABLE shops IN EXCLUSIVE MODE');
      const connection = await connectRaw(server.headgate.url);
      connection.send({
        path: '/v1/data/shops',
        headers: bearer(key),
        body: JSON.stringify({ records: [leastRecord('shops')] }),
      });
      await waitUntil('the upload waits for the table', async () => {
        const { rows } = await lock.query(
          `SELECT 1 FROM pg_locks JOIN pg_database ON database = pg_database.oid
            WHERE datname = current_database() AND NOT granted AND locktype = 'relation'`,
        );
        return rows.length > 0;
      });
      connection.reset();
      assert.deepEqual(cutOffLines(server.headgate), []);
    } finally {
      await lock.query('ROLLBACK');
      await lock.end();
    }
    await waitUntil('its line is there', () => cutOffLines(server.headgate).length === 1);
    const [line] = cutOffLines(server.headgate) as [LogLine];
    assert.equal(line.status, 200);
    assert.equal(line.key_id, key_id);
    assert.equal(line.outcome, 'accepted');
    assert.equal((line.counts as { created: number }).created, 1);
  });
});

describe('a log at debug', () => {
  const server = runningHeadgate(testDatabases[0]!, { HEADGATE_LOG_LEVEL: 'debug' });

  it('never contains a key or anything else that a client sent', async () => {
    const { key, key_id } = await server.headgate.newKey();
    const secret = `SECRET${randomUUID().replaceAll('-', '')}`;
    const given = key.slice(`hg_${key_id}_`.length);
    const api = apiOf(server.headgate.url, key);
    const everywhere = {
      'User-Agent': secret,
      Referer: `http://${secret}/`,
      Cookie: `session=${secret}`,
      'X-Forwarded-For': secret,
      'X-Request-Id': secret,
      'Idempotency-Key': secret,
      Prefer: `handling=${secret}`,
      tracestate: `vendor=${secret}`,
      traceparent: secret,
    };
    const send = (path: string, body?: unknown, headers: Record<string, string> = {}): Promise<unknown> =>
      api.request(path, { ...(body === undefined ? {} : { body }), headers: { ...everywhere, ...headers } });
    const record = { ...leastRecord('shops'), name: secret, [secret]: secret };
    await send(`/${secret}/${key}?${secret}=${key}#${secret}`);
    await send(`/v1/data/${secret}?${key}`);
    await send(`/v1/data/shops/${secret}?key=${key}`);
    await send(`/v1/data/shops?cursor=${secret}&limit=${secret}`);
    await send(`/user-interactions?user_id=${secret}&item_id=${key}`);
    await send(`/%zz${secret}`);
    await send('/v1/data/shops', { records: [record] });
    await send('/v1/data/shops', { records: [record] }, { Prefer: 'handling=lenient' });
    await send('/v1/data/shops', `{"${secret}": "${key}`);
    await send('/v1/data/shops', gzipSync(secret), { 'Content-Encoding': 'gzip' });
    await send('/v1/data/shops', secret, { 'Content-Encoding': 'gzip' });
    await send('/v1/data/shops', secret, { 'Content-Type': secret });
    await send('/user-interactions', { interaction_type: secret, item_id: key, user_id: secret });
    await send('/v1/data/shops', undefined, { Authorization: `Bearer ${secret}` });
    await send('/v1/data/shops', undefined, { Authorization: `Basic ${btoa(key)}` });
    const raw = await connectRaw(server.headgate.url);
    raw.send({ method: 'PURGE', path: `/${secret}`, headers: { ...bearer(key), 'X-Other': secret } });
    await raw.answer();
    raw.write(`${secret} /${key} HTTP/1.1\r\n${secret}: ${key}\r\n\r\n`);
    await raw.answer();

    const { headers } = await api.list('shops');
    await lineOf(server.headgate, headers.get('X-Request-Id'));
    const lines = logLines(server.headgate);
    assert.ok(lines.length >= 17, `only ${lines.length} lines`);
    const text = JSON.stringify(lines).toLowerCase();
    for (const hidden of [secret, given, btoa(key)]) assert.ok(!text.includes(hidden.toLowerCase()), hidden);
    assert.ok(text.includes(key_id));
  });

  it('has a line for a probe', async () => {
    const { headers } = await apiOf(server.headgate.url, null).request('/livez');
    assert.equal((await lineOf(server.headgate, headers.get('X-Request-Id'))).level, 'debug');
  });
});

describe('the log of a server', () => {
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  before(async () => {
    folder = await newDatabaseFolder();
  });
  after(() => folder.remove());

  const withServer = async (
    environment: Readonly<Record<string, string>>,
    use: (headgate: Headgate) => Promise<void>,
  ): Promise<Headgate> => {
    const headgate = await startHeadgate(`${folder.folder}/headgate.db`, environment);
    try {
      await use(headgate);
    } finally {
      await headgate.stop();
    }
    return headgate;
  };

  it('is written completely at a stop', async () => {
    const ids: (string | null)[] = [];
    const headgate = await withServer({}, async ({ url }) => {
      const api = apiOf(url, null);
      for (let count = 0; count < 20; count++)
        ids.push((await api.request('/gone')).headers.get('X-Request-Id'));
    });
    assert.deepEqual(
      logLines(headgate).map((line) => line.request_id),
      ids,
    );
  });

  it('at warn has no line for a success', async () => {
    const headgate = await withServer({ HEADGATE_LOG_LEVEL: 'warn' }, async ({ url }) => {
      await apiOf(url, null).request('/gone');
    });
    assert.deepEqual(logLines(headgate), []);
  });

  it('is readable text if so configured', async () => {
    const headgate = await withServer({ HEADGATE_LOG_FORMAT: 'pretty' }, async (running) => {
      const { key } = await running.newKey();
      await apiOf(running.url, key).upload('shops', [leastRecord('shops')]);
    });
    assert.match(
      headgate.output(),
      /^\d\d:\d\d:\d\d\.\d{3} 200 POST \/v1\/data\/shops accepted: 1 created [0-9a-f-]{36} [\d.]+ ms$/m,
    );
  });
});
