// What is there before any student: schools, courses, categories, tags and keywords, and shops with their branches
// and offers. Nothing of it depends on the students, and all that they choose from is held in memory.

import {
  DAY_MS,
  JOINING_DAYS,
  LEAST_INSTITUTES_PER_REGION,
  LEAST_SHOPS_PER_REGION,
  moment,
  type SamplePlan,
} from './plan.ts';
import { Random, Weighted, zipf } from './random.ts';
import { bookkeeping, lastChangeMs, momentBetween, type Put } from './records.ts';
import { type City, courses, instituteWords, type Region, regions } from './regions.ts';
import { shopNames, type Trade, trades } from './trades.ts';

export interface Offer {
  readonly id: string;
  readonly name: string;
  readonly type: 'percentage' | 'fixed';
  readonly value: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** The branches at which it holds; null: everywhere. */
  readonly branches: readonly string[] | null;
  /** The days of the week on which it holds, from Sunday; null: on all. */
  readonly weekdays: readonly number[] | null;
}

export interface Shop {
  readonly id: string;
  readonly trade: Trade;
  /** What a usual purchase costs there. */
  readonly price: number;
  readonly openedMs: number;
  readonly closedMs: number;
  readonly branches: readonly string[];
  readonly offers: readonly Offer[];
  readonly tags: readonly string[];
  readonly keywords: readonly string[];
}

export interface Institute {
  readonly id: string;
  readonly city: City;
}

export interface RegionOfTown {
  readonly region: Region;
  readonly institutes: readonly Institute[];
  /** The first has been open all the time. */
  readonly shops: readonly Shop[];
  /** Of the shops, in their order. */
  readonly popularity: Weighted;
}

export interface Town {
  readonly regions: readonly RegionOfTown[];
  readonly regionWeights: Weighted;
  readonly courses: readonly string[];
}

const dayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** About three kilometres: a branch is somewhere in its city. */
const CITY_DEGREES = 0.03;
/** Of so many shops one has closed, so that the smallest sample has one. */
const SHOPS_PER_CLOSED = 20;
const DELETED_LINK_SHARE = 0.01;

/** Months are counted from 0; `to` is the first day after. */
const seasons = [
  { name: 'Welcome week', from: [8, 10], to: [9, 11] },
  { name: 'Winter treat', from: [10, 20], to: [11, 27] },
  { name: 'Spring sale', from: [2, 1], to: [3, 1] },
  { name: 'Exam season', from: [4, 1], to: [5, 16] },
] as const;

/** Puts it all, and answers what students choose from. Yields now and then, so that what was put can be written. */
export function* buildTown(plan: SamplePlan, put: Put): Generator<void, Town> {
  const random = new Random(plan.seed, 'town');
  const foundedMs = plan.untilMs + 1000 - (JOINING_DAYS + 365) * DAY_MS;
  const named = (type: 'courses' | 'tags' | 'keywords', names: readonly string[]): Map<string, string> =>
    putNamed(random, type, names, foundedMs, plan, put);
  const courseIds = named('courses', courses);
  const tags = named('tags', namesIn('tags'));
  const keywords = named('keywords', namesIn('keywords'));

  const shares = sharesOf(plan.shops);
  const built: RegionOfTown[] = [];
  let youngerShops = 0;
  for (const [at, region] of regions.entries()) {
    const ids = { tags, keywords, categories: putCategories(random, region, foundedMs, plan, put) };
    const institutes = putInstitutes(random, region, foundedMs, plan, put);
    const shops: Shop[] = [];
    const namesOfTrades = new Map(trades.map((trade) => [trade, shopNamesOf(random, trade)]));
    const tradeWeights = new Weighted(trades.map(({ weight }) => weight));
    for (let rank = 0; rank < shares[at]!; rank++) {
      // So that even the smallest sample has shops of different kinds in every country.
      const trade =
        trades[rank < LEAST_SHOPS_PER_REGION ? (at + 3 * rank) % trades.length : tradeWeights.draw(random)]!;
      const name = namesOfTrades.get(trade)!.next().value;
      const isAnchor = rank === 0;
      const closes = !isAnchor && ++youngerShops % SHOPS_PER_CLOSED === 0;
      shops.push(putShop(random, { region, trade, name, isAnchor, closes, ids, foundedMs, plan }, put));
      yield;
    }
    built.push({ region, institutes, shops, popularity: zipf(shops.length) });
  }
  return {
    regions: built,
    regionWeights: new Weighted(regions.map(({ weight }) => weight)),
    courses: [...courseIds.values()],
  };
}

