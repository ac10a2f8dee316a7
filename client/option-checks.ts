// Checks numeric options before they are used, because an invalid option would otherwise show only as an upload that
// never ends or never retries.

/** Returns the option, or its default if it is not given. Throws a TypeError if it is not a whole number above 0. */
export function countFrom(name: string, given: number | undefined, otherwise: number): number {
  const value = given ?? otherwise;
  if (Number.isInteger(value) && value >= 1) return value;
  throw new TypeError(`${name} must be a whole number of 1 or more, not ${shown(value)}`);
}

/** Returns the option, or its default if it is not given. Throws a TypeError if it is not within the bounds. */
export function durationFrom(
  name: string,
  givenMs: number | undefined,
  otherwiseMs: number,
  leastMs = 0,
  mostMs = Infinity,
): number {
  const valueMs = givenMs ?? otherwiseMs;
  if (typeof valueMs === 'number' && valueMs >= leastMs && valueMs <= mostMs) return valueMs;
  throw new TypeError(`${name} must be a number of milliseconds from ${leastMs}, not ${shown(valueMs)}`);
}

/** Returns the value as text for a message. Strings are quoted, so that "1" differs from 1. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
