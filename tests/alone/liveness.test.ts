// The service stays responsive under full load: its contract sets a limit in milliseconds.
// Run this file alone: other work on the same processors distorts the figures.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiOf } from '../harness/api.ts';
import { forEachStore } from '../harness/for-each-store.ts';
import { startHeadgate } from '../harness/headgate.ts';
import { timesOfLivezDuring } from '../harness/livez.ts';
import { idOf, leastRecord } from '../harness/records.ts';
import { type LoadOrder, startTransactionLoad } from '../harness/transaction-load.ts';

const LOAD_MS = 10_000;
const CLIENTS = 4;
const RECORDS_PER_UPLOAD = 5000;
const P99_LIMIT_MS = 50;
/** Other work on the machine only adds to the times, so the best of a few tries is the most accurate. */
const MOST_TRIES = 3;

forEachStore((store) => {
  test(`/livez responds within ${P99_LIMIT_MS} ms at the 99th percentile under full load`, async (t) => {
    const { database, remove } = await store.newDatabase();
    const headgate = await startHeadgate(database);
    try {
      const { key } = await headgate.newKey();
      const shop = leastRecord('shops');
      assert.equal((await apiOf(headgate.url, key).upload('shops', [shop])).status, 200);
      const order: LoadOrder = {
        url: headgate.url,
        key,
        shopId: idOf('shops', shop),
        clients: CLIENTS,
        recordsPerUpload: RECORDS_PER_UPLOAD,
        durationMs: LOAD_MS,
      };
      const p99sMs: number[] = [];
      while (p99sMs.length < MOST_TRIES && !p99sMs.some((p99Ms) => p99Ms <= P99_LIMIT_MS)) {
        const { p99Ms, figures } = await measureUnderLoad(order);
        t.diagnostic(figures);
        p99sMs.push(p99Ms);
      }
      const best = Math.min(...p99sMs);
      assert.ok(best <= P99_LIMIT_MS, `p99 is ${best.toFixed(1)} ms at best, of ${p99sMs.length} tries`);
    } finally {
      await headgate.kill();
      await remove();
    }
  });
});

async function measureUnderLoad(order: LoadOrder): Promise<{ p99Ms: number; figures: string }> {
  const { ended } = await startTransactionLoad(order);
  const times = await timesOfLivezDuring(order.url, async () => void (await ended));
  const { records, uploads, elapsedMs } = await ended;
  assert.ok(uploads >= CLIENTS * 2, 'there were too few uploads for a load');
  const figures =
    `/livez ${times.answers} times: p50 ${times.p50Ms.toFixed(1)} ms, ` +
    `p99 ${times.p99Ms.toFixed(1)} ms, max ${times.longestMs.toFixed(1)} ms; ` +
    `${Math.round((records * 1000) / elapsedMs)} records/s meanwhile; ` +
    `this idle process itself was woken ${times.ownP99Ms.toFixed(1)} ms late at p99`;
  return { p99Ms: times.p99Ms, figures };
}
