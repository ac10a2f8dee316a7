// Generates the students of a sample one by one, with their purchases, favourite shops and interactions.

import { DAY_MS, HISTORY_DAYS, JOINING_DAYS, moment, type SamplePlan } from './plan.ts';
import type { Random } from './random.ts';
import { bookkeeping, type Put, type SampleRecords } from './records.ts';
import type { ReferenceData, RegionData } from './reference-data.ts';
import type { City } from './regions.ts';
import type { Offer, Shop } from './shops.ts';
import { type Rhythm, term } from './trades.ts';

type Interaction = SampleRecords['user-interactions'];

/** The average number of purchases of a student who is a member during the whole history. */
const PURCHASES_SCALE = 15;
const LONGEST_THINKING_DAYS = 20;
const MOST_LOOKS = 6;
const MOST_PURCHASES = 400;
const MOST_SHOPS = 6;
const OFFER_SHARE = 0.85;
const REFUNDED_SHARE = 0.005;
const LEFT_SHARE = 0.01;
const FAVOURITE_SHARE = 0.55;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The weights of ages, starting at 17 years. */
const ageWeights = [6, 20, 20, 18, 13, 8, 5, 3, 2, 2, 1, 1, 1];
/** The largest weight of any month or weekday. */
const MOST_WEIGHT = 18;

interface Student {
  readonly customerId: string;
  readonly userId: string;
  readonly here: RegionData;
  readonly city: City;
  readonly platform: Interaction['platform'];
  /** The first and last day on which the student can buy. If the first is after the last, the student cannot buy. */
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
  readonly #data: ReferenceData;
  readonly #random: Random;
  readonly #put: Put;
  readonly #regionShares: readonly number[];
  /** The first of the days on which students can join. */
  readonly #joiningMs: number;

  constructor(plan: SamplePlan, data: ReferenceData, random: Random, put: Put) {
    this.#plan = plan;
    this.#data = data;
    this.#random = random;
    this.#put = put;
    this.#regionShares = data.regions.map(({ region }) => region.share);
    this.#joiningMs = plan.historyMs - (JOINING_DAYS - HISTORY_DAYS) * DAY_MS;
  }

  /** Calls `put` with a student and all records that belong to it. */
  putStudent(): void {
    const student = this.#putCustomer();
    const purchases = this.#purchasesOf(student);
    const events: Event[] = [];
    for (const purchase of purchases) {
      this.#putTransaction(student, purchase);
      this.#addEventsAround(student, purchase, events);
    }
    this.#addEventsOfLooking(student, events);
    events.sort((one, other) => one.atMs - other.atMs);
    for (const { interaction } of events) this.#put('user-interactions', interaction);
    this.#putFavourites(student, purchases);
  }

  #putCustomer(): Student {
    const random = this.#random;
    const { untilMs, historyMs } = this.#plan;
    const here = this.#data.regions[random.weighted(this.#regionShares)]!;
    const institute = random.oneOf(here.institutes);
    const joinedDay = random.integerBy(0, JOINING_DAYS - 1, (day) => {
      return term.months[new Date(this.#joiningMs + day * DAY_MS).getUTCMonth()]! / MOST_WEIGHT;
    });
    const joinedMs = this.#joiningMs + joinedDay * DAY_MS + random.integer(7 * 3600, 23 * 3600) * 1000;
    const leftMs = random.chance(LEFT_SHARE) ? random.momentMs(joinedMs, untilMs) : null;
    const customerId = random.uuid();
    const userId = random.uuid();
    // Some students have not filled in the optional fields.
    this.#put('customers', {
      customer_id: customerId,
      user_id: userId,
      region: here.region.code,
      birthdate: random.chance(0.96) ? this.#birthdate(joinedMs) : null,
      institute_id: random.chance(0.95) ? institute.id : null,
      course_id: random.chance(0.9) ? random.oneOf(this.#data.courses) : null,
      gender: random.chance(0.85) ? random.oneOf(genders) : null,
      ...bookkeeping(random, joinedMs, untilMs, leftMs),
    });
    return {
      customerId,
      userId,
      here,
      city: institute.city,
      platform: random.oneOf(platforms),
      // A student can buy from the day after joining, because the interactions before a purchase must be after joining.
      firstDay: Math.max(0, dayOf(joinedMs, historyMs) + 1),
      lastDay: leftMs === null ? HISTORY_DAYS - 1 : dayOf(leftMs, historyMs) - 1,
    };
  }

  /** Returns the date of birth of a student who is 17 to 29 years old when joining. */
  #birthdate(joinedMs: number): string {
    const ageDays = (17 + this.#random.weighted(ageWeights)) * 365.25 + this.#random.integer(0, 364);
    return moment(joinedMs - Math.floor(ageDays) * DAY_MS).slice(0, 'YYYY-MM-DD'.length);
  }

