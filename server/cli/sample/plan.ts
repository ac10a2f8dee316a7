// How large a sample is, and the time that it covers.

export const DAY_MS = 86_400_000;
/** Students buy during these days, the last of which is the day `until`. */
export const HISTORY_DAYS = 730;
/** Students have joined, and shops have opened, at most so long before the last day. */
export const JOINING_DAYS = 2 * HISTORY_DAYS;

const CUSTOMERS_PER_SHOP = 100;
export const LEAST_SHOPS_PER_REGION = 4;
const LEAST_SHOPS = 60;
/** The shops and what belongs to them are held in memory, students are not. */
const MOST_SHOPS = 5000;
const CUSTOMERS_PER_INSTITUTE = 400;
export const LEAST_INSTITUTES_PER_REGION = 2;

export interface SamplePlan {
  readonly seed: number;
  readonly customers: number;
  readonly shops: number;
  readonly institutes: number;
  /** The first moment of the first day of purchases. */
  readonly historyMs: number;
  /** The last second of the last day. */
  readonly untilMs: number;
}

/** `untilDay`: the last day, as days since 1970. */
export function samplePlan(seed: number, customers: number, untilDay: number): SamplePlan {
  return {
    seed,
    customers,
    shops: Math.min(MOST_SHOPS, Math.max(LEAST_SHOPS, Math.round(customers / CUSTOMERS_PER_SHOP))),
    institutes: Math.round(customers / CUSTOMERS_PER_INSTITUTE),
    historyMs: (untilDay - HISTORY_DAYS + 1) * DAY_MS,
    untilMs: (untilDay + 1) * DAY_MS - 1000,
  };
}

/** Days since 1970, with their dates as `YYYY-MM-DDT`: a sample has a few thousand of them. */
const dates = new Map<number, string>();
const minutes = Array.from({ length: 24 * 60 }, (_, at) => `${two(Math.floor(at / 60))}:${two(at % 60)}:`);
const seconds = Array.from({ length: 60 }, (_, at) => `${two(at)}Z`);

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** As date-times are answered, of whole seconds. */
export function moment(ms: number): string {
  const day = Math.floor(ms / DAY_MS);
  let date = dates.get(day);
  if (date === undefined) {
    date = new Date(ms).toISOString().slice(0, 'YYYY-MM-DDT'.length);
    dates.set(day, date);
  }
  const second = (ms - day * DAY_MS) / 1000;
  return date + minutes[Math.floor(second / 60)] + seconds[second % 60];
}
