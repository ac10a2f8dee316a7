// Properties of every record that the catalogue allows, and of every way to make one invalid.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { Fields } from '@headgate/catalogue/declaration.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
} from '@headgate/catalogue/record-types.ts';
import {
  type Corruption,
  corruptionOf,
  type SampleObject,
  sampleObject,
} from '@headgate/catalogue/testing/generators.ts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc, { type Arbitrary } from 'fast-check';
import { sentSchema } from '../server/http/openapi/schemas.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, problemsOf, type RefusalBody, totals } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type Items, itemKinds, uploadItems } from './harness/interactions.ts';
import { uploadReferenced } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const MOST_RECORDS = 25;
const RUNS = times(12, 3);
const INTERACTION_RUNS = times(80, 16);
const SCHEMA_RUNS = times(150, 40);

interface Drawn {
  readonly good: SampleObject;
  /** Null for a good record. */
  readonly corruption: Corruption | null;
}

/** Generates good objects, and objects with one flaw. */
function drawnOf(
  fields: Fields,
  fixed: Readonly<Record<string, unknown>>,
  only: 'good' | 'spoiled' | 'both',
): Arbitrary<Drawn> {
  const good = sampleObject(fields, fixed);
  const fine = good.map((sample): Drawn => ({ good: sample, corruption: null }));
  const spoiled = good.chain((sample) =>
    corruptionOf(fields, sample.sent).map((corruption): Drawn => ({ good: sample, corruption })),
  );
  return only === 'good' ? fine : only === 'spoiled' ? spoiled : fc.oneof(fine, spoiled);
}

/** Returns the same object with a new id, in the letter case of the generated one. */
function withNewId({ good, corruption }: Drawn, key: string): Drawn & { readonly id: string } {
  const id = randomUUID();
  const old = good.sent[key];
  const sentId = /[A-F]/.test(String(old)) ? id.toUpperCase() : id;
  const renamed = (object: unknown): unknown => {
    if (object === null || typeof object !== 'object' || Array.isArray(object)) return object;
    const value = (object as Record<string, unknown>)[key];
    return value === old ? { ...object, [key]: sentId } : object;
  };
  return {
    id,
    good: { sent: renamed(good.sent) as Record<string, unknown>, shown: { ...good.shown, [key]: id } },
    corruption: corruption && { ...corruption, sent: renamed(corruption.sent) },
  };
}

/** Returns the id under which a problem is reported: null if the id itself is wrong. */
function reportedId(id: string, { field }: Corruption, key: string): string | null {
  return field === key || field === null ? null : id;
}

