import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkResults, InvalidResults, type Results, verdictOf } from './results.ts';
import { comparison, figure, ordinary, results, series, straining } from './testing/sample-results.ts';

test('a median equal to its bound meets an "at least" bound, and misses a "below" bound', () => {
  assert.equal(verdictOf(figure([1, 2, 9], { atLeast: 2 })), 'met');
  assert.equal(verdictOf(figure([1, 1.999, 9], { atLeast: 2 })), 'missed');
  assert.equal(verdictOf(figure([1, 2, 9], { below: 2 })), 'missed');
  assert.equal(verdictOf(figure([1, 1.999, 9], { below: 2 })), 'met');
  assert.equal(verdictOf(figure([1, 2, 9], null)), 'informational');
});

describe('results', () => {
  test('that can be reported are accepted', () => {
    checkResults(ordinary);
    checkResults(straining);
    checkResults(results());
  });

  const twice = series('Headgate', [1, 2]);
  const wrong: Readonly<Record<string, readonly [given: Partial<Results>, says: RegExp]>> = {
    'a figure that is no number': [{ figures: [figure([1, Number.NaN], null)] }, /figure rate: NaN is no/],
    'an infinite figure': [{ figures: [figure([Number.POSITIVE_INFINITY], null)] }, /rate: Infinity is no/],
    'a figure without rounds': [{ figures: [figure([], null)] }, /rate: no round was measured/],
    'a bound of nothing': [{ figures: [figure([1], { below: 0 })] }, /its bound is 0/],
    'a bound that is no number': [{ figures: [figure([1], { atLeast: Number.NaN })] }, /its bound is NaN/],
    'two figures of one id': [
      { figures: [figure([1], null), figure([2], null)] },
      /two figures have the id rate/,
    ],
    'a comparison of nobody': [{ comparisons: [comparison([])] }, /uploads: it has no contender/],
    'a contender that did nothing': [
      { comparisons: [comparison([twice, series('Other', [0, 1])])] },
      /Other: a value is not above zero/,
    ],
    'a contender that is no number': [
      { comparisons: [comparison([series('Headgate', [Number.NaN])])] },
      /Headgate: NaN is no/,
    ],
    'a contender twice': [{ comparisons: [comparison([twice, twice])] }, /two contenders have one name/],
    'a missing round': [
      { comparisons: [comparison([twice, series('Other', [1])])] },
      /Other: 1 rounds, not 2/,
    ],
    'two units in one comparison': [
      { comparisons: [comparison([twice, series('Other', [1, 2], 'ms')])] },
      /Other: measured in ms, not in records\/s/,
    ],
    'a start that is no date': [{ startedAt: 'yesterday' }, /startedAt is no date: yesterday/],
    'a duration that is no number': [{ elapsedMs: Number.NaN }, /elapsedMs is no duration/],
  };
  for (const [name, [given, says]] of Object.entries(wrong)) {
    test(`with ${name} are refused`, () => {
      assert.throws(
        () => checkResults(results(given)),
        (error) => error instanceof InvalidResults && says.test(error.message),
      );
    });
  }
});
