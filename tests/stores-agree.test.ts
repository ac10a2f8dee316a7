// Sends the same uploads and interactions to a server on each store: the responses, the records read and the rows in
// the databases are equal, field by field.
//
// HEADGATE_TEST_SEED repeats the samples of a run.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Field } from '@headgate/catalogue/declaration.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  storedInteraction,
} from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { corruptionOf, sampleObject } from '@headgate/catalogue/testing/generators.ts';
import fc from 'fast-check';
import { openStore } from '../server/store/open-store.ts';
import type { Row } from '../server/store/rows.ts';
import { everyInteraction, everyRecord } from '../server/store/test-lists.ts';
import { type Api, apiOf } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { startHeadgate } from './harness/headgate.ts';
import { itemKinds } from './harness/interactions.ts';
import { chosenSeed, Random } from './harness/random.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { goodFormsOf, specFields, specKey, specRecord } from './harness/spec.ts';

const SAMPLES_PER_TYPE = 60;
const REVISIONS_PER_TYPE = 40;
const SPOILED_PER_TYPE = 20;
const INTERACTIONS = 120;
const BATCH_SIZE = 30;

type Sent = Record<string, unknown>;
type Step =
  | { readonly kind: 'upload'; readonly type: RecordTypeName; readonly records: readonly unknown[] }
  | { readonly kind: 'interaction'; readonly interaction: unknown };

interface Outcome {
  readonly store: string;
  /** Every response, without the ids of this request. */
  readonly answers: readonly unknown[];
  readonly shown: Readonly<Record<string, readonly Sent[]>>;
  readonly rows: Readonly<Record<string, readonly Row[]>>;
}

const seed = chosenSeed();
const steps = workload(new Random(seed));
const outcomes: Outcome[] = [];

forEachStore((store) => {
  test('a server processes the whole workload', async (t) => {
    t.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
    const { database, remove } = await store.newDatabase();
    try {
      const headgate = await startHeadgate(database, { HEADGATE_BATCH_SIZE: String(BATCH_SIZE) });
      try {
        const { key, org_id } = await headgate.newKey();
        const api = apiOf(headgate.url, key);
        const answers: unknown[] = [];
        for (const step of steps) answers.push(await answerTo(api, step));
        const shown = await everythingShown(api);
        assert.equal(await headgate.stop(), 0);
        outcomes.push({ store: store.name, answers, shown, rows: await everyRow(database, org_id) });
      } finally {
        await headgate.kill();
      }
    } finally {
      await remove();
    }
  });
});

test('the responses, the lists and the rows of all stores are equal', () => {
  const [first, ...others] = outcomes;
  assert.ok(first !== undefined && others.length > 0, 'there is nothing to compare');
  for (const type of recordTypeNames) assert.ok(first.rows[type]!.length > SAMPLES_PER_TYPE, type);
  assert.ok(first.rows.interactions!.length > INTERACTIONS / 2);
  for (const other of others) {
    const pair: string = `${first.store} and ${other.store}, HEADGATE_TEST_SEED=${seed}`;
    for (const [at, answer] of first.answers.entries()) {
      assert.deepEqual(other.answers[at], answer, `step ${at}, ${pair}`);
    }
    for (const what of [...recordTypeNames, 'interactions']) {
      assertSameList(other.shown[what]!, first.shown[what]!, `${what} as shown, ${pair}`);
      assertSameList(other.rows[what]!, first.rows[what]!, `rows of ${what}, ${pair}`);
    }
  }
});

/** Compares one by one, so that a failure shows only the item that differs. */
function assertSameList(actual: readonly unknown[], expected: readonly unknown[], what: string): void {
  for (const [at, item] of expected.entries()) assert.deepEqual(actual[at], item, `${what}, number ${at}`);
  assert.equal(actual.length, expected.length, what);
}

async function answerTo(api: Api, step: Step): Promise<unknown> {
  const { status, body } =
    step.kind === 'upload' ? await api.upload(step.type, step.records) : await api.record(step.interaction);
  assert.ok(status < 500, JSON.stringify(body));
  return { status, body: without(step.kind === 'upload' ? namesOfAnswers : assigned, body) };
}

