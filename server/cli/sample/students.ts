// The students of a sample, one after the other: who they are, what they buy, which shops they mark as favourites, and
// what they look at before they buy. Each has chance of its own, so that none needs to be remembered.

import { DAY_MS, HISTORY_DAYS, JOINING_DAYS, moment, type SamplePlan } from './plan.ts';
import { Random, Weighted, zipf } from './random.ts';
import { bookkeeping, lastChangeMs, momentBetween, type Put, type SampleRecords } from './records.ts';
import type { City } from './regions.ts';
import type { Offer, RegionOfTown, Shop, Town } from './town.ts';
import { hourWeights, monthWeights, type Trade, trades, weekdayWeights } from './trades.ts';

type Interaction = SampleRecords['user-interactions'];

/** About so many purchases in all of the time, on average; those who joined later make fewer. */
const PURCHASES_SCALE = 15;
const MOST_PURCHASES = 400;
const MOST_SHOPS = 6;
const OFFER_SHARE = 0.85;
const REFUNDED_SHARE = 0.005;
const LEFT_SHARE = 0.01;
const FAVOURITE_SHARE = 0.55;
const MINUTE_MS = 60_000;

/** When students buy in the shops of a trade: days of the history, and hours of the day. */
interface Times {
  readonly days: Weighted;
  readonly hours: Weighted;
}

interface Student {
  readonly random: Random;
  readonly customerId: string;
  readonly userId: string;
  readonly here: RegionOfTown;
  readonly city: City;
  readonly platform: Interaction['platform'];
  /** The days of the history on which the student is there; none where the first is after the last. */
  readonly firstDay: number;
  readonly lastDay: number;
}

interface Purchase {
  readonly shop: Shop;
  readonly atMs: number;
  readonly priceCents: number;
  readonly branch: string | null;
  readonly offer: Offer | null;
}

interface Event {
  readonly atMs: number;
  readonly interaction: Interaction;
}

export class Students {
  readonly #plan: SamplePlan;
  readonly #town: Town;
  readonly #put: Put;
  readonly #times: ReadonlyMap<Trade, Times>;
  readonly #joiningDays: Weighted;
  readonly #ages = new Weighted([6, 20, 20, 18, 13, 8, 5, 3, 2, 2, 1, 1, 1]);
  readonly #favouritesFirst = Array.from({ length: MOST_SHOPS }, (_, shops) => zipf(shops + 1));