  /** Returns the purchases in chronological order. */
  #purchasesOf(student: Student): Purchase[] {
    const random = this.#random;
    const share = Math.max(0, student.lastDay - student.firstDay + 1) / HISTORY_DAYS;
    // A Lomax distribution: many students buy seldom, and a few buy all the time.
    const drawn = PURCHASES_SCALE * (1 / Math.sqrt(1 - random.fraction()) - 1);
    const count = Math.floor(Math.min(MOST_PURCHASES, drawn) * share);
    const shops = Array.from({ length: random.integer(1, MOST_SHOPS) }, () =>
      random.oneOfRanked(student.here.shops),
    );
    return Array.from({ length: count }, () => this.#purchase(student, random.oneOfRanked(shops))).sort(
      (one, other) => one.atMs - other.atMs,
    );
  }

  #purchase({ here, firstDay, lastDay }: Student, wanted: Shop): Purchase {
    const random = this.#random;
    const { historyMs, untilMs } = this.#plan;
    const openedDay = Math.max(firstDay, dayOf(wanted.openedMs, historyMs) + 1);
    const closedDay = Math.min(lastDay, dayOf(wanted.closedMs ?? untilMs + 1000, historyMs) - 1);
    // If that shop was never open while the student could buy, the student buys at the shop that is always open.
    const isOpen = openedDay <= closedDay;
    const shop = isOpen ? wanted : here.shops[0]!;
    const { rhythm, inStoreShare } = shop.trade;
    const atMs = isOpen
      ? this.#momentMs(rhythm, openedDay, closedDay)
      : this.#momentMs(rhythm, firstDay, lastDay);
    const isInStore = shop.branches.length > 0 && random.chance(inStoreShare);
    const branch = isInStore ? random.oneOf(shop.branches) : null;
    const skew = random.fraction();
    const cents = Math.max(100, Math.round(shop.price * 100 * (0.35 + 2.2 * skew * skew)));
    // Many prices end in 99.
    const priceCents = random.chance(0.4) ? Math.floor(cents / 100) * 100 + 99 : cents;
    const valid = shop.offers.filter((offer) => isValid(offer, atMs, priceCents, branch));
    const offer = valid.length > 0 && random.chance(OFFER_SHARE) ? random.oneOf(valid) : null;
    return { shop, atMs, priceCents, branch, offer };
  }

  /** Returns a time between `firstDay` and `lastDay`, inclusive. Days are counted from the start of the history. */
  #momentMs({ months, weekdays, hours }: Rhythm, firstDay: number, lastDay: number): number {
    const day = this.#random.integerBy(firstDay, lastDay, (drawn) => {
      const date = new Date(this.#plan.historyMs + drawn * DAY_MS);
      return (months[date.getUTCMonth()]! / MOST_WEIGHT) * (weekdays[date.getUTCDay()]! / MOST_WEIGHT);
    });
    const withinHourMs = this.#random.integer(0, 3599) * 1000;
    return this.#plan.historyMs + day * DAY_MS + this.#random.weighted(hours) * HOUR_MS + withinHourMs;
  }

  #putTransaction(student: Student, { shop, atMs, priceCents, branch, offer }: Purchase): void {
    const random = this.#random;
    const savedCents = offer === null ? 0 : savedCentsWith(offer, priceCents);
    const isRefunded = random.chance(REFUNDED_SHARE);
    const settledMs =
      isRefunded || random.chance(0.1)
        ? Math.min(this.#plan.untilMs, atMs + random.integer(1, 72 * 60) * MINUTE_MS)
        : atMs;
    this.#put('transactions', {
      transaction_id: random.uuid(),
      shop_id: shop.id,
      region: student.here.region.code,
      savings: savedCents / 100,
      amount: (priceCents - savedCents) / 100,
      student_id: student.customerId,
      offer_id: offer?.id ?? null,
      branch_id: branch,
      source: branch !== null ? 'in-store' : student.platform === 'WEB' ? 'online' : 'app',
      created: moment(atMs),
      updated: moment(settledMs),
      is_deleted: isRefunded,
      discount_name: offer?.name ?? null,
      discount_type: offer?.type ?? null,
      discount_value: offer?.value ?? null,
    });
  }

  /** Adds the interactions before a purchase, and sometimes after it. */
  #addEventsAround(student: Student, { shop, atMs, offer, branch }: Purchase, events: Event[]): void {
    const random = this.#random;
    const recommendation = this.#recommendation();
    // Some students think about it for days.
    const daysOfStay = dayOf(atMs, this.#plan.historyMs) - student.firstDay;
    const thinkingDays = random.chance(0.3)
      ? random.integer(0, Math.min(LONGEST_THINKING_DAYS, daysOfStay))
      : 0;
    const viewedMs = atMs - thinkingDays * DAY_MS - random.integer(2, 40) * MINUTE_MS;
    if (random.chance(0.06)) {
      const isTag = random.chance(0.6);
      const id = random.oneOf(isTag ? shop.tags : shop.keywords);
      const filteredMs = viewedMs - random.integer(5, 300) * 1000;
      events.push(this.#event(student, filteredMs, 'FILTER_CLICK', isTag ? 'TAG' : 'KEYWORD', id));
    }
    if (random.chance(0.12)) {
      events.push(this.#event(student, viewedMs, 'PAGE_VIEW', 'SHOP', shop.id, recommendation));
    }
    if (offer === null) return;
    // The student shows the discount code in a branch, or copies it for a purchase online.
    if (random.chance(branch === null ? 0.3 : 0.15)) {
      const shownMs = atMs - random.integer(10, 110) * 1000;
      events.push(this.#event(student, shownMs, 'DISCOUNT_CODE', 'OFFER', offer.id, recommendation));
    }
    if (random.chance(0.02)) {
      const sharedMs = Math.min(this.#plan.untilMs, atMs + random.integer(1, 240) * MINUTE_MS);
      events.push(this.#event(student, sharedMs, 'SHARE', 'OFFER', offer.id));
    }
  }

  /** Adds interactions after which the student usually buys nothing. */
  #addEventsOfLooking(student: Student, events: Event[]): void {
    const random = this.#random;
    const { here, firstDay, lastDay } = student;
    if (firstDay > lastDay) return;
    for (let looks = random.integer(0, MOST_LOOKS); looks > 0; looks--) {
      const shop = random.oneOfRanked(here.shops);
      const atMs = this.#momentMs(shop.trade.rhythm, firstDay, lastDay);
      const isOpen = atMs >= shop.openedMs && atMs < (shop.closedMs ?? Infinity);
      if (isOpen) {
        events.push(this.#event(student, atMs, 'PAGE_VIEW', 'SHOP', shop.id, this.#recommendation()));
      }
    }
  }

  #recommendation(): string | null {
    return this.#random.chance(0.15) ? this.#random.uuid() : null;
  }

  #event(
    { customerId, userId, here, city, platform }: Student,
    atMs: number,
    interaction_type: Interaction['interaction_type'],
    item_type: Interaction['item_type'],
    item_id: string,
    recommendation_id: string | null = null,
  ): Event {
    // Some students are not signed in, so their interactions name no user and no student.
    const isKnown = this.#random.chance(0.9);
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

  /** Calls `put` with the favourite shops of a student, who marks some shops after the first purchase there. */
  #putFavourites({ customerId }: Student, purchases: readonly Purchase[]): void {
    const random = this.#random;
    const { untilMs } = this.#plan;
    for (const [shop, [first]] of Map.groupBy(purchases, (purchase) => purchase.shop)) {
      if (!random.chance(FAVOURITE_SHARE)) continue;
      const markedMs = random.momentMs(first!.atMs, Math.min(untilMs, first!.atMs + 30 * DAY_MS));
      const unmarkedMs = random.chance(0.05) ? random.momentMs(markedMs, untilMs) : null;
      this.#put('student-favourites', {
        student_favourite_id: random.uuid(),
        student_id: customerId,
        shop_id: shop.id,
        ...bookkeeping(random, markedMs, untilMs, unmarkedMs),
      });
    }
  }
}

const genders = ['female', 'female', 'female', 'male', 'male', 'male', 'non-binary'];
const platforms = [
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
] as const;

/** Returns the time in the format of the platform. Each platform uses a different format. */
function timestampOf(platform: Interaction['platform'], atMs: number): string | number {
  if (platform === 'ANDROID') return atMs;
  return platform === 'IOS' ? atMs / 1000 : moment(atMs);
}

function dayOf(ms: number, historyMs: number): number {
  return Math.floor((ms - historyMs) / DAY_MS);
}

function isValid(
  { type, value, fromMs, toMs, branches, weekdays }: Offer,
  atMs: number,
  priceCents: number,
  branch: string | null,
): boolean {
  return (
    fromMs <= atMs &&
    (toMs === null || atMs <= toMs) &&
    (weekdays === null || weekdays.includes(new Date(atMs).getUTCDay())) &&
    (branches === null || (branch !== null && branches.includes(branch))) &&
    (type === 'percentage' || priceCents >= 4 * value * 100)
  );
}

function savedCentsWith({ type, value }: Offer, priceCents: number): number {
  return type === 'fixed' ? value * 100 : Math.round((priceCents * value) / 100);
}
