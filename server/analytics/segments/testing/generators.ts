// Random records and conditions. Values come from small pools, so that they often meet.

import type { KindName } from '@headgate/catalogue/kinds/kind.ts';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import fc, { type Arbitrary } from 'fast-check';
import type { Records, Row, Value } from './evaluation.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Returns the id with this number. */
export function id(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

const ids = fc.integer({ min: 1, max: 4 }).map(id);
const names = fc.constantFrom('a', 'b', 'ab', 'B', 'ä', "'");
const regions = fc.constantFrom('DE', 'AT', 'FR');
const numbers = fc.constantFrom(-2, 0, 0.5, 1, 2, 3, 18, 26);
const dates = fc.constantFrom('2000-02-29', '2000-02-28', '2000-03-01', '2008-03-01', '1999-12-31');
const itemTypes = fc.constantFrom('TAG', 'OFFER', 'SHOP', 'KEYWORD');
const interactionTypes = fc.constantFrom('SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE');

/** Times of evaluation, in a leap year and in others, at the beginning and at the end of days. */
export const asOfs = fc.constantFrom(
  new Date('2026-02-28T23:59:59.999Z'),
  new Date('2026-03-01T00:00:00.000Z'),
  new Date('2024-02-29T12:00:00.000Z'),
);

const HOUR_MICROS = 3_600_000_000n;

/** Returns times around the edges of all windows that `timesGiven` and `durations` lead to. */
function times(asOf: Date): Arbitrary<string> {
  const asOfMicros = BigInt(asOf.getTime()) * 1000n;
  const day = BigInt(Date.parse(asOf.toISOString().slice(0, 10))) * 1000n;
  const edges = [0n, 12n, 24n * 30n, 168n].map((hours) => asOfMicros - hours * HOUR_MICROS);
  return fc
    .tuple(fc.constantFrom(...edges, day), fc.constantFrom(-1n, 0n, 1n, -HOUR_MICROS, HOUR_MICROS))
    .map(([edge, offset]) => timeText(edge + offset));
}

function timeText(micros: bigint): string {
  const ms = new Date(Number(micros / 1000n)).toISOString().slice(0, -1);
  return `${ms}${String(micros % 1000n).padStart(3, '0')}Z`;
}

const durations = fc.constantFrom('12h', '30d', '1w');
const longestFirst = ['30d ago', '1w ago', '12h ago'];

function timesGiven(asOf: Date): Arbitrary<string> {
  return fc.oneof(
    durations.map((duration) => `${duration} ago`),
    fc.constant(asOf.toISOString().slice(0, 10)),
    times(asOf),
  );
}

/** Generates the records of an organisation. */
export function records(asOf: Date): Arbitrary<Records> {
  const time = times(asOf);
  const deleted = fc.constantFrom(false, false, false, null, true);
  const stamps = { created: maybe(time), updated: maybe(time), is_deleted: deleted };
  const rows = (key: string, most: number, fields: Record<string, Arbitrary<Value>>): Arbitrary<Row[]> =>
    fc.uniqueArray(fc.record({ [key]: fc.integer({ min: 1, max: most }).map(id), ...fields }), {
      selector: (row) => row[key],
      maxLength: most,
      size: 'max',
    });
  const customerIds = fc.integer({ min: 1, max: 9 }).map(id);
  return fc.record({
    customers: rows('customer_id', 8, {
      user_id: ids,
      region: regions,
      birthdate: maybe(dates),
      institute_id: maybe(ids),
      course_id: maybe(ids),
      gender: maybe(names),
      ...stamps,
    }),
    transactions: rows('transaction_id', 25, {
      shop_id: ids,
      region: regions,
      savings: numbers,
      amount: numbers,
      student_id: maybe(customerIds),
      offer_id: maybe(ids),
      branch_id: maybe(ids),
      source: maybe(names),
      ...stamps,
      discount_name: maybe(names),
      discount_type: maybe(names),
      discount_value: maybe(numbers),
    }),
    offers: rows('offer_id', 4, {
      shop_id: ids,
      name: names,
      type: names,
      value: numbers,
      region: regions,
      allowed_from: maybe(time),
      allowed_to: maybe(time),
      allowed_branches: maybe(names),
      allowed_days: maybe(names),
      ...stamps,
      is_enabled: maybe(fc.boolean()),
    }),
    shops: rows('shop_id', 4, { name: names, region: regions, is_public: maybe(fc.boolean()), ...stamps }),
    branches: rows('branch_id', 4, {
      shop_id: ids,
      name: names,
      region: regions,
      latitude: maybe(numbers),
      longitude: maybe(numbers),
      ...stamps,
    }),
    categories: rows('category_id', 4, { name: names, region: regions, ...stamps }),
    'shop-categories': rows('shop_category_id', 6, {
      shop_id: ids,
      category_id: ids,
      region: regions,
      ...stamps,
    }),
    institutes: rows('institute_id', 4, { name: names, region: regions, ...stamps }),
    courses: rows('course_id', 4, { name: names, ...stamps }),
    tags: rows('tag_id', 4, { name: names, ...stamps }),
    'shop-tags': rows('shop_tag_id', 6, { shop_id: ids, tag_id: ids, ...stamps }),
    keywords: rows('keyword_id', 4, { name: names, ...stamps }),
    'shop-keywords': rows('shop_keyword_id', 6, { shop_id: ids, keyword_id: ids, ...stamps }),
    'student-favourites': rows('student_favourite_id', 12, {
      student_id: customerIds,
      shop_id: ids,
      ...stamps,
    }),
    interactions: rows('interaction_id', 25, {
      interaction_type: interactionTypes,
      user_id: maybe(names),
      student_id: maybe(customerIds),
      item_type: itemTypes,
      item_id: ids,
      city: maybe(names),
      country: maybe(names),
      platform: maybe(fc.constantFrom('WEB', 'IOS')),
      event_timestamp: time,
      source: maybe(fc.constant('SERVICE')),
      recommendation_id: maybe(ids),
      occurred_at: time,
      created: time,
    }),
  });
}

function maybe<T>(value: Arbitrary<T>): Arbitrary<T | null> {
  return fc.option(value, { freq: 4 });
}

type Did = 'transactions' | 'interactions' | 'student-favourites';

/** Fields of every kind, and paths through every relation. */
const fields: Readonly<Record<Did | 'customers', Readonly<Record<string, KindName>>>> = {
  customers: {
    region: 'region',
    birthdate: 'date',
    institute_id: 'uuid',
    gender: 'text',
    created: 'date-time',
    age: 'number',
    'institute.name': 'text',
    'institute.updated': 'date-time',
    'course.name': 'text',
  },
  transactions: {
    shop_id: 'uuid',
    offer_id: 'uuid',
    region: 'region',
    amount: 'number',
    discount_value: 'number',
    source: 'text',
    created: 'date-time',
    'shop.name': 'text',
    'shop.region': 'region',
    'shop.is_public': 'boolean',
    'shop.tag': 'text',
    'shop.tag.tag_id': 'uuid',
    'shop.category': 'text',
    'shop.keyword.name': 'text',
    'offer.type': 'text',
    'offer.value': 'number',
    'offer.is_enabled': 'boolean',
    'offer.allowed_to': 'date-time',
    'offer.shop.tag': 'text',
    'branch.name': 'text',
    'branch.latitude': 'number',
    'branch.shop.category.region': 'region',
  },
  interactions: {
    interaction_type: 'choice',
    platform: 'choice',
    item_id: 'uuid',
    recommendation_id: 'uuid',
    city: 'text',
    occurred_at: 'date-time',
    'shop.name': 'text',
    'shop.tag': 'text',
    'tag.name': 'text',
    'keyword.keyword_id': 'uuid',
    'offer.value': 'number',
    'offer.shop.keyword': 'text',
  },
  'student-favourites': {
    shop_id: 'uuid',
    updated: 'date-time',
    'shop.region': 'region',
    'shop.category': 'text',
  },
};

/** Generates a condition of any form that uses only the given segments. */
export function conditions(asOf: Date, segments: readonly string[]): Arbitrary<Json> {
  const leaf = fc.oneof(
    { weight: 3, arbitrary: customerCondition(asOf) },
    { weight: 8, arbitrary: didCondition(asOf) },
    {
      weight: 1,
      arbitrary: fc.record({
        sample: fc.record({ percent: fc.constantFrom(0, 12.5, 50, 100), salt: names }),
      }),
    },
    ...segments.map((segment) => ({ weight: 1, arbitrary: fc.constant({ segment }) })),
  );
  const few = (of: Arbitrary<Json>): Arbitrary<Json[]> => fc.array(of, { minLength: 1, maxLength: 3 });
  const nested = (of: Arbitrary<Json>): Arbitrary<Json> =>
    fc.oneof(
      few(of).map((all) => ({ all })),
      few(of).map((any) => ({ any })),
      of.map((not) => ({ not })),
    );
  const flat = fc.oneof({ weight: 2, arbitrary: leaf }, { weight: 1, arbitrary: nested(leaf) });
  return fc.oneof({ weight: 2, arbitrary: flat }, { weight: 1, arbitrary: nested(flat) });
}

function customerCondition(asOf: Date): Arbitrary<Json> {
  return field('customers', asOf).map(([customer, tests]) => ({ customer, ...tests }));
}

function field(type: UploadTypeName & keyof typeof fields, asOf: Date): Arbitrary<[string, Json]> {
  return fc
    .constantFrom(...Object.entries(fields[type]))
    .chain(([name, kind]) => fc.tuple(fc.constant(name), fieldTests(kind, asOf)));
}

function fieldTests(kind: KindName, asOf: Date): Arbitrary<Json> {
  const exists = { exists: fc.boolean() };
  const equal = (value: Arbitrary<Value>): Record<string, Arbitrary<unknown>> => {
    const list = fc.array(value, { minLength: 1, maxLength: 3 });
    return { is: value, in: list, not_in: list, ...exists };
  };
  switch (kind) {
    case 'uuid':
      return someOf(equal(ids));
    case 'region':
      return someOf(equal(regions));
    case 'choice':
      return someOf(exists);
    case 'text':
      return someOf({ ...equal(names), contains: names });
    case 'number':
      return someOf({ ...equal(numbers), ...order(numbers) });
    case 'date':
      return someOf({ ...equal(dates), ...order(dates) });
    case 'date-time':
      return someOf({ ...order(timesGiven(asOf)), ...exists });
    default:
      return someOf({ is: fc.boolean(), ...exists });
  }
}

function order(value: Arbitrary<Value>): Record<string, Arbitrary<unknown>> {
  return { at_least: value, at_most: value, above: value, below: value };
}

/** Generates an object with one or two of the properties. */
function someOf(properties: Record<string, Arbitrary<unknown>>): Arbitrary<Json> {
  return fc
    .subarray(Object.keys(properties), {
      minLength: 1,
      maxLength: Math.min(2, Object.keys(properties).length),
    })
    .chain((chosen) => fc.record(Object.fromEntries(chosen.map((name) => [name, properties[name]!]))));
}

function didCondition(asOf: Date): Arbitrary<Json> {
  return fc
    .constantFrom<Did>('transactions', 'transactions', 'interactions', 'student-favourites')
    .chain((did) => {
      const where = fc
        .array(whereTest(did, asOf), { maxLength: 2 })
        .map((entries) => (entries.length === 0 ? {} : { where: Object.fromEntries(entries) }));
      return fc
        .tuple(where, window(asOf), measure(did, asOf))
        .map((parts) => Object.assign({ did }, ...parts) as Json);
    });
}

function whereTest(did: Did, asOf: Date): Arbitrary<[string, Json]> {
  if (did !== 'interactions') return field(did, asOf);
  const choices = fc.record({ in: fc.array(interactionTypes, { minLength: 1, maxLength: 2 }) });
  return fc.oneof(
    { weight: 4, arbitrary: field(did, asOf) },
    { weight: 1, arbitrary: choices.map((tests): [string, Json] => ['interaction_type', tests]) },
    {
      weight: 1,
      arbitrary: itemTypes.map((item_type): [string, Json] => ['item_type', { is: item_type }]),
    },
  );
}

function window(asOf: Date): Arbitrary<Json> {
  const time = timesGiven(asOf);
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant({}) },
    { weight: 3, arbitrary: fc.record({ within: durations }) },
    { weight: 2, arbitrary: fc.record({ since: time, until: time }, { requiredKeys: [] }).map(inOrder) },
  );
}