/** How many shops each region has: a few at least, and its share of the rest. */
function sharesOf(shops: number): number[] {
  const rest = shops - regions.length * LEAST_SHOPS_PER_REGION;
  const shares = regions.map(({ weight }) => LEAST_SHOPS_PER_REGION + Math.floor(rest * weight));
  shares[0]! += shops - shares.reduce((sum, share) => sum + share, 0);
  return shares;
}

function namesIn(list: 'tags' | 'keywords' | 'categories'): string[] {
  return [...new Set(trades.flatMap((trade) => trade[list]))].sort();
}

function putNamed(
  random: Random,
  type: 'courses' | 'tags' | 'keywords',
  names: readonly string[],
  foundedMs: number,
  { untilMs }: SamplePlan,
  put: Put,
): Map<string, string> {
  const ids = new Map<string, string>();
  for (const name of names) {
    const id = random.uuid();
    ids.set(name, id);
    const kept = bookkeeping(foundedMs, lastChangeMs(random, foundedMs, untilMs), null);
    if (type === 'courses') put(type, { course_id: id, name, ...kept });
    else if (type === 'tags') put(type, { tag_id: id, name, ...kept });
    else put(type, { keyword_id: id, name, ...kept });
  }
  return ids;
}

function putCategories(
  random: Random,
  { code }: Region,
  foundedMs: number,
  { untilMs }: SamplePlan,
  put: Put,
): Map<string, string> {
  const ids = new Map<string, string>();
  for (const name of namesIn('categories')) {
    const id = random.uuid();
    ids.set(name, id);
    const updatedMs = lastChangeMs(random, foundedMs, untilMs);
    put('categories', { category_id: id, name, region: code, ...bookkeeping(foundedMs, updatedMs, null) });
  }
  return ids;
}

function putInstitutes(
  random: Random,
  region: Region,
  foundedMs: number,
  plan: SamplePlan,
  put: Put,
): Institute[] {
  const { cities } = region;
  const wanted = Math.max(LEAST_INSTITUTES_PER_REGION, Math.round(plan.institutes * region.weight));
  const firstWord = random.integer(0, instituteWords.length - 1);
  return Array.from({ length: Math.min(wanted, cities.length * instituteWords.length) }, (_, number) => {
    const city = cities[number % cities.length]!;
    // Neighbouring cities differ in their words, and each has had all of them before a name would come again.
    const turn = firstWord + 5 * (number % cities.length) + Math.floor(number / cities.length);
    const word = instituteWords[turn % instituteWords.length]!;
    const name = region.institute(city.name, word);
    const id = random.uuid();
    const kept = bookkeeping(foundedMs, lastChangeMs(random, foundedMs, plan.untilMs), null);
    put('institutes', { institute_id: id, name, region: region.code, ...kept });
    return { id, city };
  });
}

/** Names without end, of which the first few hundred differ: more than a region has shops of one trade. */
function* shopNamesOf(random: Random, { shopWords }: Trade): Generator<string, never> {
  const all = shopNames.length * shopWords.length;
  const step = 125;
  for (let at = random.integer(0, all - 1); ; at = (at + step) % all) {
    yield `${shopNames[at % shopNames.length]} ${shopWords[Math.floor(at / shopNames.length)]}`;
  }
}

interface ShopPlace {
  readonly region: Region;
  readonly trade: Trade;
  readonly name: string;
  /** Open before any student joined, and to the end. */
  readonly isAnchor: boolean;
  /** Closed for good before the last day. */
  readonly closes: boolean;
  /** By their names, the ids of what shops are sorted by. */
  readonly ids: Readonly<Record<'tags' | 'keywords' | 'categories', ReadonlyMap<string, string>>>;
  readonly foundedMs: number;
  readonly plan: SamplePlan;
}

