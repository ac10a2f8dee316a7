import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Metrics } from './metrics.ts';

const build = { version: '1.2.3', store: 'sqlite' };

test('the error counts of every route start at 0, so that the first error is an increase', async (t) => {
  const metrics = new Metrics([{ method: 'POST', route: '/v1/data/{type}' }], build);
  t.after(() => metrics.close());
  const text = await metrics.text();
  for (const status of [500, 503]) {
    const series = `headgate_requests_total{method="POST",route="/v1/data/{type}",status="${status}"}`;
    assert.ok(text.includes(`\n${series} 0\n`), series);
  }
});

test('records that the store could not write count as failed, and the store error is counted', async (t) => {
  const metrics = new Metrics([], build);
  metrics.watch('requestsInProgress', () => 3);
  metrics.watch('bodiesWaiting', () => 2);
  metrics.watchThreads('jobs', (thread) => (thread === 'large' ? 4 : 5));
  metrics.watchThreads('writes', (thread) => (thread === 'large' ? 6 : 7));
  t.after(() => metrics.close());
  const counts = { received: 5, created: 0, updated: 0, unchanged: 0, rejected: 5 };
  const codes = { store_unavailable: 3, required: 4 };
  metrics.taken('shops', { outcome: 'failed', writeMs: null, counts, codes });
  metrics.taken(null, { outcome: 'failed', writeMs: null });
  metrics.threadRestarted('large');
  const text = await metrics.text();
  for (const line of [
    'headgate_records_total{type="shops",outcome="failed"} 3',
    'headgate_records_total{type="shops",outcome="rejected"} 2',
    'headgate_rejections_total{code="store_unavailable"} 3',
    'headgate_store_errors_total{during="upload"} 1',
    'headgate_store_errors_total{during="interaction"} 1',
    'headgate_store_write_duration_seconds_count{kind="upload"} 0',
    'headgate_thread_restarts_total{thread="large"} 1',
    'headgate_requests_in_progress 3',
    'headgate_bodies_waiting 2',
    'headgate_jobs_in_progress{thread="small"} 5',
    'headgate_store_writes_in_progress{thread="large"} 6',
  ]) {
    assert.ok(text.includes(`\n${line}\n`), line);
  }
});

test('a bucket counts values up to and including its bound', async (t) => {
  const metrics = new Metrics([], build);
  t.after(() => metrics.close());
  for (const writeMs of [0.5, 1, 1.1, 60_000, 60_001]) metrics.taken(null, { outcome: 'recorded', writeMs });
  const text = await metrics.text();
  const sampleOf = (series: RegExp): number => Number(new RegExp(`${series.source} (.+)`).exec(text)?.[1]);
  const bucket = (bound: string): number =>
    sampleOf(new RegExp(`write_duration_seconds_bucket{le="${bound}",kind="interaction"}`));
  assert.equal(bucket('0.001'), 2);
  assert.equal(bucket('0.0025'), 3);
  assert.equal(bucket('60'), 4);
  assert.equal(bucket('\\+Inf'), 5);
  assert.equal(sampleOf(/write_duration_seconds_count{kind="interaction"}/), 5);
  assert.ok(Math.abs(sampleOf(/write_duration_seconds_sum{kind="interaction"}/) - 120.0036) < 1e-9);
});
