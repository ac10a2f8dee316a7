import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryTakers } from './memory-takers.ts';

const MEBIBYTE = 1024 ** 2;

test('whoever has had a query running while much memory was taken may be the reason', (t) => {
  let usedMb = 300;
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const takers = new MemoryTakers(() => usedMb * MEBIBYTE);
  const look = (mb: number): void => {
    usedMb = mb;
    nowMs += 100;
    takers.look();
  };
  const endBefore = takers.begin('ended before');
  look(400);
  endBefore();
  takers.begin('large');
  const endLong = takers.begin('ended a moment ago');
  look(1000);
  takers.begin('short');
  look(1200);
  endLong();
  assert.deepEqual([...takers.takers()], ['large', 'ended a moment ago']);
  nowMs += 3000;
  look(1200);
  assert.deepEqual([...takers.takers()], ['large']);
  look(500);
  look(1200);
  assert.deepEqual([...takers.takers()], ['large', 'short']);
});
