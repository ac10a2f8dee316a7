import assert from 'node:assert/strict';
import { test } from 'node:test';
import { figure } from './testing/sample-results.ts';
import {
  boundInWords,
  durationInWords,
  medianInWords,
  numberInWords,
  spreadInWords,
  summaryOf,
} from './wording.ts';

test('numbers of any size are rounded to three significant digits', () => {
  const words = [0, 0.012345, 0.5, 2, 12.34, 99.96, 1_234, 104_499, -1.5].map((value) =>
    numberInWords(value),
  );
  assert.deepEqual(words, ['0', '0.0123', '0.500', '2.00', '12.3', '100', '1,230', '104,000', '-1.50']);
});

test('a median close to its bound has enough digits to show on which side it is', () => {
  assert.equal(medianInWords(figure([1.99951], { atLeast: 2 })), '1.9995×');
  assert.equal(medianInWords(figure([2], { atLeast: 2 })), '2.00×');
  assert.equal(medianInWords(figure([49.99], { below: 50 }, { unit: 'ms' })), '49.99 ms');
  assert.equal(medianInWords(figure([1.99951], null)), '2.00×');
});

test('the spread is shown as "lowest to highest", or as "one round"', () => {
  assert.equal(spreadInWords([3, 1, 2]), '1.00 to 3.00');
  assert.equal(spreadInWords([3]), 'one round');
});

test('a bound is shown without rounding', () => {
  assert.equal(boundInWords({ atLeast: 0.0125 }, 'ratio'), 'at least 0.0125×');
  assert.equal(boundInWords({ below: 1500 }, 'ms'), 'below 1,500 ms');
  assert.equal(boundInWords(null, 's'), 'none');
});

test('the summary counts only figures that have a bound', () => {
  const met = figure([3], { atLeast: 2 });
  assert.equal(summaryOf([met, figure([1], { atLeast: 2 }), figure([1], null)]), '1 of 2 bounds met');
  assert.equal(summaryOf([figure([1], null)]), 'no bounds are set');
});

test('durations are shown in seconds, minutes or hours, depending on their length', () => {
  assert.deepEqual([0, 59_400, 59_600, 3_599_000, 3_600_000, 5_430_000].map(durationInWords), [
    '0 s',
    '59 s',
    '1 min 0 s',
    '59 min 59 s',
    '1 h 0 min',
    '1 h 30 min',
  ]);
});
