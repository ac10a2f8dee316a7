// Checks numeric options. An invalid one is reported at once, because later it would only show as an upload that never
// ends or never retries.

const ENDLESS = Infinity;

/** Returns the option, which must be a whole number of 1 or more, or its default. */
export function countFrom(name: string, given: number | undefined, otherwise: number): number {
  const value = given ?? otherwise;
  if (Number.isInteger(value) && value >= 1) return value;
  throw new TypeError(`${name} must be a whole number of 1 or more, not ${shown(value)}`);
}

/** Returns the option, which must be a whole number of 1 or more, or Infinity. The default is Infinity. */
export function countOrEndlessFrom(name: string, given: number | undefined): number {
  return (given ?? ENDLESS) === ENDLESS ? ENDLESS : countFrom(name, given, ENDLESS);
}

interface Bounds {
  readonly leastMs: number;
  readonly mayBeEndless: boolean;
}

/** Returns the option, which must be a number of milliseconds within the bounds, or its default. */
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

/** Returns the value for a message. Strings are quoted, so that "1" differs from 1. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
