import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CrashPauses } from './crash-pauses.ts';

test('a pause doubles with every crash up to ten minutes, and all is forgotten five minutes after the last one', () => {
  let nowMs = 1_000_000;
  const pauses = new CrashPauses(() => nowMs);
  assert.equal(pauses.refusalOf('a'), null);
  const lengths: number[] = [];
  for (let crash = 0; crash < 7; crash++) {
    assert.equal(pauses.pause('a') / 1000, pauses.refusalOf('a')!.retryAfterS);
    lengths.push(pauses.refusalOf('a')!.retryAfterS!);
    nowMs += lengths.at(-1)! * 1000 - 1;
    assert.equal(pauses.refusalOf('a')!.retryAfterS, 1);
    nowMs += 1;
    assert.equal(pauses.refusalOf('a'), null);
  }
  assert.deepEqual(lengths, [30, 60, 120, 240, 480, 600, 600]);
  nowMs += 5 * 60_000 - 1;
  assert.equal(pauses.pause('b'), 30_000);
  assert.equal(pauses.pause('a'), 600_000);
  nowMs += 600_000 + 5 * 60_000;
  assert.equal(pauses.pause('a'), 30_000);
});

test('other organisations are not paused', () => {
  const pauses = new CrashPauses();
  pauses.pause('a');
  assert.equal(pauses.refusalOf('b'), null);
});
