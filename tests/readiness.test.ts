// `/readyz` while the store is busy: it is ready while it works, however long that takes. Specific to SQLite, whose
// only writer may have to wait for another process.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiOf } from './harness/api.ts';
import { newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { leastRecord } from './harness/records.ts';

const BUSY_FOR_MS = 5000;
/** Far below the time for which the writer is busy, and enough for a slow machine. */
const ANSWERED_WITHIN_MS = 1000;

test('the service stays ready while its writer waits for another process', async (t) => {
  const { folder, remove } = await newDatabaseFolder();
  const path = `${folder}/headgate.db`;
  const headgate = await startHeadgate(path);
  t.after(async () => {
    await headgate.kill();
    await remove();
  });
  const { key } = await headgate.newKey();
  const api = apiOf(headgate.url, key);
  assert.equal((await api.request('/readyz')).status, 200);

  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  const endsAtMs = performance.now() + BUSY_FOR_MS;
  let isWaiting = true;
  const uploads = Promise.all(
    Array.from({ length: 4 }, () => api.upload('shops', [leastRecord('shops')])),
  ).finally(() => {
    isWaiting = false;
  });
  let longestMs = 0;
  while (performance.now() < endsAtMs) {
    const askedAtMs = performance.now();
    assert.equal((await api.request('/readyz')).status, 200);
    longestMs = Math.max(longestMs, performance.now() - askedAtMs);
    await sleep(50);
  }
  assert.ok(isWaiting, 'the writer was not busy all the time');
  other.exec('ROLLBACK');
  for (const { status, text } of await uploads) assert.equal(status, 200, text);
  t.diagnostic(`the slowest answer took ${Math.round(longestMs)} ms`);
  assert.ok(longestMs < ANSWERED_WITHIN_MS, `a response took ${longestMs} ms`);
});
