// Summarises a series of rounds. The functions throw if there is no value, or one that is not a finite number.

export interface Spread {
  readonly lowest: number;
  readonly highest: number;
}

export function median(values: readonly number[]): number {
  const sorted = measured(values).toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2 === 1) return sorted[middle]!;
  // The two values are halved before they are added, so that the sum of large values cannot overflow.
  return sorted[middle - 1]! / 2 + sorted[middle]! / 2;
}

export function spread(values: readonly number[]): Spread {
  const sorted = measured(values).toSorted((a, b) => a - b);
  return { lowest: sorted[0]!, highest: sorted.at(-1)! };
}

interface Rounds {
  readonly values: readonly number[];
}

/** Returns the ratio of the two series in each round, so that disturbances that affect both cancel out. */
export function ratioPerRound(series: Rounds, toSeries: Rounds): readonly number[] {
  const numerators = measured(series.values);
  const denominators = measured(toSeries.values);
  if (numerators.length !== denominators.length) {
    throw new RangeError(`${numerators.length} rounds cannot be set against ${denominators.length}`);
  }
  return measured(numerators.map((value, round) => value / denominators[round]!));
}

function measured(values: readonly number[]): readonly number[] {
  if (values.length === 0) throw new RangeError('no round was measured');
  const wrong = values.find((value) => !Number.isFinite(value));
  if (wrong !== undefined) throw new RangeError(`${wrong} is no measured value`);
  return values;
}
