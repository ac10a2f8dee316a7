// Checks numbers that are given as options. One that cannot be meant is told at once: later it would show only as an
// upload that never ends, or that never tries again.

const ENDLESS = Infinity;

/** A whole number of 1 or more. */
export function countFrom(name: string, given: number | undefined, otherwise: number): number {
  const value = given ?? otherwise;
  if (Number.isInteger(value) && value >= 1) return value;
  throw new TypeError(`${name} must be a whole number of 1 or more, not ${shown(value)}`);
}

/** A whole number of 1 or more, or Infinity, which is what it is unless given. */
export function countOrEndlessFrom(name: string, given: number | undefined): number {
  return (given ?? ENDLESS) === ENDLESS ? ENDLESS : countFrom(name, given, ENDLESS);
}

interface Bounds {
  readonly leastMs: number;
  readonly mayBeEndless: boolean;
}

/** A number of milliseconds. */
export function durationFrom(
  name: string,
  givenMs: number | undefined,
  otherwiseMs: number,
  { leastMs, mayBeEndless }: Bounds,
): number {
  const valueMs = givenMs ?? otherwiseMs;
  if (typeof valueMs === 'number' && valueMs >= leastMs && (mayBeEndless || Number.isFinite(valueMs))) {
    return valueMs;
  }
  throw new TypeError(`${name} must be a number of milliseconds from ${leastMs}, not ${shown(valueMs)}`);
}

/** What was given, so that text is told from a number that looks the same. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