forEachStore((store) => {
  const running = runningHeadgate(store);

  describe('for any record', () => {
    let api: Api;
    before(async () => {
      api = await running.newApi();
    });

    for (const type of recordTypeNames) {
      const { fields, key } = recordTypes[type] as { fields: Fields; key: string };

      const drawnFor = async (only: Parameters<typeof drawnOf>[2]): Promise<Arbitrary<Drawn[]>> => {
        const references = await uploadReferenced(api, type);
        return fc.array(drawnOf(fields, references, only), { minLength: 1, maxLength: MOST_RECORDS });
      };

      test(`of ${type}: a good one is accepted and reads back equal, a bad one refused by name`, async () => {
        await fc.assert(
          fc.asyncProperty(await drawnFor('both'), async (drawn) => {
            const records = drawn.map((one) => withNewId(one, key));
            const { body, status } = await api.upload(
              type,
              records.map(({ good, corruption }) => (corruption ?? good).sent),
            );
            const spoiled = records.filter(({ corruption }) => corruption !== null).length;
            assert.equal(status, spoiled === 0 ? 200 : spoiled < records.length ? 207 : 400);
            assert.deepEqual(totals(body), {
              received: records.length,
              created: records.length - spoiled,
              updated: 0,
              unchanged: 0,
              rejected: spoiled,
            });
            assert.deepEqual(
              problemsOf(body).map(({ index, id, field, code }) => ({ index, id, field, code })),
              records.flatMap(({ id, corruption }, index) =>
                corruption === null
                  ? []
                  : [
                      {
                        index,
                        id: reportedId(id, corruption, key),
                        field: corruption.field,
                        code: corruption.code,
                      },
                    ],
              ),
            );
            await Promise.all(
              records.map(async ({ id, good, corruption }) => {
                const found = await api.read(type, id);
                assert.equal(found.status, corruption === null ? 200 : 404);
                if (corruption === null) assert.deepEqual(found.body, good.shown);
              }),
            );
          }),
          { numRuns: RUNS },
        );
      });

      test(`of ${type}: sending the same again changes nothing`, async () => {
        await fc.assert(
          fc.asyncProperty(await drawnFor('both'), fc.boolean(), async (drawn, hasTwins) => {
            const unlike = drawn.map((one) => withNewId(one, key));
            // Another record with the id of the first: one of the two must win, and win again.
            const twin = unlike.at(-1)!.good;
            const twins = [{ ...twin.sent, [key]: unlike[0]!.id }];
            const records = [
              ...unlike.map(({ good, corruption }) => (corruption ?? good).sent),
              ...(hasTwins ? twins : []),
            ];
            const first = await api.upload(type, records);
            const ids = unlike.map(({ id }) => id);
            const stored = await readStored(api, type, ids);
            const second = await api.upload(type, records);
            assert.equal(second.status, first.status);
            assert.deepEqual(problemsOf(second.body), problemsOf(first.body));
            const { received, rejected } = totals(first.body);
            assert.deepEqual(totals(second.body), {
              received,
              created: 0,
              updated: 0,
              unchanged: received - rejected,
              rejected,
            });
            assert.deepEqual(await readStored(api, type, ids), stored);
          }),
          { numRuns: RUNS },
        );
      });
    }
  });

  describe('for any interaction', () => {
    let api: Api;
    let items: Items;
    before(async () => {
      api = await running.newApi();
      items = await uploadItems(api);
    });

    const drawnInteraction = (only: Parameters<typeof drawnOf>[2]): Arbitrary<Drawn> =>
      fc
        .record({ item_type: fc.constantFrom(...Object.keys(itemKinds)), hasStudent: fc.boolean() })
        .chain(({ item_type, hasStudent }) =>
          drawnOf(
            interaction,
            { item_type, item_id: items.item[item_type], student_id: hasStudent ? items.student : null },
            only,
          ),
        );

    test('a good one is recorded and reads back equal', async () => {
      await fc.assert(
        fc.asyncProperty(drawnInteraction('good'), async ({ good }) => {
          const { status, body } = await api.record(JSON.stringify(good.sent));
          assert.equal(status, 201);
          const { interaction_id, occurred_at, created, ...rest } = body;
          assert.deepEqual(rest, good.shown);
          const meant = good.shown.event_timestamp as string | number;
          if (typeof meant === 'number') {
            const ms = meant < 100_000_000_000 ? meant * 1000 : meant;
            assert.equal(Date.parse(occurred_at as string), ms);
          }
          assert.ok(created);
          assert.deepEqual((await api.request(`/user-interactions/${interaction_id}`)).body, body);
        }),
        { numRuns: INTERACTION_RUNS },
      );
    });

    test('a flaw is refused and named, and nothing is recorded', async () => {
      const { body: before } = await api.interactions('?limit=1000');
      await fc.assert(
        fc.asyncProperty(drawnInteraction('spoiled'), async ({ corruption }) => {
          const { field, code, sent } = corruption!;
          const { status, body } = await api.record<RefusalBody>(JSON.stringify(sent));
          assert.equal(status, 400);
          assert.deepEqual(
            body.details?.map((detail) => ({ field: detail.field, code: detail.code })),
            [{ field, code }],
          );
        }),
        { numRuns: INTERACTION_RUNS },
      );
      assert.deepEqual((await api.interactions('?limit=1000')).body, before);
    });

    test('one that is sent again under its idempotency key is recorded once', async () => {
      await fc.assert(
        fc.asyncProperty(drawnInteraction('both'), async ({ good, corruption }) => {
          const headers = { 'Idempotency-Key': randomUUID() };
          const body = JSON.stringify((corruption ?? good).sent);
          const first = await api.record(body, headers);
          const second = await api.record(body, headers);
          assert.equal(first.headers.get('idempotency-replayed'), null);
          assert.equal(second.headers.get('idempotency-replayed'), 'true');
          assert.deepEqual([second.status, second.text], [first.status, first.text]);
        }),
        { numRuns: INTERACTION_RUNS / 2 },
      );
    });
  });
});

async function readStored(api: Api, type: RecordTypeName, ids: readonly string[]): Promise<unknown[]> {
  const replies = await Promise.all(ids.map((id) => api.read(type, id)));
  return replies.map(({ status, body }) => (status === 200 ? body : null));
}

describe('the JSON Schema of a type agrees with the validator', () => {
  // In this version of JSON Schema `format` is an annotation, but many validators check it.
  const ajv = addFormats.default(new Ajv2020({ allowUnionTypes: true }));
  /** Patterns cannot express the days of a month, nor the effect of an offset on the first and the last year. */
  const beyondPatterns = /^\d{4}-02-(?:29|30)|-04-31|^(?:0001-01-01|9999-12-31)T/;
  const all: Readonly<Record<string, Fields>> = {
    ...Object.fromEntries(recordTypeNames.map((type) => [type, recordTypes[type].fields])),
    interactions: interaction,
  };

  for (const [name, fields] of Object.entries(all)) {
    const isValid = ajv.compile(sentSchema(name, fields, {}));

    test(`${name}: every good sample is valid`, () => {
      fc.assert(
        fc.property(sampleObject(fields), ({ sent }) => {
          assert.equal(isValid(sent), true, JSON.stringify(isValid.errors));
        }),
        { numRuns: SCHEMA_RUNS },
      );
    });

    test(`${name}: every flaw that the schema can express is invalid`, () => {
      let told = 0;
      fc.assert(
        fc.property(drawnOf(fields, {}, 'spoiled'), ({ corruption }) => {
          const { field, code, sent } = corruption!;
          if (
            code === 'invalid_format' &&
            beyondPatterns.test(String((sent as Record<string, unknown>)[field!]))
          )
            return;
          told++;
          assert.equal(isValid(sent), false);
        }),
        { numRuns: SCHEMA_RUNS },
      );
      assert.ok(told > SCHEMA_RUNS / 4);
    });
  }
});
