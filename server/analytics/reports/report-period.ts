// Converts the days of a report to the moments that bound its rows.

import { DuckDBDateValue, DuckDBTimestampTZValue } from '@duckdb/node-api';

export const DAY_MS = 24 * 60 * 60 * 1000;

/** The first and the last day, in UTC. */
export interface ReportPeriod {
  readonly from: string;
  readonly to: string;
}

export function startOfDayMs(day: string): number {
  return Date.parse(`${day}T00:00:00Z`);
}

/** Returns the moment after the last day. */
export function endOfPeriodMs({ to }: ReportPeriod): number {
  return startOfDayMs(to) + DAY_MS;
}

export function timestampValue(ms: number): DuckDBTimestampTZValue {
  return new DuckDBTimestampTZValue(BigInt(ms) * 1000n);
}

/** Returns the UTC day of a moment. */
export function dayValue(ms: number): DuckDBDateValue {
  return new DuckDBDateValue(Math.floor(ms / DAY_MS));
}
