// Tests the contract of the `Store` interface with every store, independently of the database.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  storedInteraction,
} from '@headgate/catalogue/record-types.ts';
import fc from 'fast-check';
import type { IdempotencyRecord, Written } from './idempotency-records.ts';
import type { InteractionPage } from './interactions.ts';
import type { ApiKey, NewApiKey } from './keys.ts';
import type { Upload } from './records.ts';
import type { OrganisationNumber, Page, Row, Tally } from './rows.ts';
import type { Store } from './store.ts';
import { StoreUnavailable } from './store.ts';
import { everyInteraction, everyRecord } from './test-lists.ts';
import { anyRow, interactionRow, recordRow, type Values } from './test-rows.ts';
import { type TestStore, testStores } from './test-stores.ts';
import { times } from './test-thoroughness.ts';

const EARLIER = '2024-05-01T09:30:00.000000Z';
const LATER = '2024-05-01T09:30:00.000001Z';
const NOW_MS = 1_714_555_800_000;

const allInteractions: InteractionPage = { equal: {}, from: null, to: null, before: null, limit: 1000 };

function tally(created: number, updated: number, unchanged: number): Tally {
  return { created, updated, unchanged };
}

function recordTypeFields(type: RecordTypeName): readonly string[] {
  return Object.keys(recordTypes[type].fields);
}

function written(...tallies: readonly Tally[]): Written {
  return { kind: 'written', tallies, seq: null };
}

function idempotencyRecordOf(
  organisation: OrganisationNumber,
  values: Partial<IdempotencyRecord> = {},
): IdempotencyRecord {
  return {
    organisation,
    path: '/v1/data/shops',
    key: randomUUID(),
    fingerprint: 'print',
    response: new Uint8Array([0, 1, 2, 255]),
    storedAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 1000,
    ...values,
  };
}

function keyOf(organisation: OrganisationNumber, values: Partial<ApiKey> = {}): NewApiKey {
  return {
    keyId: randomUUID(),
    organisation,
    secretHash: 'ab'.repeat(32),
    name: null,
    scopes: ['data:write', 'data:read:shops'],
    createdAtMs: NOW_MS,
    expiresAtMs: null,
    revokedAtMs: null,
    lastUsedAtMs: null,
    replacedBy: null,
    ...values,
  };
}

function fieldOf(row: Row, type: RecordTypeName, field: string): ColumnValue {
  return row[Object.keys(recordTypes[type].fields).indexOf(field)]!;
}

function interactionIdOf(row: Row): string {
  return row[Object.keys(storedInteraction).indexOf('interaction_id')] as string;
}

