import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uuidV7 } from './uuid-v7.ts';

const form = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('ids increase, also within a millisecond and when the clock is set back', () => {
  const nowMs = Date.now() + 1000;
  const moments = [...Array.from({ length: 10_000 }, () => nowMs), nowMs + 1, nowMs - 5000, nowMs + 2];
  let last = '';
  for (const ms of moments) {
    const id = uuidV7(ms);
    assert.match(id, form);
    assert.ok(id > last, `${id} after ${last}`);
    last = id;
  }
});

test('an id begins with its timestamp', () => {
  const ms = Date.now() + 60_000;
  const [, high, low] = form.exec(uuidV7(ms))!;
  assert.equal(Number.parseInt(high! + low!, 16), ms);
});

test('a hundred thousand ids are unique, and almost all of their random digits differ', () => {
  const ids = Array.from({ length: 100_000 }, () => uuidV7());
  assert.equal(new Set(ids).size, ids.length);
  const tails = new Set(ids.map((id) => id.slice(-12)));
  assert.ok(tails.size > ids.length * 0.999, `${tails.size} different ends`);
});
