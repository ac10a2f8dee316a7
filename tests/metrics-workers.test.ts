// /metrics of several workers: one port, the sum of all, and counts that never fall.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { testDatabases } from '../server/store/test-databases.ts';
import { growth, type Samples, scrape } from './harness/observed.ts';
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
    // Each on a connection of its own, so that all workers get some.
    const send = async (): Promise<void> => {
      const response = await fetch(url, { headers: { Connection: 'close' } });
      await response.arrayBuffer();
    };
    await Promise.all(Array.from({ length: REQUESTS }, send));
  };

  it('is the sum of what each counts', async () => {
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
      return (
        samples.get('headgate_workers') === WORKERS &&
        server.headgate.output().includes('serves in its place')
      );
    });
    await sendRequests();
    await waitUntil(
      'all are counted',
      async () => (await scrape(server.headgate)).get(counted) === 3 * REQUESTS,
    );
  });
});
