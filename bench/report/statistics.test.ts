import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median, ratioPerRound, spread } from './statistics.ts';

test('the median is the middle value by size, or the mean of the two middle values', () => {
  assert.equal(median([7]), 7);
  assert.equal(median([100, 9, 20]), 20);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([Number.MAX_VALUE, Number.MAX_VALUE]), Number.MAX_VALUE);
});

test('the spread is the lowest and the highest round by size', () => {
  assert.deepEqual(spread([100, 9, 20]), { lowest: 9, highest: 100 });
  assert.deepEqual(spread([7]), { lowest: 7, highest: 7 });
});

test('median and spread do not change the order of the rounds', () => {
  const values = Object.freeze([3, 1, 2]);
  median(values);
  spread(values);
  assert.deepEqual(values, [3, 1, 2]);
});

test('ratios are computed round by round', () => {
  assert.deepEqual(ratioPerRound({ values: [10, 90, 8] }, { values: [5, 30, 16] }), [2, 3, 0.5]);
});

test('empty lists, values that are not finite, and different numbers of rounds are refused', () => {
  const refused = { name: 'RangeError' };
  for (const values of [[], [1, Number.NaN], [Number.POSITIVE_INFINITY]]) {
    assert.throws(() => median(values), refused);
    assert.throws(() => spread(values), refused);
    assert.throws(() => ratioPerRound({ values }, { values }), refused);
  }
  assert.throws(() => ratioPerRound({ values: [1, 2] }, { values: [1] }), /2 rounds cannot be set against 1/);
  assert.throws(() => ratioPerRound({ values: [1] }, { values: [0] }), refused);
});
