import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { destroyOnceWanted } from './answer-sql.ts';

const WITHIN_MS = 20;

function response() {
  return {
    isDestroyed: false,
    destroy() {
      this.isDestroyed = true;
      return this as never;
    },
  };
}

test('a response is destroyed once its place is wanted, even if it was wanted before', async () => {
  const wanted = new AbortController();
  const early = response();
  destroyOnceWanted(early, wanted.signal, WITHIN_MS);
  await sleep(WITHIN_MS * 3);
  assert.equal(early.isDestroyed, false);
  wanted.abort();
  const late = response();
  destroyOnceWanted(late, wanted.signal, WITHIN_MS);
  await sleep(WITHIN_MS * 3);
  assert.deepEqual([early.isDestroyed, late.isDestroyed], [true, true]);
});

test('a response is not destroyed after it has released its place', async () => {
  const wanted = new AbortController();
  const sent = response();
  const forget = destroyOnceWanted(sent, wanted.signal, WITHIN_MS);
  wanted.abort();
  forget();
  await sleep(WITHIN_MS * 3);
  assert.equal(sent.isDestroyed, false);
});