function putShop(random: Random, place: ShopPlace, put: Put): Shop {
  const { region, trade, name, isAnchor, closes, plan, foundedMs } = place;
  const { historyMs, untilMs } = plan;
  const id = random.uuid();
  // Most were there before the first purchase; the others opened since.
  const opensLate = !isAnchor && random.chance(0.15);
  const openedMs = opensLate
    ? momentBetween(random, historyMs, untilMs - 90 * DAY_MS)
    : momentBetween(random, foundedMs, historyMs);
  const closedMs = closes ? momentBetween(random, openedMs + 60 * DAY_MS, untilMs) : null;
  put('shops', {
    shop_id: id,
    name,
    region: region.code,
    is_public: isAnchor || (closedMs === null && random.chance(0.95)),
    ...bookkeeping(openedMs, lastChangeMs(random, openedMs, untilMs), closedMs),
  });

  const link = (): ReturnType<typeof bookkeeping> => {
    const createdMs = momentBetween(random, openedMs, Math.min(openedMs + 30 * DAY_MS, untilMs));
    const isDeleted = random.chance(DELETED_LINK_SHARE);
    return bookkeeping(createdMs, createdMs, isDeleted ? momentBetween(random, createdMs, untilMs) : null);
  };
  for (const category of trade.categories) {
    put('shop-categories', {
      shop_category_id: random.uuid(),
      shop_id: id,
      category_id: place.ids.categories.get(category)!,
      region: region.code,
      ...link(),
    });
  }
  const tags = someOf(random, trade.tags, 2, 3).map((tag) => place.ids.tags.get(tag)!);
  for (const tag_id of tags) put('shop-tags', { shop_tag_id: random.uuid(), shop_id: id, tag_id, ...link() });
  const keywords = someOf(random, trade.keywords, 2, 4).map((word) => place.ids.keywords.get(word)!);
  for (const keyword_id of keywords) {
    put('shop-keywords', { shop_keyword_id: random.uuid(), shop_id: id, keyword_id, ...link() });
  }

  const shop = { id, name, region, trade, openedMs, closedMs, untilMs };
  const price = trade.usualPrice * (0.7 + 0.6 * random.fraction());
  const branches = putBranches(random, shop, put);
  return {
    id,
    trade,
    price,
    openedMs,
    closedMs: closedMs ?? Number.POSITIVE_INFINITY,
    branches,
    offers: putOffers(random, shop, price, branches, put),
    tags,
    keywords,
  };
}

interface OpenedShop {
  readonly id: string;
  readonly name: string;
  readonly region: Region;
  readonly trade: Trade;
  readonly openedMs: number;
  readonly closedMs: number | null;
  readonly untilMs: number;
}

function putBranches(
  random: Random,
  { id, name, region, trade, openedMs, closedMs, untilMs }: OpenedShop,
  put: Put,
): string[] {
  // Some sell online only.
  if (random.chance(1 - trade.inStoreShare) && random.chance(0.5)) return [];
  const count = random.integer(1, trade.mostBranches);
  const cityRanks = zipf(region.cities.length);
  return Array.from({ length: count }, (_, number) => {
    const city = region.cities[cityRanks.draw(random)]!;
    const branchId = random.uuid();
    put('branches', {
      branch_id: branchId,
      shop_id: id,
      name: count === 1 ? `${name}, ${city.name}` : `${name}, ${city.name} ${number + 1}`,
      region: region.code,
      latitude: degrees(city.latitude + random.nearZero() * CITY_DEGREES),
      longitude: degrees(city.longitude + random.nearZero() * CITY_DEGREES),
      ...bookkeeping(openedMs, lastChangeMs(random, openedMs, untilMs), closedMs),
    });
    return branchId;
  });
}

function degrees(value: number): number {
  return Math.round(value * 1e5) / 1e5;
}

/** What the offer holds for; null: without an end. */
interface Terms {
  readonly name: string;
  readonly type: Offer['type'];
  readonly value: number;
  readonly fromMs: number;
  readonly toMs: number | null;
  readonly branches: readonly string[] | null;
  readonly weekdays: readonly number[] | null;
}

