// /metrics: what it counts, what it never shows, and where it is served.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { metricTable } from '../server/observe/metric-table.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { apiOf } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { growth, lineOf, metricsUrl, type Samples, scrape } from './harness/observed.ts';
import { bearer, connectRaw } from './harness/raw-connection.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const withMetrics = { HEADGATE_METRICS_PORT: '0' };

forEachStore((store) => {
  const server = runningHeadgate(store, withMetrics);

  /** Returns by how much the series of these metrics grew during the work. */
  const grownBy = async (
    work: () => Promise<unknown>,
    ...names: string[]
  ): Promise<Record<string, number>[]> => {
    const beforehand = await scrape(server.headgate);
    await work();
    let afterwards: Samples = beforehand;
    // A request is over for the client a moment before it is counted.
    await waitUntil('no request is in progress', async () => {
      afterwards = await scrape(server.headgate);
      return afterwards.get('headgate_requests_in_progress') === 0;
    });
    return names.map((name) => growth(beforehand, afterwards, name));
  };

  it('counts records by type and outcome, reasons by code, and the time of the write', async () => {
    const api = await server.newApi();
    const known = leastRecord('shops');
    await api.upload('shops', [known]);
    const [records, rejections, uploads, requests, writes] = await grownBy(
      () =>
        api.upload('shops', [
          known,
          { ...known, name: 'renamed', updated: '2024-05-02T09:30:00Z' },
          leastRecord('shops'),
          leastRecord('shops', { name: 7, region: 'nowhere' }),
        ]),
      'headgate_records_total',
      'headgate_rejections_total',
      'headgate_uploads_total',
      'headgate_requests_total',
      'headgate_store_write_duration_seconds_count',
    );
    assert.deepEqual(records, {
      '{type="shops",outcome="created"}': 1,
      '{type="shops",outcome="updated"}': 1,
      '{type="shops",outcome="unchanged"}': 1,
      '{type="shops",outcome="rejected"}': 1,
    });
    assert.deepEqual(rejections, { '{code="wrong_type"}': 1, '{code="invalid_format"}': 1 });
    assert.deepEqual(uploads, { '{type="shops",outcome="partly_accepted"}': 1 });
    assert.deepEqual(requests, { '{method="POST",route="/v1/data/{type}",status="207"}': 1 });
    assert.deepEqual(writes, { '{kind="upload"}': 1 });
  });

  it('counts neither a dry run nor a replay as records', async () => {
    const api = await server.newApi();
    const headers = { 'Idempotency-Key': randomUUID() };
    const records = [leastRecord('shops'), leastRecord('shops', { name: 7 })];
    const [grown, rejections, uploads, writes] = await grownBy(
      async () => {
        await api.upload('shops', records, { query: '?dry_run=true' });
        await api.upload('shops', records, { headers });
        const { headers: replayed } = await api.upload('shops', records, { headers });
        assert.equal(replayed.get('Idempotency-Replayed'), 'true');
      },
      'headgate_records_total',
      'headgate_rejections_total',
      'headgate_uploads_total',
      'headgate_store_write_duration_seconds_count',
    );
    assert.deepEqual(grown, {
      '{type="shops",outcome="created"}': 1,
      '{type="shops",outcome="rejected"}': 1,
    });
    assert.deepEqual(rejections, { '{code="wrong_type"}': 1 });
    assert.deepEqual(uploads, {
      '{type="shops",outcome="partly_accepted"}': 1,
      '{type="shops",outcome="replayed"}': 1,
      '{type="shops",outcome="dry_run"}': 1,
    });
    assert.deepEqual(writes, { '{kind="upload"}': 1 });
  });

  it('counts interactions by outcome', async () => {
    const api = await server.newApi();
    const shop = leastRecord('shops');
    await api.upload('shops', [shop]);
    const interaction = {
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: 1_714_555_800,
    };
    const headers = { 'Idempotency-Key': randomUUID() };
    const [interactions, rejections, writes] = await grownBy(
      async () => {
        await api.record(interaction, headers);
        await api.record(interaction, headers);
        await api.record({ ...interaction, item_id: randomUUID() });
        await api.record('{"not":"json');
      },
      'headgate_interactions_total',
      'headgate_rejections_total',
      'headgate_store_write_duration_seconds_count',
    );
    assert.deepEqual(interactions, {
      '{outcome="recorded"}': 1,
      '{outcome="refused"}': 1,
      '{outcome="replayed"}': 1,
    });
    assert.deepEqual(rejections, { '{code="unknown_reference"}': 1 });
    assert.deepEqual(writes, { '{kind="interaction"}': 1 });
  });
});

