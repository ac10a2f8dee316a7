// The kind for the time of an interaction. Clients send seconds, milliseconds or a date-time. The value is stored and
// returned unchanged, and `occurredAt` converts it to a date-time.

import { dateTime, dateTimeFromMs, LATEST_MS, parseDateTime } from './date-time.ts';
import { Flaw, type Kind, quote, wrongType } from './kind.ts';

/** Integers below this value are seconds, which reach to the year 5138. All other integers are milliseconds. */
const FIRST_MILLISECONDS_VALUE = 100_000_000_000;

const expected = 'a positive integer (seconds or milliseconds since 1970) or an ISO 8601 date-time';

export const eventTimestamp: Kind<string | number> = {
  name: 'event-timestamp',
  accepts: expected,
  schema: { oneOf: [{ type: 'integer', minimum: 1, maximum: LATEST_MS }, dateTime.schema] },
  check(value) {
    if (typeof value === 'number') {
      if (!Number.isInteger(value)) return new Flaw('wrong_type', `must be ${expected}, not ${quote(value)}`);
      if (value < 1 || value > LATEST_MS) {
        return new Flaw('out_of_range', `must be between 1 and ${LATEST_MS}, not ${quote(value)}`);
      }
      return String(value);
    }
    if (typeof value !== 'string') return wrongType(expected, value);
    if (parseDateTime(value) === null) {
      return new Flaw('invalid_format', `must be ${expected}, not ${quote(value)}`);
    }
    return value;
  },
  present: (kept) => (isInteger(kept as string) ? Number(kept) : (kept as string)),
};

/** Converts a stored event timestamp, which is always valid, to the stored form of a date-time. */
export function occurredAt(kept: string): string {
  if (!isInteger(kept)) return parseDateTime(kept)!;
  const count = Number(kept);
  return dateTimeFromMs(count < FIRST_MILLISECONDS_VALUE ? count * 1000 : count);
}

function isInteger(kept: string): boolean {
  return /^\d+$/.test(kept);
}