function putOffers(
  random: Random,
  shop: OpenedShop,
  price: number,
  branches: readonly string[],
  put: Put,
): Offer[] {
  const lastMs = shop.closedMs ?? shop.untilMs;
  return [...termsOf(random, shop, price, branches)]
    .filter(({ fromMs, toMs }) => fromMs < lastMs && (toMs === null || toMs > shop.openedMs))
    .map((terms) => {
      const fromMs = Math.max(shop.openedMs, terms.fromMs);
      const endsMs =
        shop.closedMs === null ? terms.toMs : Math.min(shop.closedMs, terms.toMs ?? shop.closedMs);
      return putOffer(random, shop, { ...terms, fromMs, toMs: endsMs }, put);
    });
}

function* termsOf(
  random: Random,
  { openedMs, untilMs }: OpenedShop,
  price: number,
  branches: readonly string[],
): Generator<Terms> {
  const always = { fromMs: openedMs, toMs: null, branches: null, weekdays: null };
  const standing = random.oneOf([5, 10, 10, 10, 15, 20, 25]);
  yield {
    ...always,
    name: `${standing}% student discount`,
    type: 'percentage',
    value: standing,
  };
  if (random.chance(0.4)) {
    const value = Math.max(1, Math.round(price / 5));
    yield { ...always, name: `${value} off when you spend ${4 * value}`, type: 'fixed', value };
  }
  if (random.chance(0.3)) {
    const weekdays = random.oneOf([[1], [2], [3], [2, 3], [1, 2, 3, 4]]);
    yield {
      ...always,
      name: `Student ${weekdays.map((day) => dayNames[day]).join(', ')}`,
      type: 'percentage',
      value: standing + 10,
      weekdays,
    };
  }
  const season = random.oneOf(seasons);
  if (!random.chance(0.6)) return;
  const lastYear = new Date(untilMs).getUTCFullYear();
  const isLocal = branches.length > 2 && random.chance(0.4);
  for (let year = lastYear - 2; year <= lastYear; year++) {
    yield {
      name: `${season.name} ${year}`,
      type: 'percentage',
      value: random.oneOf([20, 25, 30, 40]),
      fromMs: Date.UTC(year, ...season.from),
      toMs: Date.UTC(year, ...season.to) - 1000,
      branches: isLocal ? branches.slice(0, Math.ceil(branches.length / 2)) : null,
      weekdays: null,
    };
  }
}

function putOffer(random: Random, shop: OpenedShop, terms: Terms, put: Put): Offer {
  const { name, type, value, fromMs, toMs, branches, weekdays } = terms;
  const id = random.uuid();
  const createdMs = Math.max(shop.openedMs, fromMs - random.integer(1, 20) * DAY_MS);
  const isOver = toMs !== null && toMs <= shop.untilMs;
  // With its shop, or because it is over.
  const tidiedMs = isOver && random.chance(0.1) ? momentBetween(random, toMs, shop.untilMs) : null;
  const deletedMs = shop.closedMs ?? tidiedMs;
  put('offers', {
    offer_id: id,
    shop_id: shop.id,
    name,
    type,
    value,
    region: shop.region.code,
    allowed_from: moment(fromMs),
    allowed_to: toMs === null ? null : moment(toMs),
    allowed_branches: branches === null ? null : branches.join(','),
    allowed_days: weekdays === null ? null : weekdays.map((day) => dayNames[day]).join(','),
    ...bookkeeping(createdMs, lastChangeMs(random, createdMs, shop.untilMs), deletedMs),
    is_enabled: !isOver,
  });
  return { id, name, type, value, fromMs, toMs: toMs ?? Number.POSITIVE_INFINITY, branches, weekdays };
}

/** From `least` to `most` different ones, in their order. */
function someOf<T>(random: Random, items: readonly T[], least: number, most: number): T[] {
  let wanted = random.integer(least, most);
  return items.filter((_, at) => {
    const isTaken = random.chance(wanted / (items.length - at));
    if (isTaken) wanted--;
    return isTaken;
  });
}
