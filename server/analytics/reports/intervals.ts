// Computes 95 % confidence intervals: of a share, and of the difference between two means.

const Z_95 = 1.959963984540054;

/** With fewer values per sample, the normal distribution gives an interval that is too narrow. */
export const LEAST_SAMPLE = 30;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Returns the Wilson interval of a share, or null if there was nothing to count. */
export function wilsonInterval(successes: number, trials: number): Interval | null {
  if (trials === 0) return null;
  const share = successes / trials;
  const weight = Z_95 ** 2 / trials;
  const centre = share + weight / 2;
  const margin = Z_95 * Math.sqrt((share * (1 - share)) / trials + weight / (4 * trials));
  // Rounding errors must not take the limits out of the range of a share.
  return {
    low: successes === 0 ? 0 : (centre - margin) / (1 + weight),
    high: successes === trials ? 1 : (centre + margin) / (1 + weight),
  };
}

export interface Sample {
  readonly size: number;
  readonly mean: number;
  /** The sample variance, which divides by one less than the size. */
  readonly variance: number;
}

/**
 * Returns the interval of the first mean minus the second. The samples may have different variances, as in Welch's
 * test. Returns null if a sample is too small.
 */
export function differenceInterval(first: Sample, second: Sample): Interval | null {
  if (first.size < LEAST_SAMPLE || second.size < LEAST_SAMPLE) return null;
  const difference = first.mean - second.mean;
  const margin = Z_95 * Math.sqrt(first.variance / first.size + second.variance / second.size);
  return { low: difference - margin, high: difference + margin };
}
