// /metrics of several workers: one port, the sum of all, and counts that never fall.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../server/store/postgres/test-server.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { startHeadgate } from './harness/headgate.ts';
import { growth, metricsUrl, type Samples, scrape } from './harness/observed.ts';
import { connectRaw } from './harness/raw-connection.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';
import { childrenOf } from './harness/worker-processes.ts';

const WORKERS = 2;
const REQUESTS = 30;
const counted = 'headgate_requests_total{method="GET",route="unmatched",status="404"}';

describe('/metrics of several workers', () => {
  const server = runningHeadgate(testDatabases[1]!, {
    HEADGATE_WORKERS: String(WORKERS),
    HEADGATE_METRICS_PORT: '0',
  });
  const sendRequests = async (): Promise<void> => {
    const url = `${server.headgate.url}/nowhere`;
    // Each request has a connection of its own, so that all workers get some.
    const send = async (): Promise<void> => {
      const response = await fetch(url, { headers: { Connection: 'close' } });
      await response.arrayBuffer();
    };
    await Promise.all(Array.from({ length: REQUESTS }, send));
  };

  it('is the sum over all workers', async () => {
    const before = await scrape(server.headgate);
    assert.equal(before.get('headgate_workers'), WORKERS);
    assert.equal(before.get('headgate_in_flight_limit_bytes'), WORKERS * 256 * 1024 * 1024);
    await sendRequests();
    let after: Samples = before;
    await waitUntil('all are counted', async () => {
      after = await scrape(server.headgate);
      return (after.get(counted) ?? 0) >= REQUESTS;
    });
    assert.equal(after.get(counted), REQUESTS);
    const [bucket] = Object.entries(growth(before, after, 'headgate_request_duration_seconds_count'));
    assert.deepEqual(bucket, ['{method="GET",route="unmatched"}', REQUESTS]);
  });

  it('does not fall when a worker is lost and replaced', async () => {
    await sendRequests();
    await waitUntil(
      'all are counted',
      async () => (await scrape(server.headgate)).get(counted) === 2 * REQUESTS,
    );
    const [victim] = await childrenOf(server.headgate.process.pid!);
    process.kill(victim!, 'SIGKILL');
    await waitUntil('another serves in its place', async () => {
      const samples = await scrape(server.headgate);
      assert.equal(samples.get(counted), 2 * REQUESTS);
      return samples.get('headgate_workers') === WORKERS && server.headgate.output().includes('replaces it');
    });
    await sendRequests();
    await waitUntil(
      'all are counted',
      async () => (await scrape(server.headgate)).get(counted) === 3 * REQUESTS,
    );
  });

  it('is served, and the primary survives, if a worker ends during the request', async () => {
    const { headgate } = server;
    const primary = headgate.process.pid!;
    const connection = await connectRaw(metricsUrl(headgate));
    try {
      for (let round = 0; round < times(3, 1); round++) {
        await waitUntil('all workers serve', async () => {
          return (await scrape(headgate)).get('headgate_workers') === WORKERS;
        });
        // When it continues, the primary finds the request and the end of its worker at once.
        const [victim] = await childrenOf(primary);
        process.kill(primary, 'SIGSTOP');
        connection.send({ path: '/metrics' });
        process.kill(victim!, 'SIGKILL');
        await sleep(50);
        process.kill(primary, 'SIGCONT');
        assert.equal((await connection.answer()).status, 200);
      }
      assert.equal(headgate.process.exitCode, null, headgate.output());
    } finally {
      connection.destroy();
    }
  });

  it('may be requested before the workers can respond', async () => {
    const { database, remove } = await testDatabases[1]!.newDatabase();
    const port = await freePort();
    const environment = { HEADGATE_WORKERS: String(WORKERS), HEADGATE_METRICS_PORT: String(port) };
    const starting = startHeadgate(database, environment);
    const asked: Promise<unknown>[] = [];
    const asking = setInterval(() => {
      const answer = fetch(`http://127.0.0.1:${port}/metrics`);
      // Connections are refused until the port is open.
      asked.push(
        answer.then(
          (response) => response.arrayBuffer(),
          () => {},
        ),
      );
    }, 20);
    try {
      const headgate = await starting;
      assert.match(headgate.url, /^http:/);
      assert.equal((await fetch(`${headgate.url}/livez`)).status, 200);
      assert.equal((await scrape(headgate)).get('headgate_workers'), WORKERS);
    } finally {
      clearInterval(asking);
      await Promise.all(asked);
      await (await starting.catch(() => null))?.stop();
      await remove();
    }
  });
});