  constructor(plan: SamplePlan, town: Town, put: Put) {
    this.#plan = plan;
    this.#town = town;
    this.#put = put;
    this.#joiningDays = new Weighted(
      daysFrom(this.#firstJoiningMs(), JOINING_DAYS).map((day) => monthWeights.term[day.getUTCMonth()]!),
    );
    const history = daysFrom(plan.historyMs, HISTORY_DAYS);
    this.#times = new Map(
      trades.map((trade) => [
        trade,
        {
          days: new Weighted(
            history.map(
              (day) =>
                monthWeights[trade.year][day.getUTCMonth()]! * weekdayWeights[trade.week][day.getUTCDay()]!,
            ),
          ),
          hours: new Weighted(hourWeights[trade.hours]),
        },
      ]),
    );
  }

  #firstJoiningMs(): number {
    return this.#plan.historyMs - (JOINING_DAYS - HISTORY_DAYS) * DAY_MS;
  }

  /** Puts the student of this number with everything that belongs to it. */
  putStudent(number: number): void {
    const student = this.#putCustomer(new Random(this.#plan.seed, 'student', number));
    const purchases = this.#purchasesOf(student);
    const events: Event[] = [];
    for (const purchase of purchases) {
      this.#putTransaction(student, purchase);
      this.#addEventsAround(student, purchase, events);
    }
    if (purchases.length === 0) this.#addEventsOfLooking(student, events);
    events.sort((one, other) => one.atMs - other.atMs);
    for (const { interaction } of events) this.#put('user-interactions', interaction);
    this.#putFavourites(student, purchases);
  }

  #putCustomer(random: Random): Student {
    const { untilMs, historyMs } = this.#plan;
    const here = this.#town.regions[this.#town.regionWeights.draw(random)]!;
    const institute = random.oneOf(here.institutes);
    const joinedMs =
      this.#firstJoiningMs() +
      this.#joiningDays.draw(random) * DAY_MS +
      random.integer(7 * 3600, 23 * 3600) * 1000;
    const leftMs = random.chance(LEFT_SHARE) ? momentBetween(random, joinedMs, untilMs) : null;
    const customerId = random.uuid();
    const userId = random.uuid();
    // A share has left out what is not required.
    this.#put('customers', {
      customer_id: customerId,
      user_id: userId,
      region: here.region.code,
      birthdate: random.chance(0.96) ? this.#birthdate(random, joinedMs) : null,
      institute_id: random.chance(0.95) ? institute.id : null,
      course_id: random.chance(0.9) ? random.oneOf(this.#town.courses) : null,
      gender: random.chance(0.85) ? random.oneOf(genders) : null,
      ...bookkeeping(joinedMs, lastChangeMs(random, joinedMs, untilMs), leftMs),
    });
    return {
      random,
      customerId,
      userId,
      here,
      city: institute.city,
      platform: random.oneOf(platforms),
      // From the day after joining, so that nothing that leads up to the first purchase comes before it.
      firstDay: Math.max(0, dayOf(joinedMs, historyMs) + 1),
      lastDay: leftMs === null ? HISTORY_DAYS - 1 : dayOf(leftMs, historyMs) - 1,
    };
  }

  /** Between 17 and 29 years before the student joined. */
  #birthdate(random: Random, joinedMs: number): string {
    const ageDays = (17 + this.#ages.draw(random)) * 365.25 + random.integer(0, 364);
    return moment(joinedMs - Math.floor(ageDays) * DAY_MS).slice(0, 'YYYY-MM-DD'.length);
  }

  /** In the order of time. */
  #purchasesOf(student: Student): Purchase[] {
    const { random, firstDay, lastDay } = student;
    const share = Math.max(0, lastDay - firstDay + 1) / HISTORY_DAYS;
    // Of the Lomax distribution: many buy seldom, a few all the time.
    const drawn = PURCHASES_SCALE * (1 / Math.sqrt(1 - random.fraction()) - 1);
    const count = Math.floor(Math.min(MOST_PURCHASES, drawn) * share);
    if (count === 0) return [];
    const shops = this.#shopsOf(student);
    const order = this.#favouritesFirst[shops.length - 1]!;
    return Array.from({ length: count }, () => this.#purchase(student, shops[order.draw(random)]!)).sort(
      (one, other) => one.atMs - other.atMs,
    );
  }

  /** Where the student buys: popular shops are found more often. */
  #shopsOf({ random, here }: Student): Shop[] {
    const found = new Set<Shop>();
    for (let look = random.integer(1, MOST_SHOPS); look > 0; look--) {
      found.add(here.shops[here.popularity.draw(random)]!);
    }
    return [...found];
  }

  #purchase(student: Student, wanted: Shop): Purchase {
    const { random, here, firstDay, lastDay } = student;
    const { historyMs, untilMs } = this.#plan;
    const opened = Math.max(firstDay, dayOf(wanted.openedMs, historyMs) + 1);
    const closed = Math.min(lastDay, dayOf(Math.min(wanted.closedMs, untilMs + 1000), historyMs) - 1);
    // Where it was never open while the student was there, it is bought at the shop that always is.
    const isOpen = opened <= closed;
    const shop = isOpen ? wanted : here.shops[0]!;
    const { days, hours } = this.#times.get(shop.trade)!;
    const day = isOpen ? days.draw(random, opened, closed) : days.draw(random, firstDay, lastDay);
    const atMs =
      historyMs + day * DAY_MS + hours.draw(random) * 60 * MINUTE_MS + random.integer(0, 3599) * 1000;
    const isInStore = shop.branches.length > 0 && random.chance(shop.trade.inStoreShare);
    const branch = isInStore ? random.oneOf(shop.branches) : null;
    const skew = random.fraction();
    const cents = Math.max(100, Math.round(shop.price * 100 * (0.35 + 2.2 * skew * skew)));
    // Prices like to end on 99.
    const priceCents = random.chance(0.4) ? Math.floor(cents / 100) * 100 + 99 : cents;
    const offer = random.chance(OFFER_SHARE) ? offerFor(random, shop, atMs, priceCents, branch) : null;
    return { shop, atMs, priceCents, branch, offer };
  }

  #putTransaction(student: Student, { shop, atMs, priceCents, branch, offer }: Purchase): void {
    const { random, customerId, here } = student;
    const savedCents = offer === null ? 0 : savedCentsWith(offer, priceCents);
    const isRefunded = random.chance(REFUNDED_SHARE);
    const settledMs =
      isRefunded || random.chance(0.1)
        ? Math.min(this.#plan.untilMs, atMs + random.integer(1, 72 * 60) * MINUTE_MS)
        : atMs;
    this.#put('transactions', {
      transaction_id: random.uuid(),
      shop_id: shop.id,
      region: here.region.code,
      savings: savedCents / 100,
      amount: (priceCents - savedCents) / 100,
      student_id: customerId,
      offer_id: offer === null ? null : offer.id,
      branch_id: branch,
      source: branch !== null ? 'in-store' : student.platform === 'WEB' ? 'online' : 'app',
      created: moment(atMs),
      updated: moment(settledMs),
      is_deleted: isRefunded,
      discount_name: offer === null ? null : offer.name,
      discount_type: offer === null ? null : offer.type,
      discount_value: offer === null ? null : offer.value,
    });
  }

  /** What leads up to a purchase, and sometimes follows it. */
  #addEventsAround(student: Student, { shop, atMs, offer, branch }: Purchase, events: Event[]): void {
    const { random } = student;
    const recommendation = random.chance(0.15) ? random.uuid() : null;
    const viewedMs = atMs - random.integer(2, 40) * MINUTE_MS;
    if (random.chance(0.06)) {
      const [kind, ids] = random.chance(0.6)
        ? (['TAG', shop.tags] as const)
        : (['KEYWORD', shop.keywords] as const);
      const filteredMs = viewedMs - random.integer(5, 300) * 1000;
      events.push(this.#event(student, filteredMs, 'FILTER_CLICK', kind, random.oneOf(ids), null));
    }
    if (random.chance(0.24)) {
      events.push(this.#event(student, viewedMs, 'PAGE_VIEW', 'SHOP', shop.id, recommendation));
    }
    if (offer === null) return;
    // Over the counter the code is shown; online it is copied.
    if (random.chance(branch === null ? 0.3 : 0.15)) {
      const shownMs = atMs - random.integer(10, 110) * 1000;
      events.push(this.#event(student, shownMs, 'DISCOUNT_CODE', 'OFFER', offer.id, recommendation));
    }
    if (random.chance(0.02)) {
      const sharedMs = Math.min(this.#plan.untilMs, atMs + random.integer(1, 240) * MINUTE_MS);
      events.push(this.#event(student, sharedMs, 'SHARE', 'OFFER', offer.id, null));
    }
  }

  /** Those who have bought nothing look, too. */
  #addEventsOfLooking(student: Student, events: Event[]): void {
    const { random, here, firstDay, lastDay } = student;
    if (firstDay > lastDay) return;
    const [shop] = here.shops;
    const { days, hours } = this.#times.get(shop!.trade)!;
    for (let looks = random.integer(0, 3); looks > 0; looks--) {
      const dayMs = this.#plan.historyMs + days.draw(random, firstDay, lastDay) * DAY_MS;
      const atMs = dayMs + hours.draw(random) * 60 * MINUTE_MS + random.integer(0, 3599) * 1000;
      events.push(this.#event(student, atMs, 'PAGE_VIEW', 'SHOP', shop!.id, null));
    }
  }

  #event(
    student: Student,
    atMs: number,
    interaction_type: Interaction['interaction_type'],
    item_type: Interaction['item_type'],
    item_id: string,
    recommendation_id: string | null,
  ): Event {
    const { random, customerId, userId, here, city, platform } = student;
    // Some are not signed in.
    const isKnown = random.chance(0.9);
    return {
      atMs,
      interaction: {
        interaction_type,
        user_id: isKnown ? userId : null,
        student_id: isKnown ? customerId : null,
        item_type,
        item_id,
        city: city.name,
        country: here.region.country,
        platform,
        event_timestamp: timestampOf(platform, atMs),
        source: recommendation_id === null ? null : 'SERVICE',
        recommendation_id,
      },
    };
  }

  /** Among the shops where the student has really bought, and not before the first purchase there. */
  #putFavourites({ random, customerId }: Student, purchases: readonly Purchase[]): void {
    const seen = new Set<Shop>();
    for (const { shop, atMs } of purchases) {
      if (seen.has(shop)) continue;
      seen.add(shop);
      if (!random.chance(FAVOURITE_SHARE)) continue;
      const markedMs = momentBetween(random, atMs, Math.min(this.#plan.untilMs, atMs + 30 * DAY_MS));
      const unmarkedMs = random.chance(0.05) ? momentBetween(random, markedMs, this.#plan.untilMs) : null;
      this.#put('student-favourites', {
        student_favourite_id: random.uuid(),
        student_id: customerId,
        shop_id: shop.id,
        ...bookkeeping(markedMs, markedMs, unmarkedMs),
      });
    }
  }
}

const genders = ['female', 'female', 'female', 'male', 'male', 'male', 'non-binary'];
const platforms: readonly Interaction['platform'][] = [
  'ANDROID',
  'ANDROID',
  'ANDROID',
  'ANDROID',
  'IOS',
  'IOS',
  'IOS',
  'WEB',
  'WEB',
  'OTHER',
];

/** Clients tell the time each in its own way. */
function timestampOf(platform: Interaction['platform'], atMs: number): string | number {
  if (platform === 'ANDROID') return atMs;
  return platform === 'IOS' ? atMs / 1000 : moment(atMs);
}

function daysFrom(firstMs: number, days: number): Date[] {
  return Array.from({ length: days }, (_, day) => new Date(firstMs + day * DAY_MS));
}

function dayOf(ms: number, historyMs: number): number {
  return Math.floor((ms - historyMs) / DAY_MS);
}

/** One that holds then and there, or null. */
function offerFor(
  random: Random,
  { offers }: Shop,
  atMs: number,
  priceCents: number,
  branch: string | null,
): Offer | null {
  const weekday = (Math.floor(atMs / DAY_MS) + 4) % 7;
  const holding = offers.filter(
    ({ type, value, fromMs, toMs, branches, weekdays }) =>
      fromMs <= atMs &&
      atMs <= toMs &&
      (weekdays === null || weekdays.includes(weekday)) &&
      (branches === null || (branch !== null && branches.includes(branch))) &&
      (type === 'percentage' || priceCents >= 4 * value * 100),
  );
  return holding.length === 0 ? null : random.oneOf(holding);
}

function savedCentsWith({ type, value }: Offer, priceCents: number): number {
  return type === 'fixed' ? value * 100 : Math.round((priceCents * value) / 100);
}
