// The results of a benchmark run: the figures that the project states, and the comparisons that they are based on.

import type { Machine } from './machine.ts';
import { median } from './statistics.ts';

/** One measured value per round. */
export interface Series {
  readonly contender: string;
  readonly values: readonly number[];
  readonly unit: 'records/s' | 'requests/s' | 'ms' | 'MB';
}

/** One measurement of several contenders in the same interleaved rounds. */
export interface Comparison {
  readonly id: string;
  readonly title: string;
  readonly conditions: string;
  /** The first series is the one that the others are compared with. */
  readonly series: readonly Series[];
}

export type Bound = { readonly atLeast: number } | { readonly below: number };

/** A claim: a measured value, or the ratio of two measured values, with its bound. */
export interface Figure {
  readonly id: string;
  readonly title: string;
  /** The value, or the ratio, of each round. */
  readonly values: readonly number[];
  readonly unit: 'ratio' | 'records/s' | 'ms' | 'MB' | 's';
  /** Null if the figure is for information only. */
  readonly bound: Bound | null;
}

export type Mode = 'quick' | 'full' | 'smoke';

export interface Results {
  /** The time in ISO 8601, in UTC. */
  readonly startedAt: string;
  readonly elapsedMs: number;
  readonly mode: Mode;
  /** The command that repeats the run. */
  readonly command: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly figures: readonly Figure[];
  readonly comparisons: readonly Comparison[];
  readonly leftOut: readonly { readonly contender: string; readonly reason: string }[];
}

export type Verdict = 'met' | 'missed' | 'informational';

export function isWithin(bound: Bound, value: number): boolean {
  return 'atLeast' in bound ? value >= bound.atLeast : value < bound.below;
}

export function verdictOf(figure: Figure): Verdict {
  if (figure.bound === null) return 'informational';
  return isWithin(figure.bound, median(figure.values)) ? 'met' : 'missed';
}

export class InvalidResults extends Error {}

/** Throws InvalidResults if the results are incomplete or invalid, such as a value that is not a number. */
export function checkResults(results: Results): void {
  const { startedAt, elapsedMs, figures, comparisons } = results;
  if (Number.isNaN(Date.parse(startedAt))) throw new InvalidResults(`startedAt is no date: ${startedAt}`);
  if (!(Number.isFinite(elapsedMs) && elapsedMs >= 0)) {
    throw new InvalidResults(`elapsedMs is no duration: ${elapsedMs}`);
  }
  checkDistinct('figure', figures);
  checkDistinct('comparison', comparisons);
  for (const { id, values, bound } of figures) {
    checkRounds(`figure ${id}`, values);
    if (bound === null) continue;
    const limit = 'atLeast' in bound ? bound.atLeast : bound.below;
    // With a bound of 0, every measured value would be within the bound (at least 0) or none (below 0).
    if (!(Number.isFinite(limit) && limit > 0)) {
      throw new InvalidResults(`figure ${id}: its bound is ${limit}, which is no positive number`);
    }
  }
  for (const comparison of comparisons) checkComparison(comparison);
}

function checkComparison({ id, series }: Comparison): void {
  const [first] = series;
  if (first === undefined) throw new InvalidResults(`comparison ${id}: it has no contender`);
  if (new Set(series.map(({ contender }) => contender)).size < series.length) {
    throw new InvalidResults(`comparison ${id}: two contenders have one name`);
  }
  for (const { contender, values, unit } of series) {
    const what = `comparison ${id}, ${contender}`;
    checkRounds(what, values);
    if (values.some((value) => value <= 0)) throw new InvalidResults(`${what}: a value is not above zero`);
    if (unit !== first.unit) throw new InvalidResults(`${what}: measured in ${unit}, not in ${first.unit}`);
    if (values.length !== first.values.length) {
      throw new InvalidResults(`${what}: ${values.length} rounds, not ${first.values.length}`);
    }
  }
}

function checkRounds(what: string, values: readonly number[]): void {
  if (values.length === 0) throw new InvalidResults(`${what}: no round was measured`);
  const wrong = values.find((value) => !Number.isFinite(value));
  if (wrong !== undefined) throw new InvalidResults(`${what}: ${wrong} is no measured value`);
}

function checkDistinct(kind: string, items: readonly { readonly id: string }[]): void {
  const seen = new Set<string>();
  for (const { id } of items) {
    if (seen.has(id)) throw new InvalidResults(`two ${kind}s have the id ${id}`);
    seen.add(id);
  }
}