/** Exchanges the times if `since` is after `until`, which is refused. */
function inOrder({ since, until }: { since?: string; until?: string }): Json {
  if (since === undefined || until === undefined) return { since, until };
  const [a, b] = [since, until].map((text) => longestFirst.indexOf(text)) as [number, number];
  const isReversed = a < 0 && b < 0 ? since > until : a >= 0 && b >= 0 && a > b;
  return isReversed ? { since: until, until: since } : { since, until };
}

function measure(did: Did, asOf: Date): Arbitrary<Json> {
  const small = fc.constantFrom(0, 1, 2, 3);
  const counted = someOf({ is: small, ...order(small) });
  const summed = someOf({ is: numbers, ...order(numbers) });
  const numberFields = Object.keys(fields[did]).filter((name) => fields[did][name] === 'number');
  const onField = (names: readonly string[], tests: Arbitrary<Json>): Arbitrary<Json> =>
    fc.tuple(fc.constantFrom(...names), tests).map(([name, test]) => ({ [name]: test }));
  const timed = someOf(order(timesGiven(asOf)));
  return fc.oneof(
    fc.constant({}),
    fc.record({ times: counted }),
    fc.record({ distinct: onField(Object.keys(fields[did]), counted) }),
    fc.record({ last: timed }),
    fc.record({ first: timed }),
    ...(numberFields.length === 0
      ? []
      : [
          fc.record({ sum: onField(numberFields, summed) }),
          fc.record({ average: onField(numberFields, summed) }),
        ]),
  );
}