describe('/metrics on SQLite', () => {
  const server = runningHeadgate(testDatabases[0]!, withMetrics);

  it('serves every metric that is declared, with its help and its type', async () => {
    const text = await (await fetch(metricsUrl(server.headgate))).text();
    for (const { name, type, help } of Object.values(metricTable)) {
      assert.ok(text.includes(`\n# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), name);
    }
    const samples = await scrape(server.headgate);
    for (const name of ['process_resident_memory_bytes', 'process_open_fds', 'process_start_time_seconds']) {
      assert.ok(samples.get(name)! > 0, name);
    }
    assert.match(text, /^headgate_build_info\{version="[^"]+",store="sqlite",node="v\d[^"]+"\} 1$/m);
    assert.ok(samples.get('headgate_event_loop_delay_seconds{stat="p50"}')! < 1);
  });

  it('is not served on the public port, and its own port serves nothing else', async () => {
    const { status } = await apiOf(server.headgate.url, null).request('/metrics');
    assert.equal(status, 404);
    const url = metricsUrl(server.headgate);
    assert.equal((await fetch(url.replace('/metrics', '/v1/data/shops'))).status, 404);
    assert.equal((await fetch(url, { method: 'POST' })).status, 405);
    assert.equal((await fetch(url, { method: 'HEAD' })).status, 200);
  });

  it('has no label with a value that a client chose', async () => {
    const secret = `secret-${randomUUID()}`;
    const api = await server.newApi();
    await api.request(`/${secret}?${secret}=${secret}`);
    await api.request(`/v1/data/${secret}`);
    await api.request(`/v1/data/shops/${secret}`);
    await api.request(`/v1/data/shops?cursor=${secret}`, { headers: { 'User-Agent': secret } });
    const connection = await connectRaw(server.headgate.url);
    connection.send({ method: 'PURGE', path: `/${secret}` });
    assert.equal((await connection.answer()).status, 404);
    connection.write(`${secret} / HTTP/1.1\r\n\r\n`);
    assert.equal((await connection.answer()).status, 400);
    await waitUntil('all are counted', async () =>
      (await scrape(server.headgate)).has(
        'headgate_requests_total{method="OTHER",route="unparsed",status="400"}',
      ),
    );
    const samples = await scrape(server.headgate);
    assert.deepEqual(
      [...samples.keys()].filter((series) => series.includes(secret.slice(0, 10))),
      [],
    );
    assert.equal(samples.get('headgate_requests_total{method="GET",route="unmatched",status="404"}'), 2);
    assert.equal(samples.get('headgate_requests_total{method="OTHER",route="unmatched",status="404"}'), 1);
    assert.equal(
      samples.get('headgate_requests_total{method="GET",route="/v1/data/{type}",status="404"}'),
      1,
    );
  });

  it('counts and logs requests that are refused before routing', async () => {
    const connection = await connectRaw(server.headgate.url);
    connection.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
    const { status, headers, text } = await connection.answer();
    await connection.ended;
    assert.equal(status, 405);
    assert.equal(headers.get('allow'), 'HEAD, GET, POST');
    assert.equal(JSON.parse(text).error, 'Method Not Allowed');
    const { route, method, code } = await lineOf(server.headgate, headers.get('x-request-id')!);
    assert.deepEqual([route, method, code], ['unparsed', 'OTHER', 'method_not_allowed']);
    const series = 'headgate_requests_total{method="OTHER",route="unparsed",status="405"}';
    assert.equal((await scrape(server.headgate)).get(series), 1);
  });

  it('survives a client that disconnects right after a CONNECT', async () => {
    const socket = connect(Number(new URL(server.headgate.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
    socket.resetAndDestroy();
    assert.equal((await fetch(`${server.headgate.url}/livez`)).status, 200);
  });

  it('shows bytes and requests in flight, and counts a request that is cut off', async () => {
    const { key } = await server.headgate.newKey();
    const body = JSON.stringify({ records: [leastRecord('shops')] });
    const connection = await connectRaw(server.headgate.url);
    await connection.sendAllButTheLastByte({ path: '/v1/data/shops', headers: bearer(key), body });
    const held = Buffer.byteLength(body) - 1;
    await waitUntil('the body is held', async () => {
      const samples = await scrape(server.headgate);
      return (
        samples.get('headgate_in_flight_bytes') === held &&
        samples.get('headgate_requests_in_progress') === 1 &&
        samples.get('headgate_in_flight_limit_bytes') === 256 * 1024 * 1024
      );
    });
    connection.destroy();
    const cutOff = 'headgate_requests_total{method="POST",route="/v1/data/{type}",status="cut_off"}';
    await waitUntil('it is over', async () => {
      const samples = await scrape(server.headgate);
      return samples.get('headgate_in_flight_bytes') === 0 && samples.get(cutOff) === 1;
    });
  });
});

describe('the metrics port', () => {
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  let headgate: Headgate;
  before(async () => {
    folder = await newDatabaseFolder();
    headgate = await startHeadgate(`${folder.folder}/headgate.db`);
  });
  after(async () => {
    await headgate.stop();
    await folder.remove();
  });

  it('is closed by default', () => {
    assert.doesNotMatch(headgate.output(), /metrics/);
  });

  it('if in use, is refused in one sentence that names the setting', async () => {
    const { exitCode, stderr } = await failedHeadgate(['serve', '--port', '0'], {
      ...process.env,
      HEADGATE_DATABASE: `${folder.folder}/other.db`,
      HEADGATE_METRICS_PORT: new URL(headgate.url).port,
    });
    assert.equal(exitCode, 1);
    assert.match(stderr, oneSentence);
    assert.match(stderr, /is taken by another program; give another with HEADGATE_METRICS_PORT\n$/);
  });
});
