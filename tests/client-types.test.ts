// The client's types are generated from the catalogue. The compiler proves that both agree when it checks this file;
// the tests compare the values that exist at run time.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import {
  type RecordTypeName,
  recordTypes,
  type SentInteraction,
  type SentRecord,
  type ShownInteraction,
  type ShownRecord,
} from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import type * as client from '@headgate/client/client.ts';
import { CLIENT_VERSION } from '@headgate/client/connection.ts';
import { uploadOrder as clientOrder, keyFields } from '@headgate/client/records.ts';
import type { reportGroupings, windowsDays } from '../server/analytics/analytics-orders.ts';
import type { EventType } from '../server/analytics/segments/field-paths.ts';

/** Removes `readonly`, which is not compared: it does not affect what is sent. */
type Flat<T> = { -readonly [K in keyof T]: T[K] };
type Same<A, B> =
  (<T>() => T extends Flat<A> ? 1 : 2) extends <T>() => T extends Flat<B> ? 1 : 2 ? true : false;

/** For every record type, whether the client's interface equals the type that the catalogue derives. */
type SentAsDeclared = {
  [T in RecordTypeName]: T extends unknown ? Same<client.SentRecords[T], SentRecord<T>> : never;
};
type ShownAsDeclared = {
  [T in RecordTypeName]: T extends unknown ? Same<client.ShownRecords[T], ShownRecord<T>> : never;
};
type EveryOne = { [T in RecordTypeName]: true };

export const proofs: [
  SentAsDeclared extends EveryOne ? true : SentAsDeclared,
  ShownAsDeclared extends EveryOne ? true : ShownAsDeclared,
  Same<client.SentInteraction, SentInteraction>,
  Same<client.ShownInteraction, ShownInteraction>,
  [client.RecordTypeName, RecordTypeName] extends [RecordTypeName, client.RecordTypeName] ? true : false,
  [client.ProblemCode, ProblemCode] extends [ProblemCode, client.ProblemCode] ? true : false,
  // The server cannot have a value that the client lacks. This proves that the client has no other values.
  [client.ReportGrouping, client.WindowDays] extends [
    (typeof reportGroupings)[number],
    (typeof windowsDays)[number],
  ]
    ? true
    : false,
  [client.EventType, EventType] extends [EventType, client.EventType] ? true : false,
  // A condition can test every field of a customer but `is_deleted`, because deleted customers are in no segment.
  [Exclude<keyof client.ShownCustomer, 'is_deleted'>] extends [keyof client.ConditionFields['customers']]
    ? true
    : false,
  client.SegmentCondition extends client.Condition ? true : false,
] = [true, true, true, true, true, true, true, true, true, true];

// Shows that the proof can fail: another optionality, another type and a missing field are not equal.
export const disproofs: [
  Same<{ a: string }, { a?: string }>,
  Same<{ a?: string | null }, { a?: string }>,
  Same<{ a: string; b: number }, { a: string }>,
] = [false, false, false];

test('the client has the record types in the order of the catalogue, with their keys', () => {
  assert.deepEqual([...clientOrder], uploadOrder(recordTypes));
  for (const type of clientOrder) assert.equal(keyFields[type], recordTypes[type].key, type);
});

/** Each is refused by the compiler. If one is not, the line above it is an error. */
export const wrongConditions: readonly client.Condition[] = [
  // @ts-expect-error a field that customers do not have
  { customer: 'regoin', is: 'DE' },
  // @ts-expect-error a test that numbers do not have
  { customer: 'age', contains: '1' },
  // @ts-expect-error a path that leads nowhere
  { all: [{ did: 'transactions', where: { 'shop.tags': { is: 'coffee' } } }] },
  // @ts-expect-error the sum of a text
  { not: { did: 'transactions', sum: { source: { above: 1 } } } },
];

test('the client exports the version of its package', async () => {
  const file = new URL('../client/package.json', import.meta.url);
  const { version } = JSON.parse(await readFile(file, 'utf8')) as { version: string };
  assert.equal(CLIENT_VERSION, version);
});