const namesOfAnswers: ReadonlySet<string> = new Set(['request_id', 'batch_id']);
/** The fields that the server assigns to an interaction when it is recorded. */
const assigned: ReadonlySet<string> = new Set(['request_id', 'interaction_id', 'created']);

function without(names: ReadonlySet<string>, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((inner) => without(names, inner));
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).filter(([name]) => !names.has(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, without(names, inner)]));
}

async function everythingShown(api: Api): Promise<Record<string, readonly Sent[]>> {
  const shown: Record<string, readonly Sent[]> = {
    interactions: (await readAllInteractions(api)).map((one) => without(assigned, one) as Sent),
  };
  for (const type of recordTypeNames) {
    shown[type] = await readAllRecords(api, type, '&include_deleted=true');
  }
  return shown;
}

async function everyRow(database: string, orgId: string): Promise<Record<string, readonly Row[]>> {
  const store = await openStore(database);
  try {
    const { organisation } = (await store.organisations()).find((one) => one.orgId === orgId)!;
    const interactions = await everyInteraction(store, organisation);
    const names = Object.keys(storedInteraction);
    const isAssigned = names.map((name) => assigned.has(name));
    const rows: Record<string, readonly Row[]> = {
      interactions: interactions.map((row) => row.filter((_, at) => !isAssigned[at])),
    };
    for (const type of recordTypeNames) {
      rows[type] = await everyRecord(store, organisation, type);
    }
    return rows;
  } finally {
    await store.close();
  }
}

/** Generated once, so that every store gets the same. */
function workload(random: Random): readonly Step[] {
  const ids = new Map<string, string[]>();
  const referencesOf = (type: RecordTypeName): Sent => {
    const fields: Record<string, Field> = recordTypes[type].fields;
    return Object.fromEntries(
      Object.entries(fields).flatMap(([name, { references }]) =>
        typeof references === 'string' ? [[name, random.oneOf(ids.get(references)!)]] : [],
      ),
    );
  };
  const drawn: Step[] = [];
  for (const type of uploadOrder(recordTypes)) {
    const { fields, key } = recordTypes[type];
    const sample = (fixed: Sent = {}): Sent =>
      one(sampleObject(fields, { ...referencesOf(type), ...fixed }), random).sent;
    const samples = Array.from({ length: SAMPLES_PER_TYPE }, () => sample());
    ids.set(
      type,
      samples.map((record) => String(record[key]).toLowerCase()),
    );
    const revisions = Array.from({ length: REVISIONS_PER_TYPE }, () =>
      sample({ [key]: random.oneOf(ids.get(type)!) }),
    );
    const spoiled = Array.from(
      { length: SPOILED_PER_TYPE },
      () => one(corruptionOf(fields, sample()), random).sent,
    );
    for (const records of [samples, revisions, spoiled, extremes(type, referencesOf(type)), samples]) {
      drawn.push({ kind: 'upload', type, records });
    }
  }
  for (let count = 0; count < INTERACTIONS; count++) {
    const itemType = random.oneOf(Object.keys(itemKinds));
    const good = one(
      sampleObject(interaction, {
        item_type: itemType,
        item_id: random.oneOf(ids.get(itemKinds[itemType]!)!),
        student_id: random.isLuckier(0.5) ? random.oneOf(ids.get('customers')!) : null,
      }),
      random,
    ).sent;
    const sent = random.isLuckier(0.9) ? good : one(corruptionOf(interaction, good), random).sent;
    drawn.push({ kind: 'interaction', interaction: sent });
  }
  return drawn;
}

/** Returns a record for each good form of each field. */
function extremes(type: RecordTypeName, references: Sent): readonly Sent[] {
  return specFields(type)
    .filter(({ name }) => !Object.hasOwn(references, name) && name !== specKey(type))
    .flatMap((field) =>
      goodFormsOf(field).map(({ sent }) => ({
        ...specRecord(type, {}),
        ...references,
        [specKey(type)]: randomUUID(),
        [field.name]: sent,
      })),
    );
}

function one<Value>(values: fc.Arbitrary<Value>, random: Random): Value {
  return fc.sample(values, { numRuns: 1, seed: random.integer(0, 2 ** 31 - 1) })[0]!;
}
