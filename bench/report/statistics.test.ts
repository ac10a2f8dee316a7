import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median, ratioPerRound, spread } from './statistics.ts';

test('the median is the middle value by size, or halfway between the two middle ones', () => {
  assert.equal(median([7]), 7);
  assert.equal(median([100, 9, 20]), 20);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([Number.MAX_VALUE, Number.MAX_VALUE]), Number.MAX_VALUE);
});

test('the spread goes from the lowest round to the highest, by size', () => {
  assert.deepEqual(spread([100, 9, 20]), { lowest: 9, highest: 100 });
  assert.deepEqual(spread([7]), { lowest: 7, highest: 7 });
});

test('neither changes the order of the rounds', () => {
  const values = Object.freeze([3, 1, 2]);
  median(values);
  spread(values);
  assert.deepEqual(values, [3, 1, 2]);
});

test('ratios are those of the same round', () => {
  assert.deepEqual(ratioPerRound({ values: [10, 90, 8] }, { values: [5, 30, 16] }), [2, 3, 0.5]);
});

test('what cannot be summed up is refused', () => {
  const refused = { name: 'RangeError' };
  for (const values of [[], [1, Number.NaN], [Number.POSITIVE_INFINITY]]) {
    assert.throws(() => median(values), refused);
    assert.throws(() => spread(values), refused);
    assert.throws(() => ratioPerRound({ values }, { values }), refused);
  }
  assert.throws(() => ratioPerRound({ values: [1, 2] }, { values: [1] }), /2 rounds cannot be set against 1/);
  assert.throws(() => ratioPerRound({ values: [1] }, { values: [0] }), refused);
});
