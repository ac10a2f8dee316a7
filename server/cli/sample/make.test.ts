// A sample is realistic: every record is valid, every reference resolves, and the dates are consistent.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import { recordTypeNames, recordTypes } from '@headgate/catalogue/record-types.ts';
import { checkFields, planOf } from '../../ingest/check-fields.ts';
import { fieldsOf, loadOrder } from '../load/file-types.ts';
import { makeSample } from './make.ts';
import { DAY_MS, type SamplePlan, samplePlan } from './plan.ts';
import type { Put, SampleRecords } from './records.ts';
import { regions } from './regions.ts';

type Sample = { readonly [T in keyof SampleRecords]: SampleRecords[T][] };
type Transaction = SampleRecords['transactions'];
type Values = Readonly<Record<string, ColumnValue>>;

const UNTIL_DAY = Date.parse('2026-09-30T00:00:00Z') / DAY_MS;

function made(plan: SamplePlan): Sample {
  const sample = Object.fromEntries(loadOrder.map((type) => [type, []])) as unknown as Sample;
  const put: Put = (type, record) => void sample[type].push(record);
  for (const _ of makeSample(plan, put));
  return sample;
}

function present(record: object): Record<string, ColumnValue> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
}

function idsOf(sample: Sample): string[] {
  return recordTypeNames.flatMap((type) =>
    sample[type].map((record) => (record as Values)[recordTypes[type].key] as string),
  );
}

const dayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const ms = (dateTime: string | null): number => Date.parse(dateTime!);