for (const { name, open } of testStores) {
  describe(`a ${name} store`, () => {
    let opened: TestStore;
    let store: Store;
    before(async () => {
      opened = await open();
      store = opened.store;
    });
    after(() => opened.dispose());

    const newOrganisation = async (): Promise<OrganisationNumber> => {
      const made = await store.createOrganisation(`org ${randomUUID()}`, randomUUID(), NOW_MS);
      return made!.organisation;
    };

    const write = (
      organisation: OrganisationNumber,
      type: Upload['type'],
      batches: readonly (readonly Row[])[],
      options: Partial<Upload> = {},
    ): Promise<Written> =>
      store.write({ organisation, type, batches, idempotencyRecord: null, entry: null, ...options });

    /** Writes, and asserts that a dry run has the same counts. No other call may write these rows. */
    const upload = async (...args: Parameters<typeof write>): Promise<Written> => {
      const [organisation, type, batches] = args;
      const tallies = await store.dryRun({ organisation, type, batches });
      const outcome = await write(...args);
      if (outcome.kind === 'written') assert.deepEqual(tallies, outcome.tallies, 'equals the dry run');
      return outcome;
    };

    describe('organisations', () => {
      test('are listed by name with all of their values', async () => {
        const prefix = randomUUID();
        const second = await store.createOrganisation(`${prefix} b`, randomUUID(), NOW_MS);
        const first = await store.createOrganisation(`${prefix} a`, randomUUID(), NOW_MS + 1);
        assert.ok(first !== null && second !== null);
        assert.notEqual(first.organisation, second.organisation);
        assert.equal(first.createdAtMs, NOW_MS + 1);
        const listed = await store.organisations();
        assert.deepEqual(
          listed.filter((organisation) => organisation.name.startsWith(prefix)),
          [first, second],
        );
      });

      test('cannot share a name', async () => {
        const taken = randomUUID();
        assert.notEqual(await store.createOrganisation(taken, randomUUID(), NOW_MS), null);
        assert.equal(await store.createOrganisation(taken, randomUUID(), NOW_MS), null);
      });

      test('cannot share an id', async () => {
        const orgId = randomUUID();
        await store.createOrganisation(randomUUID(), orgId, NOW_MS);
        await assert.rejects(store.createOrganisation(randomUUID(), orgId, NOW_MS));
      });
    });

    describe('keys', () => {
      test('are found with all of their values and the id of their organisation', async () => {
        const organisation = await newOrganisation();
        const { orgId } = (await store.organisations()).find((one) => one.organisation === organisation)!;
        const plain = keyOf(organisation);
        const full = keyOf(organisation, {
          name: 'the loader',
          expiresAtMs: NOW_MS + 1,
          revokedAtMs: NOW_MS + 2,
          lastUsedAtMs: NOW_MS + 3,
          replacedBy: plain.keyId,
        });
        await store.addKey(plain);
        await store.addKey(full);
        assert.deepEqual(await store.findKey(plain.keyId), { ...plain, orgId });
        assert.deepEqual(await store.findKey(full.keyId), { ...full, orgId });
        assert.equal(await store.findKey(randomUUID()), null);
      });

      test('are listed oldest first, for their own organisation only', async () => {
        const [organisation, other] = [await newOrganisation(), await newOrganisation()];
        const newer = keyOf(organisation, { createdAtMs: NOW_MS + 1 });
        const older = keyOf(organisation);
        for (const key of [newer, older, keyOf(other)]) await store.addKey(key);
        const listed = await store.keysOf(organisation);
        assert.deepEqual(
          listed.map(({ keyId }) => keyId),
          [older.keyId, newer.keyId],
        );
      });

      test('are replaced by a successor and expire at the given time', async () => {
        const organisation = await newOrganisation();
        const [old, successor] = [keyOf(organisation), keyOf(organisation, { createdAtMs: NOW_MS + 1 })];
        await store.addKey(old);
        assert.equal(await store.replaceKey(old.keyId, NOW_MS + 500, successor), true);
        const listed = await store.keysOf(organisation);
        assert.deepEqual(
          listed.map(({ keyId, expiresAtMs, replacedBy }) => [keyId, expiresAtMs, replacedBy]),
          [
            [old.keyId, NOW_MS + 500, successor.keyId],
            [successor.keyId, null, null],
          ],
        );
      });

      test('keep an expiry that is earlier than the one given with a successor', async () => {
        const organisation = await newOrganisation();
        for (const [endMs, givenMs] of [
          [NOW_MS + 1, NOW_MS + 2],
          [NOW_MS + 2, NOW_MS + 1],
        ] as const) {
          const old = keyOf(organisation, { expiresAtMs: endMs });
          await store.addKey(old);
          assert.equal(await store.replaceKey(old.keyId, givenMs, keyOf(organisation)), true);
          assert.equal((await store.findKey(old.keyId))?.expiresAtMs, NOW_MS + 1);
        }
      });

      test('are replaced only once, and a second successor is not added', async () => {
        const organisation = await newOrganisation();
        const [old, first, second] = [keyOf(organisation), keyOf(organisation), keyOf(organisation)];
        await store.addKey(old);
        assert.equal(await store.replaceKey(old.keyId, NOW_MS + 500, first), true);
        const replaced = await store.findKey(old.keyId);
        assert.equal(await store.replaceKey(old.keyId, NOW_MS + 100, second), false);
        assert.deepEqual(await store.findKey(old.keyId), replaced);
        assert.equal(await store.findKey(second.keyId), null);
      });

      test('are replaced only once by many simultaneous calls', async () => {
        const organisation = await newOrganisation();
        const old = keyOf(organisation);
        await store.addKey(old);
        const successors = Array.from({ length: 8 }, () => keyOf(organisation));
        const replaced = await Promise.all(
          successors.map((successor) => store.replaceKey(old.keyId, NOW_MS + 500, successor)),
        );
        const winners = successors.filter((_, position) => replaced[position]);
        assert.equal(winners.length, 1);
        assert.equal((await store.findKey(old.keyId))?.replacedBy, winners[0]?.keyId);
        assert.equal((await store.keysOf(organisation)).length, 2);
      });

      test('are unchanged if the successor cannot be added', async () => {
        const organisation = await newOrganisation();
        const [old, taken] = [keyOf(organisation), keyOf(organisation)];
        await store.addKey(old);
        await store.addKey(taken);
        await assert.rejects(store.replaceKey(old.keyId, NOW_MS + 500, taken));
        const left = await store.findKey(old.keyId);
        assert.deepEqual([left?.expiresAtMs, left?.replacedBy], [null, null]);
      });

      test('that do not exist get no successor', async () => {
        const organisation = await newOrganisation();
        const successor = keyOf(organisation);
        await assert.rejects(store.replaceKey(randomUUID(), NOW_MS, successor));
        assert.equal(await store.findKey(successor.keyId), null);
      });

      test('keep the time of their first revocation', async () => {
        const organisation = await newOrganisation();
        const key = keyOf(organisation);
        await store.addKey(key);
        await store.revokeKey(key.keyId, NOW_MS);
        await store.revokeKey(key.keyId, NOW_MS + 1);
        assert.equal((await store.findKey(key.keyId))?.revokedAtMs, NOW_MS);
      });

      test('have a last use that only moves forward', async () => {
        const organisation = await newOrganisation();
        const [key, unused] = [keyOf(organisation), keyOf(organisation)];
        await store.addKey(key);
        await store.addKey(unused);
        for (const usedAtMs of [NOW_MS + 5, NOW_MS + 9, NOW_MS + 7]) {
          await store.noteKeysUsed(new Map([[key.keyId, usedAtMs]]));
        }
        assert.equal((await store.findKey(key.keyId))?.lastUsedAtMs, NOW_MS + 9);
        assert.equal((await store.findKey(unused.keyId))?.lastUsedAtMs, null);
      });
    });

    describe('an upload', () => {
      test('counts created, updated and unchanged records, in any order', async () => {
        const organisation = await newOrganisation();
        const fates = ['created', 'updated', 'unchanged'] as const;
        for (let round = 0; round < 20; round++) {
          const drawn = Array.from({ length: 12 }, () => fates[Math.floor(Math.random() * fates.length)]!);
          const known = drawn.map(() => recordRow('tags', { name: 'known' }));
          const isKnown = (_: Row, position: number): boolean => drawn[position] !== 'created';
          await upload(organisation, 'tags', [known.filter(isKnown)]);
          // The last write to another table must not affect the counts of this one.
          await upload(organisation, 'keywords', [[recordRow('keywords')]]);
          const position = recordTypeFields('tags').indexOf('name');
          const sent = known.map((row, at) => (drawn[at] === 'updated' ? row.with(position, 'new') : row));
          const count = (fate: string): number => drawn.filter((one) => one === fate).length;
          assert.deepEqual(
            await upload(organisation, 'tags', [sent]),
            written(tally(count('created'), count('updated'), count('unchanged'))),
            drawn.join(),
          );
        }
      });

      /** Stores a shop and uploads it again with other values. Returns the result and the stored name. */
      const changeShop = async (
        stored: Values,
        incoming: Values,
      ): Promise<{ outcome: Written; name: ColumnValue }> => {
        const organisation = await newOrganisation();
        const id = randomUUID();
        const shop = (values: Values) => recordRow('shops', { shop_id: id, ...values });
        assert.deepEqual(await upload(organisation, 'shops', [[shop(stored)]]), written(tally(1, 0, 0)));
        const outcome = await upload(organisation, 'shops', [[shop(incoming)]]);
        const kept = await store.record(organisation, 'shops', id);
        return { outcome, name: fieldOf(kept!, 'shops', 'name') };
      };

      const rules: readonly { title: string; stored: Values; incoming: Values; becomes: Tally }[] = [
        { title: 'keeps an identical record', stored: {}, incoming: {}, becomes: tally(0, 0, 1) },
        {
          title: 'keeps an identical record with all fields',
          stored: { is_public: true, created: EARLIER, updated: EARLIER, is_deleted: true },
          incoming: { is_public: true, created: EARLIER, updated: EARLIER, is_deleted: true },
          becomes: tally(0, 0, 1),
        },
        {
          title: 'replaces a record by a newer one',
          stored: { name: 'old', updated: EARLIER },
          incoming: { name: 'new', updated: LATER },
          becomes: tally(0, 1, 0),
        },
        {
          title: 'ignores an older record',
          stored: { name: 'new', updated: LATER },
          incoming: { name: 'old', updated: EARLIER },
          becomes: tally(0, 0, 1),
        },
        {
          title: 'replaces a record by a different one with the same date',
          stored: { name: 'old', updated: EARLIER },
          incoming: { name: 'new', updated: EARLIER },
          becomes: tally(0, 1, 0),
        },
        {
          title: 'replaces a record with updated by one without it',
          stored: { name: 'old', updated: LATER },
          incoming: { name: 'new' },
          becomes: tally(0, 1, 0),
        },
        {
          title: 'replaces a record without updated by one with it',
          stored: { name: 'old' },
          incoming: { name: 'new', updated: EARLIER },
          becomes: tally(0, 1, 0),
        },
        {
          title: 'replaces a record without updated by another one without it',
          stored: { name: 'old' },
          incoming: { name: 'new' },
          becomes: tally(0, 1, 0),
        },
        {
          title: 'replaces a record if only updated differs',
          stored: { updated: EARLIER },
          incoming: { updated: LATER },
          becomes: tally(0, 1, 0),
        },
        {
          title: 'replaces a value by null',
          stored: { is_public: false },
          incoming: { is_public: null },
          becomes: tally(0, 1, 0),
        },
        {
          title: 'replaces a record by a deleted one',
          stored: {},
          incoming: { is_deleted: true },
          becomes: tally(0, 1, 0),
        },
      ];
      for (const { title, stored, incoming, becomes } of rules) {
        test(title, async () => {
          const { outcome, name } = await changeShop(stored, incoming);
          assert.deepEqual(outcome, written(becomes));
          assert.equal(name, becomes.updated === 1 ? (incoming.name ?? 'text') : (stored.name ?? 'text'));
        });
      }

      test('replaces the whole record, not only the fields that differ', async () => {
        const organisation = await newOrganisation();
        const id = randomUUID();
        const first = recordRow('shops', { shop_id: id, is_public: true, created: EARLIER });
        const second = recordRow('shops', { shop_id: id, name: 'new', is_deleted: true });
        await upload(organisation, 'shops', [[first]]);
        await upload(organisation, 'shops', [[second]]);
        assert.deepEqual(await store.record(organisation, 'shops', id), second);
      });

      test('counts each batch separately', async () => {
        const organisation = await newOrganisation();
        const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => recordRow('tags', { name }));
        await upload(organisation, 'tags', [[a!, b!]]);
        const changed = recordRow('tags', { tag_id: b![0]!, name: 'changed' });
        assert.deepEqual(
          await upload(organisation, 'tags', [[a!, changed, c!], [], [d!]]),
          written(tally(1, 1, 1), tally(0, 0, 0), tally(1, 0, 0)),
        );
      });

      test('without batches succeeds', async () => {
        assert.deepEqual(await upload(await newOrganisation(), 'tags', []), written());
      });

      test('stores all of its batches or nothing, and its idempotency record only with them', async () => {
        const organisation = await newOrganisation();
        const good = recordRow('branches');
        const unstorable = recordRow('branches', { latitude: 'north' });
        const idempotencyRecord = idempotencyRecordOf(organisation);
        const kept = recordRow('branches');
        const [failing] = await Promise.allSettled([
          write(organisation, 'branches', [[good], [unstorable]], { idempotencyRecord }),
          write(organisation, 'branches', [[kept]]),
        ]);
        assert.equal(failing.status, 'rejected');
        assert.ok(!(failing.reason instanceof StoreUnavailable), 'an invalid row is not an outage');
        assert.deepEqual(await everyRecord(store, organisation, 'branches'), [kept]);
        assert.equal(await store.storedResponse(idempotencyRecord, NOW_MS), null);
      });

      test('as a dry run returns the counts of the upload and stores nothing', async () => {
        const organisation = await newOrganisation();
        const [stored, changed, fresh] = ['a', 'b', 'c'].map((name) => recordRow('tags', { name }));
        await upload(organisation, 'tags', [[stored!, changed!]]);
        const batches = [[stored!, recordRow('tags', { tag_id: changed![0]!, name: 'new' })], [fresh!]];
        const tallies = [tally(0, 1, 1), tally(1, 0, 0)];
        assert.deepEqual(await store.dryRun({ organisation, type: 'tags', batches }), tallies);
        const listed = await everyRecord(store, organisation, 'tags');
        assert.deepEqual(new Set(listed.map((row) => row[1])), new Set(['a', 'b']));
        assert.deepEqual(await upload(organisation, 'tags', batches), written(...tallies));
      });

      test('at the same time as many others leaves the newest record', async () => {
        const organisation = await newOrganisation();
        const id = randomUUID();
        const moments = Array.from({ length: 40 }, (_, n) => `2024-05-01T09:30:00.0000${n + 10}Z`);
        const outcomes = await Promise.all(
          moments
            .toSorted((a, b) => a.at(-2)!.localeCompare(b.at(-2)!))
            .map((updated) => write(organisation, 'tags', [[recordRow('tags', { tag_id: id, updated })]])),
        );
        const created = outcomes.filter((one) => one.kind === 'written' && one.tallies[0]?.created === 1);
        assert.equal(created.length, 1);
        const kept = await store.record(organisation, 'tags', id);
        assert.equal(fieldOf(kept!, 'tags', 'updated'), moments.at(-1));
      });

      test('is seen by every read that begins after its acknowledgement', async () => {
        const organisation = await newOrganisation();
        await Promise.all(
          Array.from({ length: 100 }, async () => {
            const row = recordRow('keywords');
            const id = row[0] as string;
            await upload(organisation, 'keywords', [[row]]);
            assert.deepEqual(await store.existing(organisation, 'keywords', [id]), new Set([id]));
          }),
        );
      });

      test('is still stored when the store is opened again', async () => {
        const own = await open();
        try {
          const { organisation } = (await own.store.createOrganisation('one', randomUUID(), NOW_MS))!;
          const row = recordRow('courses');
          const idempotencyRecord = idempotencyRecordOf(organisation);
          const interactionKept = interactionRow();
          const key = keyOf(organisation);
          await own.store.addKey(key);
          await own.store.write({
            organisation,
            type: 'courses',
            batches: [[row]],
            idempotencyRecord,
            entry: null,
          });
          await own.store.writeInteraction({
            organisation,
            row: interactionKept,
            idempotencyRecord: null,
            entry: null,
          });
          const again = await own.reopen();
          assert.deepEqual(await again.record(organisation, 'courses', row[0] as string), row);
          assert.deepEqual((await again.storedResponse(idempotencyRecord, NOW_MS))?.tallies, [
            tally(1, 0, 0),
          ]);
          assert.deepEqual(await everyInteraction(again, organisation), [interactionKept]);
          assert.equal((await again.findKey(key.keyId))?.secretHash, key.secretHash);
          assert.equal((await again.organisations()).length, 1);
        } finally {
          await own.dispose();
        }
      });
    });

    describe('values', () => {
      for (const type of recordTypeNames) {
        test(`of ${type} come back as they were given`, async () => {
          const { key, fields } = recordTypes[type];
          const keyPosition = Object.keys(fields).indexOf(key);
          const organisation = await newOrganisation();
          await fc.assert(
            fc.asyncProperty(
              fc.uniqueArray(anyRow(fields), {
                minLength: 1,
                maxLength: 20,
                selector: (row) => row[keyPosition],
              }),
              async (rows) => {
                await upload(organisation, type, [rows]);
                for (const row of rows) {
                  const kept = await store.record(organisation, type, row[keyPosition] as string);
                  assert.deepEqual(kept, row);
                }
                assert.deepEqual(await upload(organisation, type, [rows]), written(tally(0, 0, rows.length)));
              },
            ),
            { numRuns: times(10, 5) },
          );
        });
      }

      test('may be null in every field except the key: the store checks no required fields', async () => {
        const organisation = await newOrganisation();
        for (const type of recordTypeNames) {
          const { key, fields } = recordTypes[type];
          const empty = recordRow(
            type,
            Object.fromEntries(recordTypeFields(type).map((name) => [name, null])),
          );
          const rows = Array.from({ length: 150 }, () =>
            empty.with(Object.keys(fields).indexOf(key), randomUUID()),
          );
          const id = (row: Row): string => row[Object.keys(fields).indexOf(key)] as string;
          for (const batch of [rows.slice(0, 1), rows.slice(1)]) {
            const { length } = batch;
            assert.deepEqual(await upload(organisation, type, [batch]), written(tally(length, 0, 0)), type);
            assert.deepEqual(await upload(organisation, type, [batch]), written(tally(0, 0, length)), type);
          }
          const filled = recordRow(type, { [key]: id(rows[0]!) });
          assert.deepEqual(await upload(organisation, type, [[filled]]), written(tally(0, 1, 0)), type);
          assert.deepEqual(await upload(organisation, type, [[rows[0]!]]), written(tally(0, 1, 0)), type);
          assert.deepEqual(await store.record(organisation, type, id(rows[0]!)), rows[0], type);
          const stored = await everyRecord(store, organisation, type);
          assert.deepEqual(new Set(stored.map(id)), new Set(rows.map(id)), type);
        }
      });

      /** Returns more rows than stores write one by one, with texts that have a meaning in text formats. */
      const manyRows = (type: RecordTypeName): readonly Row[] => {
        const awkward = ['\\N', '\\', 'a\tb\nc\rd', '\\.', '"{},', '', 'NULL', 'é\u2028😀'];
        const rows = fc.sample(anyRow(recordTypes[type].fields), 300).map((row, at) =>
          row.map((value, position) => {
            const { kind } = Object.values(recordTypes[type].fields)[position]!;
            return kind.name === 'text' && value !== null && at < 100 ? awkward[at % awkward.length]! : value;
          }),
        );
        const keyPosition = recordTypeFields(type).indexOf(recordTypes[type].key);
        return [...new Map(rows.map((row) => [row[keyPosition], row])).values()];
      };

      for (const type of ['transactions', 'offers', 'customers'] as const) {
        test(`of many ${type} at once come back as they were given`, async () => {
          const organisation = await newOrganisation();
          const rows = manyRows(type);
          const half = Math.floor(rows.length / 2);
          const batches = [rows.slice(0, half), rows.slice(half)];
          const idempotencyRecord = idempotencyRecordOf(organisation);
          const allNew = written(tally(half, 0, 0), tally(rows.length - half, 0, 0));
          assert.deepEqual(written(...(await store.dryRun({ organisation, type, batches }))), allNew);
          assert.deepEqual(await everyRecord(store, organisation, type), []);
          assert.deepEqual(
            await store.write({ organisation, type, batches, idempotencyRecord, entry: null }),
            allNew,
          );
          const keyPosition = recordTypeFields(type).indexOf(recordTypes[type].key);
          const byKey = rows.toSorted((a, b) => (a[keyPosition]! < b[keyPosition]! ? -1 : 1));
          assert.deepEqual(await everyRecord(store, organisation, type), byKey);
          assert.deepEqual(await upload(organisation, type, [rows]), written(tally(0, 0, rows.length)));
          const [first] = manyRows(type);
          const mixed = [...rows.slice(0, 200), first!];
          assert.deepEqual(await upload(organisation, type, [mixed]), written(tally(1, 0, 200)));
        });
      }

      for (const [size, name] of [
        ['small', 'tag'],
        ['large', 'x'.repeat(10_000)],
      ] as const)
        test(`of many new ${size} records are stored once by several simultaneous uploads`, async () => {
          const organisation = await newOrganisation();
          const rows = Array.from({ length: 1000 }, () => recordRow('tags', { name }));
          const uploads = Array.from({ length: 6 }, (_, number) => {
            const idempotencyRecord = number % 2 === 0 ? idempotencyRecordOf(organisation) : null;
            const batches = [number % 3 === 0 ? rows : rows.toReversed()];
            return store.write({ organisation, type: 'tags', batches, idempotencyRecord, entry: null });
          });
          const tallies = (await Promise.all(uploads)).flatMap((outcome) =>
            outcome.kind === 'written' ? outcome.tallies : [],
          );
          assert.equal(tallies.length, uploads.length);
          assert.equal(
            tallies.reduce((sum, { created }) => sum + created, 0),
            rows.length,
          );
          assert.equal(
            tallies.reduce((sum, { updated }) => sum + updated, 0),
            0,
          );
          assert.equal(await store.countRecords(organisation, 'tags'), rows.length);
        });

      test('of interactions come back as they were given', async () => {
        const organisation = await newOrganisation();
        await fc.assert(
          fc.asyncProperty(anyRow(storedInteraction), async (row) => {
            await store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null });
            assert.deepEqual(await store.interaction(organisation, interactionIdOf(row)), row);
          }),
          { numRuns: times(50, 20) },
        );
      });
    });

    describe('organisations with equal ids', () => {
      test('have separate records in every call', async () => {
        const [ours, theirs] = [await newOrganisation(), await newOrganisation()];
        const id = randomUUID();
        const own = (name: string) => recordRow('shops', { shop_id: id, name });
        await upload(ours, 'shops', [[own('ours')]]);
        assert.deepEqual(await store.existing(theirs, 'shops', [id]), new Set());
        assert.equal(await store.record(theirs, 'shops', id), null);
        assert.deepEqual(await everyRecord(store, theirs, 'shops'), []);
        assert.deepEqual(await upload(theirs, 'shops', [[own('theirs')]]), written(tally(1, 0, 0)));
        assert.deepEqual(await everyRecord(store, ours, 'shops'), [own('ours')]);
        assert.deepEqual(await everyRecord(store, theirs, 'shops'), [own('theirs')]);
      });

      test('have separate interactions in every call', async () => {
        const [ours, theirs] = [await newOrganisation(), await newOrganisation()];
        const row = interactionRow({ user_id: 'ours' });
        await store.writeInteraction({ organisation: ours, row, idempotencyRecord: null, entry: null });
        assert.equal(await store.interaction(theirs, interactionIdOf(row)), null);
        assert.deepEqual(await everyInteraction(store, theirs), []);
        const same = interactionRow({ user_id: 'theirs', interaction_id: interactionIdOf(row) });
        assert.deepEqual(
          await store.writeInteraction({
            organisation: theirs,
            row: same,
            idempotencyRecord: null,
            entry: null,
          }),
          written(tally(1, 0, 0)),
        );
        assert.deepEqual(await store.interaction(ours, interactionIdOf(row)), row);
      });

      test('upload interactions, which are never changed afterwards', async () => {
        const organisation = await newOrganisation();
        const rows = Array.from({ length: 150 }, () => interactionRow({ user_id: 'first' }));
        assert.deepEqual(
          await upload(organisation, 'interactions', [rows.slice(0, 100), rows.slice(100)]),
          written(tally(100, 0, 0), tally(50, 0, 0)),
        );
        const changed = rows.map((row) =>
          interactionRow({ user_id: 'second', interaction_id: interactionIdOf(row) }),
        );
        const more = interactionRow();
        assert.deepEqual(
          await upload(organisation, 'interactions', [[...changed, more]]),
          written(tally(1, 0, 150)),
        );
        for (const row of [rows[0]!, rows[149]!, more]) {
          assert.deepEqual(await store.interaction(organisation, interactionIdOf(row)), row);
        }
      });

      test('have interactions with the longest texts, even if these do not compress', async () => {
        const organisation = await newOrganisation();
        const text = randomBytes(7500).toString('base64');
        assert.equal(text.length, 10_000);
        const rows = ['a', 'b'].map((end) =>
          interactionRow({ user_id: `${text.slice(0, -1)}${end}`, city: text, country: text }),
        );
        for (const row of rows)
          await store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null });
        for (const row of rows) {
          const equal = { user_id: row[Object.keys(storedInteraction).indexOf('user_id')]! };
          assert.deepEqual(await everyInteraction(store, organisation, { equal }), [row]);
        }
      });

      test('have separate idempotency records', async () => {
        const [ours, theirs] = [await newOrganisation(), await newOrganisation()];
        const idempotencyRecord = idempotencyRecordOf(ours);
        await upload(ours, 'tags', [[recordRow('tags')]], { idempotencyRecord });
        assert.equal(
          await store.storedResponse({ ...idempotencyRecord, organisation: theirs }, NOW_MS),
          null,
        );
        assert.deepEqual(
          await upload(theirs, 'tags', [[]], {
            idempotencyRecord: { ...idempotencyRecord, organisation: theirs },
          }),
          written(tally(0, 0, 0)),
        );
      });
    });

    describe('an idempotency record', () => {
      test('is stored with the counts of its write, byte for byte', async () => {
        const organisation = await newOrganisation();
        // A view into the middle of a larger buffer, as network code produces it.
        const response = new Uint8Array(new Uint8Array(1000).map((_, n) => n % 256).buffer, 100, 600);
        const idempotencyRecord = idempotencyRecordOf(organisation, { response });
        await upload(organisation, 'tags', [[recordRow('tags')], [recordRow('tags'), recordRow('tags')]], {
          idempotencyRecord,
        });
        const found = await store.storedResponse(idempotencyRecord, NOW_MS);
        assert.equal(found?.fingerprint, 'print');
        assert.deepEqual(found.tallies, [tally(1, 0, 0), tally(2, 0, 0)]);
        assert.deepEqual(Buffer.from(found.response), Buffer.from(response));
      });

      test('that already exists prevents the write', async () => {
        const organisation = await newOrganisation();
        const idempotencyRecord = idempotencyRecordOf(organisation);
        const late = recordRow('tags');
        await upload(organisation, 'tags', [[recordRow('tags')]], { idempotencyRecord });
        const outcome = await upload(organisation, 'tags', [[late], []], {
          idempotencyRecord: { ...idempotencyRecord, fingerprint: 'other', response: new Uint8Array([9]) },
        });
        assert.equal(outcome.kind, 'replay');
        assert.equal(outcome.stored.fingerprint, 'print');
        assert.deepEqual([...outcome.stored.response], [...idempotencyRecord.response]);
        assert.deepEqual(outcome.stored.tallies, [tally(1, 0, 0)]);
        assert.deepEqual(await store.existing(organisation, 'tags', [late[0] as string]), new Set());
        assert.equal((await store.storedResponse(idempotencyRecord, NOW_MS))?.fingerprint, 'print');
      });

      test('allows exactly one of many writes with the same key', async () => {
        const organisation = await newOrganisation();
        const idempotencyRecord = idempotencyRecordOf(organisation);
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, () =>
            write(organisation, 'tags', [[recordRow('tags')]], {
              idempotencyRecord: { ...idempotencyRecord },
            }),
          ),
        );
        assert.equal(outcomes.filter(({ kind }) => kind === 'written').length, 1);
        assert.equal((await everyRecord(store, organisation, 'tags')).length, 1);
      });

      test('is found only by its own path and key', async () => {
        const organisation = await newOrganisation();
        const idempotencyRecord = idempotencyRecordOf(organisation);
        await upload(organisation, 'tags', [[]], { idempotencyRecord });
        assert.equal(
          await store.storedResponse({ ...idempotencyRecord, path: '/v1/data/tags' }, NOW_MS),
          null,
        );
        assert.equal(await store.storedResponse({ ...idempotencyRecord, key: randomUUID() }, NOW_MS), null);
        assert.notEqual(await store.storedResponse(idempotencyRecord, NOW_MS), null);
      });

      test('expires, and its key can then be used again', async () => {
        const organisation = await newOrganisation();
        const idempotencyRecord = idempotencyRecordOf(organisation);
        await upload(organisation, 'tags', [[]], { idempotencyRecord });
        assert.notEqual(
          await store.storedResponse(idempotencyRecord, idempotencyRecord.expiresAtMs - 1),
          null,
        );
        assert.equal(await store.storedResponse(idempotencyRecord, idempotencyRecord.expiresAtMs), null);
        const next = {
          ...idempotencyRecord,
          fingerprint: 'next',
          storedAtMs: idempotencyRecord.expiresAtMs,
          expiresAtMs: idempotencyRecord.expiresAtMs + 1000,
        };
        const outcome = await upload(organisation, 'tags', [[recordRow('tags')]], {
          idempotencyRecord: next,
        });
        assert.deepEqual(outcome, written(tally(1, 0, 0)));
        assert.equal((await store.storedResponse(next, idempotencyRecord.expiresAtMs))?.fingerprint, 'next');
      });

      test('is deleted once it has expired, not before, however many there are', async () => {
        const organisation = await newOrganisation();
        const expiring = Array.from({ length: 450 }, () =>
          idempotencyRecordOf(organisation, { expiresAtMs: NOW_MS + 5 }),
        );
        const lasting = idempotencyRecordOf(organisation, { expiresAtMs: NOW_MS + 6 });
        await Promise.all(
          [...expiring, lasting].map((idempotencyRecord) =>
            store.writeInteraction({ organisation, row: null, idempotencyRecord, entry: null }),
          ),
        );
        const remaining = async () => {
          const found = await Promise.all(
            expiring.map((idempotencyRecord) => store.storedResponse(idempotencyRecord, NOW_MS)),
          );
          return found.filter((one) => one !== null).length;
        };
        await store.deleteExpiredResponses(NOW_MS + 4);
        assert.equal(await remaining(), 450);
        await store.deleteExpiredResponses(NOW_MS + 5);
        assert.equal(await remaining(), 0);
        assert.notEqual(await store.storedResponse(lasting, NOW_MS), null);
      });

      test('of an interaction is stored with it, or alone', async () => {
        const organisation = await newOrganisation();
        const [together, alone] = [idempotencyRecordOf(organisation), idempotencyRecordOf(organisation)];
        const row = interactionRow();
        assert.deepEqual(
          await store.writeInteraction({ organisation, row, idempotencyRecord: together, entry: null }),
          written(tally(1, 0, 0)),
        );
        assert.deepEqual(
          await store.writeInteraction({ organisation, row: null, idempotencyRecord: alone, entry: null }),
          written(),
        );
        assert.deepEqual((await store.storedResponse(together, NOW_MS))?.tallies, [tally(1, 0, 0)]);
        assert.deepEqual((await store.storedResponse(alone, NOW_MS))?.tallies, []);
        const again = await store.writeInteraction({
          organisation,
          row: interactionRow(),
          idempotencyRecord: together,
          entry: null,
        });
        assert.equal(again.kind, 'replay');
        assert.deepEqual(await everyInteraction(store, organisation), [row]);
      });
    });

    describe('a count', () => {
      test('is of one organisation and one type, deleted records included', async () => {
        const [organisation, other] = [await newOrganisation(), await newOrganisation()];
        const rows = [recordRow('tags'), recordRow('tags', { is_deleted: true })];
        await upload(organisation, 'tags', [rows]);
        await upload(other, 'tags', [rows.slice(1)]);
        await store.writeInteraction({
          organisation,
          row: interactionRow(),
          idempotencyRecord: null,
          entry: null,
        });
        assert.equal(await store.countRecords(organisation, 'tags'), 2);
        assert.equal(await store.countRecords(other, 'tags'), 1);
        assert.equal(await store.countRecords(organisation, 'shops'), 0);
        assert.equal(await store.countInteractions(organisation), 1);
        assert.equal(await store.countInteractions(other), 0);
      });
    });

    describe('existence', () => {
      test('is reported for each id, deleted records included, and for the given type only', async () => {
        const organisation = await newOrganisation();
        const [here, deleted] = [recordRow('shops'), recordRow('shops', { is_deleted: true })];
        await upload(organisation, 'shops', [[here, deleted]]);
        const ids = [here[0] as string, randomUUID(), deleted[0] as string, here[0] as string];
        assert.deepEqual(await store.existing(organisation, 'shops', ids), new Set([ids[0], ids[2]]));
        assert.deepEqual(await store.existing(organisation, 'tags', ids), new Set());
        assert.deepEqual(await store.existing(organisation, 'shops', []), new Set());
      });

      test('is reported for thousands of ids at once', async () => {
        const organisation = await newOrganisation();
        const rows = Array.from({ length: 3000 }, () => recordRow('tags'));
        await upload(organisation, 'tags', [rows]);
        const there = rows.map((row) => row[0] as string);
        const missing = Array.from({ length: 3000 }, () => randomUUID());
        assert.deepEqual(await store.existing(organisation, 'tags', [...missing, ...there]), new Set(there));
      });
    });

    describe('records', () => {
      test('are listed by id, page after page, without deleted ones by default', async () => {
        const organisation = await newOrganisation();
        const rows = Array.from({ length: 25 }, (_, n) => recordRow('tags', { is_deleted: n % 5 === 0 }));
        await upload(organisation, 'tags', [rows]);
        for (const includeDeleted of [true, false]) {
          const wanted = rows
            .filter((row) => includeDeleted || fieldOf(row, 'tags', 'is_deleted') === false)
            .toSorted((a, b) => (a[0]! < b[0]! ? -1 : 1));
          const listed: Row[] = [];
          let afterId: string | null = null;
          do {
            const asked = { afterId, limit: 7, includeDeleted };
            const { rows: some, next }: Page<string> = await store.records(organisation, 'tags', asked);
            assert.ok(some.length === 7 || next === null);
            listed.push(...some);
            afterId = next;
          } while (afterId !== null);
          assert.deepEqual(listed, wanted);
        }
      });

      test('that are long make a page shorter, and one longer than a page is a page of its own', async () => {
        const organisation = await newOrganisation();
        const texts = { name: 'n'.repeat(200_000), type: '\u0001'.repeat(20_000) };
        const short = Array.from({ length: 30 }, () => recordRow('offers'));
        const long = Array.from({ length: 30 }, () => recordRow('offers', texts));
        const huge = [recordRow('offers', { name: 'n'.repeat(5_000_000) })];
        const rows = [...short, ...long, ...huge].toSorted((a, b) => (a[0]! < b[0]! ? -1 : 1));
        await upload(organisation, 'offers', [rows]);
        const listed: Row[] = [];
        let afterId: string | null = null;
        do {
          const asked = { afterId, limit: 1000, includeDeleted: false };
          const { rows: some, next }: Page<string> = await store.records(organisation, 'offers', asked);
          assert.ok(some.length === 1 || JSON.stringify(some).length < 5_000_000);
          assert.ok(some.length > 0);
          if (next !== null) assert.equal(next, some.at(-1)![0]);
          listed.push(...some);
          afterId = next;
        } while (afterId !== null);
        assert.deepEqual(
          listed.map(([id]) => id),
          rows.map(([id]) => id),
        );
        assert.deepEqual(listed, rows);
      });

      test('among many deleted ones are found in steps, and a page may be empty', async () => {
        const organisation = await newOrganisation();
        const rows = Array.from({ length: 50_000 }, (_, n) =>
          recordRow('tags', { is_deleted: n !== 49_000 }),
        );
        rows.sort((a, b) => (a[0]! < b[0]! ? -1 : 1));
        const live = rows.filter((row) => fieldOf(row, 'tags', 'is_deleted') === false);
        for (let first = 0; first < rows.length; first += 5000) {
          await upload(organisation, 'tags', [rows.slice(first, first + 5000)]);
        }
        let pages = 0;
        const listed: Row[] = [];
        let afterId: string | null = null;
        do {
          const asked = { afterId, limit: 10, includeDeleted: false };
          const { rows: some, next }: Page<string> = await store.records(organisation, 'tags', asked);
          listed.push(...some);
          afterId = next;
          pages++;
        } while (afterId !== null);
        assert.deepEqual(listed, live);
        assert.ok(pages >= 2 && pages < 50, `${pages} pages`);
        assert.equal(await store.countRecords(organisation, 'tags'), rows.length);
        const full = await store.records(organisation, 'tags', {
          afterId: null,
          limit: 1000,
          includeDeleted: true,
        });
        assert.deepEqual(full.rows, rows.slice(0, 1000));
        assert.equal(full.next, rows[999]![0]);
      });

      test('that are deleted are found by id, and unknown ones are not', async () => {
        const organisation = await newOrganisation();
        const row = recordRow('offers', { is_deleted: true });
        await upload(organisation, 'offers', [[row]]);
        assert.deepEqual(await store.record(organisation, 'offers', row[0] as string), row);
        assert.equal(await store.record(organisation, 'offers', randomUUID()), null);
      });
    });

    describe('interactions', () => {
      const moment = (second: number) => `2024-05-01T09:30:${String(second).padStart(2, '0')}.000000Z`;
      let organisation: OrganisationNumber;
      let sent: readonly Row[];
      /** The same rows in the order in which they are listed. */
      let rows: readonly Row[];
      const student = randomUUID();
      const item = randomUUID();

      before(async () => {
        organisation = await newOrganisation();
        sent = Array.from({ length: 30 }, (_, n) =>
          interactionRow({
            occurred_at: moment(Math.floor(n / 3)),
            student_id: n % 2 === 0 ? student : null,
            user_id: `user ${n % 3}`,
            source: n % 5 === 0 ? 'SERVICE' : null,
            item_type: n % 3 === 0 ? 'SHOP' : 'TAG',
            item_id: n % 4 === 0 ? item : randomUUID(),
            interaction_type: n % 7 === 0 ? 'SHARE' : 'PAGE_VIEW',
          }),
        );
        await Promise.all(
          sent.map((row) =>
            store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null }),
          ),
        );
        rows = await everyInteraction(store, organisation);
      });

      const names = Object.keys(storedInteraction);
      const valueIn = (row: Row, field: string) => row[names.indexOf(field)]!;

      /** Returns the rows that the list should have, computed from all rows. */
      const expected = ({ equal, from, to, before: end, limit }: InteractionPage): readonly Row[] => {
        const start =
          end === null ? 0 : rows.findIndex((row) => interactionIdOf(row) === end.interactionId) + 1;
        return rows
          .slice(start)
          .filter((row) => Object.entries(equal).every(([field, value]) => valueIn(row, field) === value))
          .filter((row) => from === null || String(valueIn(row, 'occurred_at')) >= from)
          .filter((row) => to === null || String(valueIn(row, 'occurred_at')) < to)
          .slice(0, limit);
      };

      test('are listed newest first, each once', async () => {
        const byId = (list: readonly Row[]) => new Map(list.map((row) => [interactionIdOf(row), row]));
        assert.equal(rows.length, sent.length);
        assert.deepEqual(byId(rows), byId(sent));
        const times = rows.map((row) => String(valueIn(row, 'occurred_at')));
        assert.deepEqual(times, times.toSorted().toReversed());
      });

      test('are listed in the same order page after page', async () => {
        const listed = await everyInteraction(store, organisation, { limit: 4 });
        assert.deepEqual(listed, expected(allInteractions));
      });

      test('are listed correctly for any combination of filters, bounds and start positions', async () => {
        const filters = fc
          .uniqueArray(
            fc.constantFrom<[string, ColumnValue]>(
              ['student_id', student],
              ['student_id', null],
              ['user_id', 'user 0'],
              ['user_id', 'nobody'],
              ['source', 'SERVICE'],
              ['source', null],
              ['item_type', 'SHOP'],
              ['item_id', item],
              ['interaction_type', 'SHARE'],
              ['interaction_type', 'PAGE_VIEW'],
            ),
            { maxLength: 3, selector: ([field]) => field },
          )
          .map((entries) => Object.fromEntries(entries));
        const bound = fc.option(fc.integer({ min: 0, max: 12 }).map(moment));
        const anyPage: fc.Arbitrary<InteractionPage> = fc.record({
          equal: filters,
          from: bound,
          to: bound,
          before: fc.option(
            fc.integer({ min: 0, max: 29 }).map((n) => ({
              occurredAt: String(valueIn(rows[n]!, 'occurred_at')),
              interactionId: interactionIdOf(rows[n]!),
            })),
          ),
          limit: fc.integer({ min: 1, max: 40 }),
        });
        let found = 0;
        await fc.assert(
          fc.asyncProperty(anyPage, async (page) => {
            const { rows: listed, next } = await store.interactions(organisation, page);
            assert.deepEqual(listed, expected(page));
            assert.equal(next === null, listed.length === expected({ ...page, limit: 1000 }).length);
            found += listed.length;
          }),
          { numRuns: 200 },
        );
        assert.ok(found > 100, 'almost all pages were empty');
      });

      test('can be filtered by each field that a client sends', async () => {
        const row = rows[0]!;
        for (const field of Object.keys(interaction)) {
          const page = { ...allInteractions, equal: { [field]: valueIn(row, field) } };
          const { rows: listed } = await store.interactions(organisation, page);
          assert.deepEqual(listed, expected(page), field);
        }
      });

      test('are found by id, and unknown ones are not', async () => {
        assert.deepEqual(await store.interaction(organisation, interactionIdOf(rows[3]!)), rows[3]);
        assert.equal(await store.interaction(organisation, randomUUID()), null);
      });

      test('that are written twice are stored once', async () => {
        const own = await newOrganisation();
        const row = interactionRow();
        await store.writeInteraction({ organisation: own, row, idempotencyRecord: null, entry: null });
        const again = await store.writeInteraction({
          organisation: own,
          row,
          idempotencyRecord: null,
          entry: null,
        });
        assert.deepEqual(again, written(tally(0, 0, 1)));
        assert.deepEqual(await everyInteraction(store, own), [row]);
      });
    });

    describe('the lifecycle', () => {
      test('a ping succeeds while the store is open', async () => {
        await store.ping();
      });

      test('closing waits for running calls, and later calls are refused', async () => {
        const own = await open();
        try {
          const { organisation } = (await own.store.createOrganisation('one', randomUUID(), NOW_MS))!;
          const row = recordRow('tags');
          const upload = {
            organisation,
            type: 'tags',
            batches: [[row]],
            idempotencyRecord: null,
            entry: null,
          } as const;
          const underway = own.store.write(upload);
          const again = await own.reopen();
          assert.deepEqual(await underway, written(tally(1, 0, 0)));
          assert.deepEqual(await everyRecord(again, organisation, 'tags'), [row]);
          await assert.rejects(own.store.write(upload), StoreUnavailable);
          await assert.rejects(own.store.ping(), StoreUnavailable);
        } finally {
          await own.dispose();
        }
      });
    });
  });
}
