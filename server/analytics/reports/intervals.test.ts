import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { differenceInterval, type Interval, LEAST_SAMPLE, wilsonInterval } from './intervals.ts';

function assertNear(actual: Interval | null, low: number, high: number): void {
  assert.ok(actual !== null);
  assert.ok(Math.abs(actual.low - low) < 5e-5, `${actual.low} is not near ${low}`);
  assert.ok(Math.abs(actual.high - high) < 5e-5, `${actual.high} is not near ${high}`);
}

it('the Wilson interval has the known values', () => {
  // From Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
  assertNear(wilsonInterval(81, 263), 0.2553, 0.3662);
  assertNear(wilsonInterval(15, 148), 0.0624, 0.1605);
  assertNear(wilsonInterval(0, 20), 0, 0.1611);
  assertNear(wilsonInterval(1, 29), 0.0061, 0.1718);
  assert.equal(wilsonInterval(0, 0), null);
});

it('the limits of the Wilson interval solve its equation, and enclose the share', () => {
  const counts = fc
    .integer({ min: 1, max: 1_000_000 })
    .chain((trials) => fc.tuple(fc.integer({ min: 0, max: trials }), fc.constant(trials)));
  fc.assert(
    fc.property(counts, ([successes, trials]) => {
      const share = successes / trials;
      const { low, high } = wilsonInterval(successes, trials)!;
      assert.ok(0 <= low && low <= share && share <= high && high <= 1);
      for (const limit of [low, high]) {
        const distance = (share - limit) ** 2;
        const allowed = (1.959964 ** 2 * limit * (1 - limit)) / trials;
        assert.ok(Math.abs(distance - allowed) < 1e-6);
      }
    }),
  );
});

it('the interval of a difference adds the variances of both means', () => {
  // The standard error is √(4/100 + 9/225) = √0.08, and 1.96 times that is 0.55436.
  const interval = differenceInterval(
    { size: 100, mean: 5, variance: 4 },
    { size: 225, mean: 4, variance: 9 },
  );
  assertNear(interval, 1 - 0.55436, 1 + 0.55436);
});

it('a difference between small samples has no interval', () => {
  const small = { size: LEAST_SAMPLE - 1, mean: 1, variance: 1 };
  const large = { size: LEAST_SAMPLE, mean: 1, variance: 1 };
  assert.equal(differenceInterval(small, large), null);
  assert.equal(differenceInterval(large, small), null);
  assert.notEqual(differenceInterval(large, large), null);
});
