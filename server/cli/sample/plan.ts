// The size of a sample, and the time that it covers. This file imports nothing, because the help shows the defaults
// without loading the command.

export const DEFAULT_CUSTOMERS = 1000;
export const DEFAULT_SEED = 1;
/** A fixed day, so that the same command always writes the same records. */
export const DEFAULT_UNTIL = '2026-09-30';

export const DAY_MS = 86_400_000;
/** The number of days on which students can buy. The last of these days is the day given by --until. */
export const HISTORY_DAYS = 730;
/** Students join, and shops open, at most this number of days before the last day. */
export const JOINING_DAYS = 2 * HISTORY_DAYS;

const CUSTOMERS_PER_SHOP = 100;
const LEAST_SHOPS = 60;
/** Shops are limited, because they are kept in memory with their branches and offers. Students are not kept. */
const MOST_SHOPS = 5000;
const CUSTOMERS_PER_INSTITUTE = 400;

export interface SamplePlan {
  readonly seed: number;
  readonly customers: number;
  readonly shops: number;
  readonly institutes: number;
  /** When institutes and courses were created, before any student joins. */
  readonly foundedMs: number;
  /** The first moment of the first day of purchases. */
  readonly historyMs: number;
  /** The last second of the last day. */
  readonly untilMs: number;
}

/** `untilDay` is the last day, in days since 1970. */
export function samplePlan(seed: number, customers: number, untilDay: number): SamplePlan {
  return {
    seed,
    customers,
    shops: Math.min(MOST_SHOPS, Math.max(LEAST_SHOPS, Math.round(customers / CUSTOMERS_PER_SHOP))),
    institutes: Math.round(customers / CUSTOMERS_PER_INSTITUTE),
    foundedMs: (untilDay + 1 - JOINING_DAYS - 365) * DAY_MS,
    historyMs: (untilDay - HISTORY_DAYS + 1) * DAY_MS,
    untilMs: (untilDay + 1) * DAY_MS - 1000,
  };
}

/** Returns the time as a date-time in UTC, without fractions of a second. */
export function moment(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 'YYYY-MM-DDThh:mm:ss'.length)}Z`;
}
