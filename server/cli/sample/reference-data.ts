// Generates the records that students refer to: institutes, courses, categories, tags, keywords and shops. All of them
// are kept in memory.

import { type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import type { SamplePlan } from './plan.ts';
import type { Random } from './random.ts';
import { bookkeeping, type Put, type SampleRecords } from './records.ts';
import { type City, type Region, regions } from './regions.ts';
import { putShop, type Shop } from './shops.ts';
import { courses, trades } from './trades.ts';

const LEAST_SHOPS_PER_REGION = 4;
const LEAST_INSTITUTES_PER_REGION = 2;
/** Less than the number of names that faker has, because every institute needs a different name. */
const MOST_INSTITUTES_PER_REGION = 100;
/** One shop in 20 has closed. Even the smallest sample has a closed shop. */
const SHOPS_PER_CLOSED = 20;

export interface RegionData {
  readonly region: Region;
  readonly institutes: readonly { readonly id: string; readonly city: City }[];
  /** The shops by popularity. The first is the most popular one, and has been open all the time. */
  readonly shops: readonly Shop[];
}

export interface ReferenceData {
  readonly regions: readonly RegionData[];
  readonly courses: readonly string[];
}

/** Maps names to ids. */
export type Ids = ReadonlyMap<string, string>;

/**
 * Calls `put` with every record, and returns the data that students refer to. Yields the number of finished
 * customers after each shop, so that the caller can write in between.
 */
export function* makeReferenceData(
  plan: SamplePlan,
  random: Random,
  put: Put,
): Generator<number, ReferenceData> {
  for (const { faker } of regions) faker.seed(plan.seed);
  const named = (type: RecordTypeName, names: Iterable<string>, more: { region?: string } = {}): Ids => {
    const putOne = (name: string): readonly [string, string] => {
      const id = random.uuid();
      const kept = bookkeeping(random, plan.foundedMs, plan.untilMs);
      const record: unknown = { [recordTypes[type].key]: id, name, ...more, ...kept };
      put(type, record as SampleRecords[typeof type]);
      return [name, id];
    };
    return new Map(Array.from(names, putOne));
  };
  const courseIds = named('courses', courses);
  const tags = named('tags', new Set(trades.flatMap((trade) => trade.tags)));
  const keywords = named('keywords', new Set(trades.flatMap((trade) => trade.keywords)));

  const made: RegionData[] = [];
  const spareShops = plan.shops - regions.length * LEAST_SHOPS_PER_REGION;
  let shopCount = 0;
  // The first region is made last, because it gets the shops that are left over by rounding.
  for (const region of regions.toReversed()) {
    const { code, cities, faker, share } = region;
    const categories = named(
      'categories',
      trades.map(({ category }) => category),
      { region: code },
    );
    const cityOf = new Map<string, City>();
    const institutes = Math.min(MOST_INSTITUTES_PER_REGION, Math.round(plan.institutes * share));
    while (cityOf.size < Math.max(LEAST_INSTITUTES_PER_REGION, institutes)) {
      const city = cities[cityOf.size % cities.length]!;
      cityOf.set(region.institute(city.name, faker.person.lastName()), city);
    }
    const instituteIds = named('institutes', cityOf.keys(), { region: code });
    const shops: Shop[] = [];
    const isLast = region === regions[0];
    const wanted = isLast ? plan.shops - shopCount : LEAST_SHOPS_PER_REGION + Math.floor(spareShops * share);
    for (; shops.length < wanted; shopCount++) {
      const isFirst = shops.length === 0;
      const closes = !isFirst && shopCount % SHOPS_PER_CLOSED === SHOPS_PER_CLOSED - 1;
      const trade = trades[shopCount % trades.length]!;
      shops.push(putShop({ plan, random, put, region, trade, isFirst, closes, tags, keywords, categories }));
      yield 0;
    }
    made.push({
      region,
      institutes: Array.from(cityOf, ([name, city]) => ({ id: instituteIds.get(name)!, city })),
      shops,
    });
  }
  return { regions: made, courses: [...courseIds.values()] };
}
