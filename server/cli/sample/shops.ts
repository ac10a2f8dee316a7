// Generates a shop with its branches, offers, and links to categories, tags and keywords.

import { DAY_MS, moment, type SamplePlan } from './plan.ts';
import type { Random } from './random.ts';
import { bookkeeping, type Put } from './records.ts';
import type { Ids } from './reference-data.ts';
import type { Region } from './regions.ts';
import type { Trade } from './trades.ts';

export interface Offer {
  readonly id: string;
  readonly name: string;
  readonly type: 'percentage' | 'fixed';
  readonly value: number;
  readonly fromMs: number;
  /** When the offer ends, or null if it has no end. */
  readonly toMs: number | null;
  /** The branches in which the offer is valid. Null means that it is valid everywhere. */
  readonly branches: readonly string[] | null;
  /** The days of the week on which the offer is valid. Sunday is 0. Null means every day. */
  readonly weekdays: readonly number[] | null;
}

export interface Shop {
  readonly id: string;
  readonly trade: Trade;
  /** The usual price of a purchase. */
  readonly price: number;
  readonly openedMs: number;
  readonly closedMs: number | null;
  readonly branches: readonly string[];
  readonly offers: readonly Offer[];
  readonly tags: readonly string[];
  readonly keywords: readonly string[];
}

const dayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** How far a branch can be from its city's centre, in each direction: about three kilometres. */
const CITY_DEGREES = 0.03;
const DELETED_LINK_SHARE = 0.01;
const MOST_BRANCHES = 8;

/** The months and days of each season. Months are counted from 0, and `to` is the first day after the season. */
const seasons = [
  { name: 'Welcome week', from: [8, 10], to: [9, 11] },
  { name: 'Winter treat', from: [10, 20], to: [11, 27] },
  { name: 'Spring sale', from: [2, 1], to: [3, 1] },
  { name: 'Exam season', from: [4, 1], to: [5, 16] },
] as const;

export interface ShopToMake {
  readonly plan: SamplePlan;
  readonly random: Random;
  readonly put: Put;
  readonly region: Region;
  readonly trade: Trade;
  /** The first shop of a region is always open. */
  readonly isFirst: boolean;
  readonly closes: boolean;
  readonly categories: Ids;
  readonly tags: Ids;
  readonly keywords: Ids;
}

export function putShop(making: ShopToMake): Shop {
  const { random, put, plan, region, trade, isFirst, closes } = making;
  const { foundedMs, historyMs, untilMs } = plan;
  const isYoung = !isFirst && !closes && random.chance(0.2);
  const openedMs = isYoung
    ? random.momentMs(historyMs, untilMs - 90 * DAY_MS)
    : random.momentMs(foundedMs, historyMs);
  const closedMs = closes ? random.momentMs(openedMs + 60 * DAY_MS, untilMs) : null;
  const shop_id = random.uuid();
  const name = `${region.faker.person.lastName()} ${random.oneOf(trade.kinds)}`;
  put('shops', {
    shop_id,
    name,
    region: region.code,
    is_public: isFirst || (closedMs === null && random.chance(0.95)),
    ...bookkeeping(random, openedMs, untilMs, closedMs),
  });

  const link = (): ReturnType<typeof bookkeeping> => {
    const createdMs = random.momentMs(openedMs, Math.min(openedMs + 30 * DAY_MS, untilMs));
    const isDeleted = random.chance(DELETED_LINK_SHARE);
    return bookkeeping(random, createdMs, untilMs, isDeleted ? random.momentMs(createdMs, untilMs) : null);
  };
  const category_id = making.categories.get(trade.category)!;
  const shop_category_id = random.uuid();
  put('shop-categories', { shop_category_id, shop_id, category_id, region: region.code, ...link() });
  const tags = random.someOf(trade.tags, random.integer(2, 3)).map((tag) => making.tags.get(tag)!);
  for (const tag_id of tags) put('shop-tags', { shop_tag_id: random.uuid(), shop_id, tag_id, ...link() });
  const keywords = random
    .someOf(trade.keywords, random.integer(2, 4))
    .map((one) => making.keywords.get(one)!);
  for (const keyword_id of keywords) {
    put('shop-keywords', { shop_keyword_id: random.uuid(), shop_id, keyword_id, ...link() });
  }

  const price = trade.usualPrice * (0.7 + 0.6 * random.fraction());
  const shop = { id: shop_id, trade, price, openedMs, closedMs, tags, keywords };
  const branches = putBranches(making, shop, name);
  const offers = [...offersOf(making, { ...shop, branches })];
  for (const offer of offers) putOffer(making, shop, offer);
  return { ...shop, branches, offers };
}