describe('a sample of a thousand customers', () => {
  const plan = samplePlan(1, 1000, UNTIL_DAY);
  let sample: Sample;
  before(() => {
    sample = made(plan);
  });

  const byId = <T extends keyof Sample>(type: T, key: keyof SampleRecords[T]) =>
    new Map(sample[type].map((record) => [record[key] as string, record]));

  test('has valid records of every type, each with a unique id', () => {
    for (const type of loadOrder) {
      const checking = planOf(fieldsOf(type));
      assert.ok(sample[type].length > 0, `there are no ${type}`);
      for (const record of sample[type]) {
        assert.equal(checkFields(checking, present(record), null).problems, null, JSON.stringify(record));
      }
    }
    const ids = idsOf(sample);
    assert.equal(new Set(ids).size, ids.length);
  });

  test('has a value for every optional field in at least one record', () => {
    for (const type of loadOrder) {
      for (const field of Object.keys(fieldsOf(type))) {
        const isUsed = sample[type].some((record) => (record as Values)[field] !== null);
        assert.ok(isUsed, `${type}.${field} is never given`);
      }
    }
  });

  test('has numbers of records in proportion to its customers', () => {
    const { customers, transactions, shops } = sample;
    assert.equal(customers.length, 1000);
    assert.ok(
      transactions.length > 8000 && transactions.length < 13_000,
      `${transactions.length} transactions`,
    );
    const interactions = sample['user-interactions'].length;
    assert.ok(interactions > 4000 && interactions < 7500, `${interactions} interactions`);
    assert.ok(sample['student-favourites'].length > 400);
    assert.equal(shops.length, 60);
    for (const { code } of regions) {
      assert.ok(shops.filter(({ region }) => region === code).length >= 4, `few shops in ${code}`);
      assert.ok(sample.institutes.filter(({ region }) => region === code).length >= 2);
    }
    assert.ok(samplePlan(1, 100_000, UNTIL_DAY).shops === 1000);
    assert.ok(samplePlan(1, 10_000_000, UNTIL_DAY).shops === 5000);
  });

  test('has only references to existing records, also in fields that Headgate does not check', () => {
    const there: Record<string, Set<string>> = {};
    for (const type of recordTypeNames) {
      there[type] = new Set(
        sample[type].map((record) => (record as Values)[recordTypes[type].key] as string),
      );
    }
    const targets: Readonly<Record<string, string>> = {
      shop_id: 'shops',
      category_id: 'categories',
      tag_id: 'tags',
      keyword_id: 'keywords',
      student_id: 'customers',
      institute_id: 'institutes',
      course_id: 'courses',
      offer_id: 'offers',
      branch_id: 'branches',
    };
    const items = { TAG: 'tags', OFFER: 'offers', SHOP: 'shops', KEYWORD: 'keywords' };
    for (const type of loadOrder) {
      for (const record of sample[type]) {
        for (const [field, target] of Object.entries(targets)) {
          const id = (record as Values)[field] ?? null;
          assert.ok(id === null || there[target]!.has(id as string), `${type}.${field} ${id} leads nowhere`);
        }
      }
    }
    for (const { item_type, item_id } of sample['user-interactions']) {
      assert.ok(there[items[item_type]]!.has(item_id), `${item_type} ${item_id} leads nowhere`);
    }
  });

  test('has related records in the same region', () => {
    const shops = byId('shops', 'shop_id');
    const customers = byId('customers', 'customer_id');
    const institutes = byId('institutes', 'institute_id');
    const categories = byId('categories', 'category_id');
    for (const { institute_id, region } of sample.customers) {
      if (institute_id !== null) assert.equal(institutes.get(institute_id)!.region, region);
    }
    for (const type of ['offers', 'branches', 'transactions', 'shop-categories'] as const) {
      for (const { shop_id, region } of sample[type]) assert.equal(shops.get(shop_id)!.region, region);
    }
    for (const { category_id, region } of sample['shop-categories']) {
      assert.equal(categories.get(category_id)!.region, region);
    }
    for (const { student_id, region } of sample.transactions) {
      assert.equal(customers.get(student_id!)!.region, region);
    }
    for (const { region, latitude, longitude } of sample.branches) {
      const { cities } = regions.find(({ code }) => code === region)!;
      assert.ok(
        cities.some((city) => Math.hypot(city.latitude - latitude!, city.longitude - longitude!) < 0.06),
        `${latitude}, ${longitude} is near no city of ${region}`,
      );
    }
  });

  test('has dates in a consistent order, and none after the last day', () => {
    for (const type of recordTypeNames) {
      for (const { created, updated } of sample[type]) {
        assert.ok(created! <= updated!, `${type} was changed before it was made`);
        assert.ok(ms(updated) <= plan.untilMs);
      }
    }
    const customers = byId('customers', 'customer_id');
    const shops = byId('shops', 'shop_id');
    for (const { student_id, shop_id, created } of sample.transactions) {
      const student = customers.get(student_id!)!;
      const shop = shops.get(shop_id)!;
      assert.ok(created! > student.created! && created! > shop.created!);
      if (student.is_deleted) assert.ok(created! < student.updated!, 'the student bought after leaving');
      if (shop.is_deleted) assert.ok(created! < shop.updated!, 'bought after the shop had closed');
    }
    for (const { birthdate, created } of sample.customers) {
      if (birthdate === null) continue;
      const ageYears = (ms(created) - ms(birthdate)) / (365.25 * DAY_MS);
      assert.ok(ageYears > 16.9 && ageYears < 31, `joined at ${ageYears}`);
    }
    for (const { event_timestamp, student_id } of sample['user-interactions']) {
      const atMs =
        typeof event_timestamp === 'string'
          ? ms(event_timestamp)
          : event_timestamp < 1e11
            ? event_timestamp * 1000
            : event_timestamp;
      assert.ok(atMs <= plan.untilMs);
      if (student_id !== null) assert.ok(atMs > ms(customers.get(student_id)!.created));
    }
  });

  test('has discounts only if the offer allows them, with the savings that it promises', () => {
    const offers = byId('offers', 'offer_id');
    const branches = byId('branches', 'branch_id');
    let withOffer = 0;
    for (const transaction of sample.transactions) {
      const { savings, amount, offer_id, branch_id, shop_id, created, source } = transaction;
      assert.equal(branch_id !== null, source === 'in-store');
      if (branch_id !== null) assert.equal(branches.get(branch_id)!.shop_id, shop_id);
      if (offer_id === null) {
        assert.equal(savings, 0);
        assert.equal(transaction.discount_name, null);
        continue;
      }
      withOffer++;
      const offer = offers.get(offer_id)!;
      assert.equal(offer.shop_id, shop_id);
      assert.ok(
        offer.allowed_from! <= created! && (offer.allowed_to === null || offer.allowed_to >= created!),
      );
      if (offer.allowed_branches !== null) assert.ok(offer.allowed_branches.split(',').includes(branch_id!));
      const day = dayNames[new Date(created!).getUTCDay()]!;
      if (offer.allowed_days !== null) assert.ok(offer.allowed_days.split(',').includes(day));
      assert.deepEqual(
        [transaction.discount_name, transaction.discount_type, transaction.discount_value],
        [offer.name, offer.type, offer.value],
      );
      const promised = offer.type === 'fixed' ? offer.value : ((amount + savings) * offer.value) / 100;
      assert.ok(Math.abs(savings - promised) <= 0.00501, `saved ${savings} instead of ${promised}`);
    }
    const share = withOffer / sample.transactions.length;
    assert.ok(share > 0.6 && share < 0.95, `${share} of the transactions have an offer`);
  });

  test('has only favourite shops from which the student has bought before', () => {
    const bought = new Map<string, number>();
    for (const { student_id, shop_id, created } of sample.transactions) {
      const pair = `${student_id} ${shop_id}`;
      bought.set(pair, Math.min(bought.get(pair) ?? Number.POSITIVE_INFINITY, ms(created)));
    }
    for (const { student_id, shop_id, created } of sample['student-favourites']) {
      assert.ok(bought.get(`${student_id} ${shop_id}`)! <= ms(created));
    }
  });

  test('has most purchases at few shops, by few students and in the daytime', () => {
    const shareOfTop = (transactions: readonly Transaction[], of: keyof Transaction, top: number): number => {
      const counts = [...Map.groupBy(transactions, (one) => one[of]).values()].map((group) => group.length);
      const most = counts.sort((one, other) => other - one).slice(0, top);
      return most.reduce((sum, count) => sum + count, 0) / transactions.length;
    };
    const inOneRegion = sample.transactions.filter(({ region }) => region === regions[0]!.code);
    assert.ok(shareOfTop(inOneRegion, 'shop_id', 3) > 0.4);
    assert.ok(shareOfTop(sample.transactions, 'student_id', 200) > 0.5);
    const atNight = sample.transactions.filter(({ created }) => new Date(created!).getUTCHours() < 6);
    assert.ok(atNight.length < sample.transactions.length * 0.1);
  });

  test('has a few deleted records, and a share of recommended interactions', () => {
    for (const type of ['customers', 'transactions', 'shops', 'offers', 'student-favourites'] as const) {
      const deleted = sample[type].filter(({ is_deleted }) => is_deleted).length;
      assert.ok(deleted > 0 && deleted < sample[type].length * 0.15, `${deleted} ${type} are deleted`);
    }
    const recommended = sample['user-interactions'].filter(({ source }) => source === 'SERVICE');
    const share = recommended.length / sample['user-interactions'].length;
    assert.ok(share > 0.05 && share < 0.3, `${share} are recommended`);
    for (const { source, recommendation_id } of sample['user-interactions']) {
      assert.equal(source === null, recommendation_id === null);
    }
  });
});

test('the smallest sample has one customer and the usual 60 shops', () => {
  const sample = made(samplePlan(1, 1, UNTIL_DAY));
  assert.equal(sample.customers.length, 1);
  assert.equal(sample.shops.length, 60);
});

describe('a plan', () => {
  const digestOf = (plan: SamplePlan): string => {
    const digest = createHash('sha256');
    for (const _ of makeSample(plan, (type, record) => digest.update(`${type}${JSON.stringify(record)}`)));
    return digest.digest('hex').slice(0, 16);
  };

  test('produces the same records on every machine', () => {
    assert.equal(digestOf(samplePlan(1, 100, UNTIL_DAY)), '6ea266692ffc7fe8');
  });

  test('with another seed produces other ids, and with another day other times', () => {
    const first = new Set(idsOf(made(samplePlan(1, 50, UNTIL_DAY))));
    assert.ok(idsOf(made(samplePlan(2, 50, UNTIL_DAY))).every((id) => !first.has(id)));
    assert.notEqual(digestOf(samplePlan(1, 50, UNTIL_DAY)), digestOf(samplePlan(1, 50, UNTIL_DAY - 1)));
  });
});
