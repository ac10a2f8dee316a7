import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { UploadPauses } from './upload-pauses.ts';

const WORK_MS = 20;

/** Resolves to how long a call of `around` takes, including the work. `uploads` is called during the work. */
async function elapsedMs(
  uploads: (size: { entries: number; ids: number }) => void,
  { undisturbedMs = 0, signal = new AbortController().signal } = {},
): Promise<number> {
  const size = { entries: 3, ids: 10 };
  const pauses = new UploadPauses({ ledgerSize: async () => ({ ...size }) }, undisturbedMs, signal);
  const beganAtMs = performance.now();
  await pauses.around(async () => {
    await sleep(WORK_MS);
    uploads(size);
  });
  return performance.now() - beganAtMs;
}

test('work is followed by a longer pause if many uploads arrive, even if they change nothing', async () => {
  assert.ok((await elapsedMs((size) => (size.ids += 5000))) >= 5 * WORK_MS);
  assert.ok((await elapsedMs((size) => (size.entries += 100))) >= 5 * WORK_MS);
});

test('work is followed by a short pause if few uploads arrive', async () => {
  const tookMs = await elapsedMs((size) => (size.entries += WORK_MS / 5));
  assert.ok(tookMs >= 1.5 * WORK_MS && tookMs < 5 * WORK_MS, `it took ${tookMs} ms`);
});

test('there is no pause if no upload arrives, or at the beginning', async () => {
  assert.ok((await elapsedMs(() => {})) < 5 * WORK_MS);
  assert.ok((await elapsedMs((size) => (size.ids += 5000), { undisturbedMs: 10_000 })) < 5 * WORK_MS);
});

test('the signal ends a pause', async () => {
  const signal = AbortSignal.timeout(WORK_MS * 2);
  assert.ok((await elapsedMs((size) => (size.ids += 5000), { signal })) < 5 * WORK_MS);
});