type OpenedShop = Omit<Shop, 'offers' | 'branches'>;

function putBranches(
  { random, put, plan, region }: ShopToMake,
  shop: OpenedShop,
  shopName: string,
): string[] {
  const { inStoreShare } = shop.trade;
  // Some shops sell only online, and have no branches.
  if (!random.chance(inStoreShare) && random.chance(0.5)) return [];
  const count = random.integer(1, Math.ceil(MOST_BRANCHES * inStoreShare));
  const degrees = (center: number): number =>
    Math.round((center + (2 * random.fraction() - 1) * CITY_DEGREES) * 1e5) / 1e5;
  return Array.from({ length: count }, (_, index) => {
    const city = random.oneOfRanked(region.cities);
    const branch_id = random.uuid();
    put('branches', {
      branch_id,
      shop_id: shop.id,
      name: `${shopName}, ${city.name}${count === 1 ? '' : ` ${index + 1}`}`,
      region: region.code,
      latitude: degrees(city.latitude),
      longitude: degrees(city.longitude),
      ...bookkeeping(random, shop.openedMs, plan.untilMs, shop.closedMs),
    });
    return branch_id;
  });
}

/** Yields the offers that the shop has while it is open. */
function* offersOf({ random, plan }: ShopToMake, shop: Omit<Shop, 'offers'>): Generator<Offer> {
  const { openedMs, closedMs, price, branches } = shop;
  const always = { fromMs: openedMs, toMs: closedMs, branches: null, weekdays: null };
  const percent = random.oneOf([5, 10, 10, 10, 15, 20, 25]);
  const percentage = { type: 'percentage', value: percent } as const;
  yield { ...always, ...percentage, id: random.uuid(), name: `${percent}% student discount` };
  if (random.chance(0.4)) {
    const value = Math.max(1, Math.round(price / 5));
    const name = `${value} off when you spend ${4 * value}`;
    yield { ...always, id: random.uuid(), name, type: 'fixed', value };
  }
  if (random.chance(0.3)) {
    const weekdays = random.oneOf([[1], [2], [3], [2, 3], [1, 2, 3, 4]]);
    const name = `Student ${weekdays.map((day) => dayNames[day]).join(', ')}`;
    yield { ...always, ...percentage, id: random.uuid(), name, value: percent + 10, weekdays };
  }
  if (!random.chance(0.6)) return;
  const season = random.oneOf(seasons);
  const isLocal = branches.length > 2 && random.chance(0.4);
  const lastYear = new Date(plan.untilMs).getUTCFullYear();
  for (let year = lastYear - 2; year <= lastYear; year++) {
    const fromMs = Math.max(openedMs, Date.UTC(year, ...season.from));
    const toMs = Math.min(closedMs ?? Number.POSITIVE_INFINITY, Date.UTC(year, ...season.to) - 1000);
    if (fromMs >= Math.min(toMs, plan.untilMs)) continue;
    yield {
      ...percentage,
      id: random.uuid(),
      name: `${season.name} ${year}`,
      value: random.oneOf([20, 25, 30, 40]),
      fromMs,
      toMs,
      branches: isLocal ? branches.slice(0, Math.ceil(branches.length / 2)) : null,
      weekdays: null,
    };
  }
}

function putOffer({ random, put, plan, region }: ShopToMake, shop: OpenedShop, offer: Offer): void {
  const { fromMs, toMs, branches, weekdays } = offer;
  const createdMs = Math.max(shop.openedMs, fromMs - random.integer(1, 20) * DAY_MS);
  const isOver = toMs !== null && toMs <= plan.untilMs;
  // An offer is deleted together with its shop, or some time after the offer has ended.
  const tidiedMs = isOver && random.chance(0.1) ? random.momentMs(toMs, plan.untilMs) : null;
  put('offers', {
    offer_id: offer.id,
    shop_id: shop.id,
    name: offer.name,
    type: offer.type,
    value: offer.value,
    region: region.code,
    allowed_from: moment(fromMs),
    allowed_to: toMs === null ? null : moment(toMs),
    allowed_branches: branches?.join(',') ?? null,
    allowed_days: weekdays?.map((day) => dayNames[day]).join(',') ?? null,
    ...bookkeeping(random, createdMs, plan.untilMs, shop.closedMs ?? tidiedMs),
    is_enabled: !isOver,
  });
}
