// The workloads. Their records are generated from a seed, so that every contender gets the same records and the same
// upload can be sent again.

import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import { Random } from '../tests/harness/random.ts';

export type WorkloadName = 'transactions' | 'shops' | 'mixed' | 'interactions';
export type BenchRecord = Record<string, string | number | boolean>;

export interface Workload {
  readonly type: UploadTypeName;
  /** `position` is the record's place in the upload. */
  make(random: Random, upload: number, position: number): BenchRecord;
}

const SHOPS = 200;
const SHOPS_SEED = 1;
const BAD_SHARE = 0.02;
const FIRST_EVENT_MS = 1_700_000_000_000;
const EVENT_SPAN_MS = 300;
const UPLOAD_SPAN_MS = 5000 * EVENT_SPAN_MS;
const regions = ['GB', 'DE', 'FR', 'ES', 'NL', 'IE'];
const sources = ['online', 'in-store', 'app'];

export function randomUuid(random: Random): string {
  const hex = (bits: number): string =>
    Math.floor(random.fraction() * 2 ** bits)
      .toString(16)
      .padStart(bits / 4, '0');
  return `${hex(32)}-${hex(16)}-4${hex(12)}-a${hex(12)}-${hex(24)}${hex(24)}`;
}

function dateTime(random: Random): string {
  return new Date(1_700_000_000_000 + random.integer(0, 30_000_000) * 1000).toISOString();
}

function shop(random: Random, shopId: string): BenchRecord {
  return {
    shop_id: shopId,
    name: `Shop ${random.integer(1, 99_999)}`,
    region: random.oneOf(regions),
    created: dateTime(random),
    updated: dateTime(random),
  };
}

/** Returns a UUIDv7. */
function uuidAt(atMs: number, random: Random): string {
  const time = atMs.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUuid(random).slice(15)}`;
}

/** The shops that transactions and interactions refer to. They are stored before the measurement. */
export const referencedShops: readonly BenchRecord[] = (() => {
  const random = new Random(SHOPS_SEED);
  return Array.from({ length: SHOPS }, () => shop(random, randomUuid(random)));
})();

/** Returns a transaction with all fifteen fields. */
function transaction(random: Random): BenchRecord {
  return {
    transaction_id: randomUuid(random),
    shop_id: random.oneOf(referencedShops).shop_id!,
    region: random.oneOf(regions),
    savings: random.integer(0, 5000) / 100,
    amount: random.integer(1, 20_000) / 100,
    student_id: randomUuid(random),
    offer_id: randomUuid(random),
    branch_id: randomUuid(random),
    source: random.oneOf(sources),
    created: dateTime(random),
    updated: dateTime(random),
    is_deleted: false,
    discount_name: `Autumn offer ${random.integer(1, 500)}`,
    discount_type: 'percentage',
    discount_value: random.integer(1, 50),
  };
}

/**
 * Returns an interaction with all fields that an upload may contain, except for the time of recording. Interactions come
 * from logs, so each one is a little later than the one before, and each upload begins a little later than the previous.
 * The ids increase with the time, as those that the client, `load` and the server assign.
 */
function interaction(random: Random, upload: number, position: number): BenchRecord {
  const atMs =
    FIRST_EVENT_MS + upload * UPLOAD_SPAN_MS + position * EVENT_SPAN_MS + random.integer(0, EVENT_SPAN_MS);
  return {
    interaction_type: 'PAGE_VIEW',
    user_id: `user-${random.integer(1, 99_999)}`,
    item_type: 'SHOP',
    item_id: random.oneOf(referencedShops).shop_id!,
    city: 'Cambridge',
    country: 'GB',
    platform: 'WEB',
    event_timestamp: atMs,
    source: 'SERVICE',
    recommendation_id: randomUuid(random),
    interaction_id: uuidAt(atMs, random),
  };
}

const spoilings: readonly ((record: BenchRecord, random: Random) => void)[] = [
  (record) => delete record.amount,
  (record) => (record.amount = 'twelve'),
  (record) => (record.created = 'yesterday'),
  (record, random) => (record.shop_id = randomUuid(random)),
];

export const workloads: Readonly<Record<WorkloadName, Workload>> = {
  transactions: { type: 'transactions', make: transaction },
  interactions: { type: 'interactions', make: interaction },
  shops: { type: 'shops', make: (random) => shop(random, randomUuid(random)) },
  mixed: {
    type: 'transactions',
    make(random) {
      const record = transaction(random);
      if (random.isLuckier(BAD_SHARE)) random.oneOf(spoilings)(record, random);
      return record;
    },
  },
};

/** Returns the records of one upload. The same arguments always give the same records. */
export function recordsOf(name: WorkloadName, seed: number, upload: number, count: number): BenchRecord[] {
  const random = new Random(Math.imul(seed, 1_000_003) + upload);
  return Array.from({ length: count }, (_, position) => workloads[name].make(random, upload, position));
}
