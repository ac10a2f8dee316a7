// Copies between real stores of both kinds, in both directions, through the `Store` interface.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { recordTypeNames, recordTypes, storedInteraction } from '@headgate/catalogue/record-types.ts';
import fc from 'fast-check';
import { type Comparison, copyEverything, type Part } from './copy.ts';
import { Failure } from './failure.ts';
import type { NewApiKey } from './store/keys.ts';
import type { UploadEntry } from './store/ledger.ts';
import type { OrganisationNumber, Row } from './store/rows.ts';
import type { Store } from './store/store.ts';
import { everyInteraction, everyRecord } from './store/test-lists.ts';
import { anyRow, interactionRow, recordRow } from './store/test-rows.ts';
import { directStores, type TestStore } from './store/test-stores.ts';
import { isThorough } from './store/test-thoroughness.ts';

/** More than one page of a copy, and not a multiple of a page. */
const MANY = 5003;
const SEED = 20_240_501;
const MOMENT_MS = 1_714_555_800_000;
/** Enough that some of the usage is already added up, and not a multiple of the entries in one part. */
const MANY_ENTRIES = 1203;
const parts: readonly Part[] = ['keys', ...recordTypeNames, 'interactions', 'ledger', 'segments'];

for (const from of directStores) {
  for (const to of directStores.filter((other) => other !== from)) {
    describe(`a copy from ${from.name} to ${to.name}`, () => {
      let source: TestStore;
      let target: TestStore;
      beforeEach(async () => {
        [source, target] = [await from.open(), await to.open()];
      });
      afterEach(async () => {
        await source.dispose();
        await target.dispose();
      });
      const copy = () => completeCopy(source.store, target.store);

      test('copies everything, page after page, and reports both sides as equal', async () => {
        const large = await newOrganisation(source.store, 'large');
        await fill(source.store, large);
        await writeRecords(source.store, large, 'keywords', MANY);
        await writeInteractions(source.store, large, MANY);
        await writeEntries(source.store, large, MANY_ENTRIES);
        await fill(source.store, await newOrganisation(source.store, 'small'));
        await newOrganisation(source.store, 'without anything');
        // Gives the organisations different numbers in the source and the target.
        await newOrganisation(target.store, 'has been here before');

        const comparisons = await copy();
        assert.deepEqual(await contentOf(target.store, 'has been here before'), nothing);
        for (const name of ['large', 'small', 'without anything']) {
          const content = await contentOf(source.store, name);
          assert.deepEqual(await contentOf(target.store, name), content);
          assert.deepEqual(
            new Map(
              comparisons
                .filter(({ organisation }) => organisation === name)
                .map(({ part, fromCount, toCount, isEqual }) => [part, [fromCount, toCount, isEqual]]),
            ),
            new Map(
              parts.map((part) => {
                const count = content[part]!.length;
                return [part, [count, count, true]];
              }),
            ),
          );
        }
        const organisations = await source.store.organisations();
        assert.deepEqual(
          (await target.store.organisations())
            .filter(({ name }) => name !== 'has been here before')
            .map(withoutNumber),
          organisations.map(withoutNumber),
        );
        assert.equal(comparisons.length, organisations.length * parts.length);
      });

      test('can be repeated, and copies what has changed since', async () => {
        const number = await newOrganisation(source.store, 'acme');
        await fill(source.store, number);
        await copy();
        const copied = await contentOf(target.store, 'acme');
        assertAllEqual(await copy());
        assert.deepEqual(await contentOf(target.store, 'acme'), copied);

        const [first, second, third] = await source.store.keysOf(number);
        await source.store.revokeKey(first!.keyId, MOMENT_MS + 5);
        await source.store.addKey(newKey(number, 'new'));
        const successor = newKey(number, 'successor');
        await source.store.replaceKey(second!.keyId, MOMENT_MS + 6, successor);
        await source.store.replaceKey(third!.keyId, MOMENT_MS + 7, newKey(number, 'another successor'));
        await source.store.replaceKey(successor.keyId, MOMENT_MS + 9, newKey(number, 'grandchild'));
        await source.store.noteKeysUsed(new Map([[third!.keyId, MOMENT_MS + 8]]));
        await writeRecords(source.store, number, 'shops', 3);
        await writeInteractions(source.store, number, 3);
        await writeEntries(source.store, number, 3);
        await revise(source.store, number, '9999-12-31T23:59:59.999999Z');
        const { revision } = await source.store.segments(number);
        await source.store.deleteSegment(number, revision, 'made again');
        await writeSegment(source.store, number, 'made again');
        await evaluateSegment(source.store, number, 'regulars');
        await newOrganisation(source.store, 'new');

        assertAllEqual(await copy());
        assert.deepEqual(await contentOf(target.store, 'acme'), await contentOf(source.store, 'acme'));
        assert.deepEqual(await contentOf(target.store, 'new'), nothing);
      });

      test('takes over which ids and entries have expired, and continues after the last entry', async () => {
        const number = await newOrganisation(source.store, 'acme');
        await writeEntries(source.store, number, 30);
        await copy();
        const numberThere = await numberOf(target.store, 'acme');
        await source.store.expireLedgers(MOMENT_MS + 20, MOMENT_MS + 10);
        await writeEntries(source.store, number, 2);
        assertAllEqual(await copy());
        const page = { after: { seq: 0, ids: null }, types: recordTypeNames, limit: 10 };
        assert.deepEqual(await target.store.changes(numberThere, page), { kind: 'gone', latest: 32 });
        assert.deepEqual(await target.store.ledgerSize(), await source.store.ledgerSize());
        assert.deepEqual(await contentOf(target.store, 'acme'), await contentOf(source.store, 'acme'));
        const position = { ...page, after: { seq: 25, ids: null } };
        assert.deepEqual(
          await target.store.changes(numberThere, position),
          await source.store.changes(number, position),
        );
      });

      test('leaves the target with the segments of the source, whatever it had before', async () => {
        const number = await newOrganisation(source.store, 'acme');
        for (const name of ['lost', 'expired', 'evaluated there']) {
          await writeSegment(source.store, number, name);
          await evaluateSegment(source.store, number, name);
        }
        await copy();
        const numberThere = await numberOf(target.store, 'acme');
        await evaluateSegment(target.store, numberThere, 'evaluated there');
        await writeSegment(target.store, numberThere, 'made there');
        await evaluateSegment(target.store, numberThere, 'made there');
        // It gets the number of the one that was made in the target.
        await writeSegment(source.store, number, 'made here');
        const { revision } = await source.store.segments(number);
        await source.store.deleteSegment(number, revision, 'lost');
        await evaluateSegment(source.store, number, 'expired');
        await copy();
        await source.store.expireMemberships(MOMENT_MS + 2);
        assertAllEqual(await copy());
        const content = await contentOf(source.store, 'acme');
        assert.equal(content.segments!.length, 3);
        assert.deepEqual(await contentOf(target.store, 'acme'), content);
      });

      test('replaces the segments of the target also if somebody saves one meanwhile', async () => {
        const number = await newOrganisation(source.store, 'acme');
        await writeSegment(source.store, number, 'a');
        await evaluateSegment(source.store, number, 'a');
        await copy();
        const numberThere = await numberOf(target.store, 'acme');
        let deletions = 0;
        const changing: Store = Object.assign(Object.create(target.store) as Store, {
          async deleteSegment(...args: Parameters<Store['deleteSegment']>) {
            if (++deletions === 1) await writeSegment(target.store, numberThere, 'saved meanwhile');
            return target.store.deleteSegment(...args);
          },
        });
        assertAllEqual(await completeCopy(source.store, changing));
        assert.deepEqual(await contentOf(target.store, 'acme'), await contentOf(source.store, 'acme'));
      });

      test('replaces the members that an interrupted copy has left', async () => {
        const number = await newOrganisation(source.store, 'acme');
        await writeSegment(source.store, number, 'a');
        await evaluateSegment(source.store, number, 'a');
        await evaluateSegment(source.store, number, 'a');
        const brokenOff = copyEverything(source.store, target.store, ({ doing, part }) => {
          if (doing === 'copying' && part === 'segments') throw new Error('broken off');
        });
        await assert.rejects(brokenOff, /^Error: broken off$/);
        await source.store.expireMemberships(MOMENT_MS + 2);
        assertAllEqual(await copy());
        assert.deepEqual(await contentOf(target.store, 'acme'), await contentOf(source.store, 'acme'));
      });

      test('lets the target go on with the next number', async () => {
        await writeEntries(source.store, await newOrganisation(source.store, 'acme'), 3);
        await copy();
        const numberThere = await numberOf(target.store, 'acme');
        await writeEntries(target.store, numberThere, 1);
        assert.equal(await target.store.latestEntry(numberThere), 4);
      });

      test('overwrites a record of the target that was changed without a newer date', async () => {
        const number = await newOrganisation(source.store, 'acme');
        await fill(source.store, number);
        await copy();
        await revise(target.store, await numberOf(target.store, 'acme'), null);
        assert.notDeepEqual(await contentOf(target.store, 'acme'), await contentOf(source.store, 'acme'));
        assertAllEqual(await copy());
        assert.deepEqual(await contentOf(target.store, 'acme'), await contentOf(source.store, 'acme'));
      });

      test('keeps a key that was rotated in the target, and reports that the keys differ', async () => {
        const number = await newOrganisation(source.store, 'acme');
        const [key, here, there] = ['old', 'here', 'there'].map((name) => newKey(number, name));
        await source.store.addKey(key!);
        await copy();
        const numberThere = await numberOf(target.store, 'acme');
        await source.store.replaceKey(key!.keyId, MOMENT_MS + 6, here!);
        await target.store.replaceKey(key!.keyId, MOMENT_MS + 7, { ...there!, organisation: numberThere });
        const replacedThere = await target.store.findKey(key!.keyId);
        const differing = (await copy()).filter(({ isEqual }) => !isEqual);
        assert.deepEqual(
          differing.map(({ part, fromCount, toCount }) => [part, fromCount, toCount]),
          [['keys', 2, 3]],
        );
        assert.deepEqual(await target.store.findKey(key!.keyId), replacedThere);
      });

      // What follows depends on neither the kind of the source nor that of the target.
      if (from !== directStores[0] && !isThorough) return;

      test('that was interrupted is completed by the next copy', async () => {
        await fill(source.store, await newOrganisation(source.store, 'acme'));
        await fill(source.store, await newOrganisation(source.store, 'bmce'));
        let steps = 0;
        await copyEverything(source.store, target.store, () => steps++);
        assert.ok(steps > parts.length);
        const quarter = Math.floor(steps / 4);
        for (const lastStep of isThorough
          ? [1, 2, quarter, 2 * quarter, steps - 1]
          : [2, 2 * quarter, steps - 1]) {
          await target.dispose();
          target = await to.open();
          let step = 0;
          const brokenOff = copyEverything(source.store, target.store, () => {
            if (++step === lastStep) throw new Error('broken off');
          });
          await assert.rejects(brokenOff, /^Error: broken off$/);
          assertAllEqual(await copy());
          for (const name of ['acme', 'bmce']) {
            assert.deepEqual(await contentOf(target.store, name), await contentOf(source.store, name));
          }
        }
      });

      /** Changes in the target that a copy does not undo: it deletes nothing but segments, and keeps newer records. */
      const changes: Partial<
        Record<Part, (store: Store, organisation: OrganisationNumber) => Promise<void>>
      > = {
        async keys(store, organisation) {
          const [first] = await store.keysOf(organisation);
          await store.revokeKey(first!.keyId, MOMENT_MS + 5);
        },
        shops: (store, organisation) => revise(store, organisation, '9999-12-31T23:59:59.999999Z'),
        tags: (store, organisation) => writeRecords(store, organisation, 'tags', 1),
        interactions: (store, organisation) => writeInteractions(store, organisation, 1),
        ledger: (store, organisation) => writeRejected(store, organisation),
      };
      test('reports which part of which organisation differs, and nothing else', async () => {
        // Each part is changed in an organisation of its own, and nothing in the last one.
        for (const name of [...Object.keys(changes), 'unchanged']) {
          await fill(source.store, await newOrganisation(source.store, name));
        }
        assertAllEqual(await copy());
        const changed = new Map<string, Content>();
        for (const [part, change] of Object.entries(changes)) {
          await change(target.store, await numberOf(target.store, part));
          changed.set(part, await contentOf(target.store, part));
        }
        const differing = (await copy()).filter(({ isEqual }) => !isEqual);
        assert.deepEqual(
          new Map(differing.map(({ organisation, part, toCount }) => [organisation, [part, toCount]])),
          new Map([...changed].map(([part, content]) => [part, [part, content[part]!.length]])),
        );
        assert.equal(differing.length, changed.size);
        for (const [part, content] of changed) {
          assert.deepEqual(await contentOf(target.store, part), content);
        }
      });

      test('reports keys as equal if only their last use differs', async () => {
        const number = await newOrganisation(source.store, 'acme');
        const key = newKey(number, 'used');
        await source.store.addKey({ ...key, lastUsedAtMs: MOMENT_MS });
        await copy();
        await target.store.noteKeysUsed(new Map([[key.keyId, MOMENT_MS + 1]]));
        assertAllEqual(await copy());
        assert.equal((await target.store.findKey(key.keyId))?.lastUsedAtMs, MOMENT_MS + 1);
      });

      test('is refused, and writes nothing, if the name of an organisation is taken', async () => {
        for (const name of ['acme', 'bmce']) {
          await fill(source.store, await newOrganisation(source.store, name));
        }
        const number = await newOrganisation(target.store, 'bmce');
        const copied = await copyEverything(source.store, target.store, () => {});
        assert.deepEqual(
          copied,
          new Failure('the target has another organisation named "bmce"; copy into an empty database'),
        );
        assert.deepEqual(
          (await target.store.organisations()).map(({ organisation, name }) => [organisation, name]),
          [[number, 'bmce']],
        );
        assert.deepEqual(await contentOf(target.store, 'bmce'), nothing);
      });

      test('is refused if the source has no organisations', async () => {
        const copied = await copyEverything(source.store, target.store, () => {});
        assert.deepEqual(copied, new Failure('the source has no organisations, so there is nothing to copy'));
      });
    });
  }
}

const shopColumns = Object.keys(recordTypes.shops.fields);
type Content = Readonly<Record<string, readonly unknown[]>>;
const nothing: Content = { ...Object.fromEntries(parts.map((part) => [part, []])), usage: [] };

async function completeCopy(from: Store, to: Store): Promise<readonly Comparison[]> {
  const copied = await copyEverything(from, to, () => {});
  if (copied instanceof Failure) assert.fail(copied.reason);
  return copied;
}

function assertAllEqual(comparisons: readonly Comparison[]): void {
  assert.ok(comparisons.length > 0);
  assert.deepEqual(
    comparisons.filter(({ isEqual }) => !isEqual),
    [],
  );
}

async function newOrganisation(store: Store, name: string): Promise<OrganisationNumber> {
  return (await store.createOrganisation(name, randomUUID(), MOMENT_MS))!.organisation;
}

async function numberOf(store: Store, name: string): Promise<OrganisationNumber> {
  return (await store.organisations()).find((organisation) => organisation.name === name)!.organisation;
}

function withoutNumber<Numbered extends { readonly organisation: OrganisationNumber }>({
  organisation: _,
  ...rest
}: Numbered): Omit<Numbered, 'organisation'> {
  return rest;
}

/** Counts keys, so that each is created later than the one before. Keys are listed in that order. */
let keys = 0;

function newKey(organisation: OrganisationNumber, name: string | null): NewApiKey {
  return {
    keyId: randomUUID(),
    organisation,
    secretHash: randomUUID(),
    name,
    scopes: ['data:read', 'data:write:shops'],
    createdAtMs: MOMENT_MS + ++keys,
    expiresAtMs: null,
    revokedAtMs: null,
    lastUsedAtMs: null,
    replacedBy: null,
  };
}

async function write(
  store: Store,
  organisation: OrganisationNumber,
  type: (typeof recordTypeNames)[number],
  rows: readonly Row[],
): Promise<void> {
  await store.write({ organisation, type, batches: [rows], idempotencyRecord: null, entry: null });
}

async function writeRecords(
  store: Store,
  organisation: OrganisationNumber,
  type: (typeof recordTypeNames)[number],
  count: number,
): Promise<void> {
  const rows = Array.from({ length: count }, () => recordRow(type));
  await write(store, organisation, type, rows);
}

async function writeInteractions(
  store: Store,
  organisation: OrganisationNumber,
  count: number,
): Promise<void> {
  const rows = Array.from({ length: count }, () => interactionRow());
  await Promise.all(
    rows.map((row) => store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null })),
  );
}

function uploadEntry(number: number): UploadEntry {
  const causes = [{ code: 'required', field: 'name', count: 1, examples: [] }];
  const isPartial = number % 3 === 0;
  return {
    requestId: randomUUID(),
    keyId: `key ${number % 2}`,
    receivedAtMs: MOMENT_MS + number,
    bytes: 100 + number,
    received: isPartial ? 2 : 1,
    rejected: isPartial ? 1 : 0,
    causesJson: isPartial ? JSON.stringify(causes) : null,
  };
}

/** Writes uploads of one tag each, with their entries. */
async function writeEntries(store: Store, organisation: OrganisationNumber, count: number): Promise<void> {
  for (let number = 0; number < count; number++) {
    await store.write({
      organisation,
      type: 'tags',
      batches: [[recordRow('tags')]],
      idempotencyRecord: null,
      entry: uploadEntry(number),
    });
  }
}

/** Writes the entry of an upload of which nothing is stored. */
async function writeRejected(store: Store, organisation: OrganisationNumber): Promise<void> {
  const entry = { ...uploadEntry(0), received: 1, rejected: 1 };
  await store.write({ organisation, type: 'tags', batches: [[]], idempotencyRecord: null, entry });
}

/** Changes a shop whose `updated` is not null. */
async function revise(store: Store, organisation: OrganisationNumber, updated: string | null): Promise<void> {
  const updatedColumn = shopColumns.indexOf('updated');
  const shops = await everyRecord(store, organisation, 'shops');
  const row = shops.find((one) => one[updatedColumn] !== null);
  const revised = row!.with(shopColumns.indexOf('name'), 'revised').with(updatedColumn, updated);
  await write(store, organisation, 'shops', [revised]);
}

const sampled = { numRuns: 20, seed: SEED };
const sampledRecords = recordTypeNames.map(
  (type) => [type, fc.sample(anyRow(recordTypes[type].fields), sampled)] as const,
);
const sampledInteractions = fc.sample(anyRow(storedInteraction), sampled);

/** Stores keys in every state, and rows with values of every kind in every table. */
async function fill(store: Store, organisation: OrganisationNumber): Promise<void> {
  await store.addKey(newKey(organisation, null));
  await store.addKey({ ...newKey(organisation, 'Ünï "quoted"'), expiresAtMs: MOMENT_MS + 1 });
  await store.addKey({ ...newKey(organisation, 'used'), lastUsedAtMs: MOMENT_MS + 2 });
  await store.addKey({ ...newKey(organisation, 'revoked'), scopes: [], revokedAtMs: MOMENT_MS + 3 });
  const rotated = newKey(organisation, 'rotated');
  await store.addKey(rotated);
  await store.replaceKey(rotated.keyId, MOMENT_MS + 4, newKey(organisation, 'rotated'));
  for (const [type, rows] of sampledRecords) await write(store, organisation, type, rows);
  await writeEntries(store, organisation, 5);
  for (const name of ['made again', 'regulars']) {
    await writeSegment(store, organisation, name);
    await evaluateSegment(store, organisation, name);
    await evaluateSegment(store, organisation, name);
  }
  await Promise.all(
    sampledInteractions.map((row) =>
      store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null }),
    ),
  );
}

async function writeSegment(store: Store, organisation: OrganisationNumber, name: string): Promise<void> {
  const { revision } = await store.segments(organisation);
  const definition = { name, note: 'a "note"', conditionJson: '{"all":[]}', uses: ['other'] };
  assert.ok(await store.saveSegment(organisation, revision, definition, MOMENT_MS));
}

/** Adds two members, and removes those that were there before. */
async function evaluateSegment(store: Store, organisation: OrganisationNumber, name: string): Promise<void> {
  const { segments } = await store.segments(organisation);
  const { segment, lastSeq } = segments.find((one) => one.name === name)!;
  const key = { organisation, segment, token: randomUUID() };
  const before = (await store.memberships(organisation, segment, null, 100)).filter(
    ({ leftSeq }) => leftSeq === null,
  );
  const changes = [
    ...before.map(({ customerId }) => ({ customerId, hasEntered: false })),
    ...[randomUUID(), randomUUID()].map((customerId) => ({ customerId, hasEntered: true })),
  ];
  assert.ok(await store.beginEvaluation(key, MOMENT_MS));
  assert.ok(await store.writeMemberChanges(key, lastSeq + 1, changes, MOMENT_MS + 1));
  const evaluation = { atMs: MOMENT_MS + 1, ms: 3, entered: 2, left: before.length };
  assert.ok(await store.finishEvaluation(key, evaluation));
}

/** Returns the segments with their members and the changes of their members. */
async function segmentsOf(store: Store, organisation: OrganisationNumber): Promise<readonly unknown[]> {
  const { segments } = await store.segments(organisation);
  return Promise.all(
    segments.map(async (segment) => ({
      ...segment,
      conditions: [...(await store.segmentConditions(organisation, [segment.name]))],
      memberships: await store.memberships(organisation, segment.segment, null, 100),
      changes: await store.memberChanges(organisation, segment.segment, null, 100),
    })),
  );
}

async function contentOf(store: Store, name: string): Promise<Content> {
  const organisation = await numberOf(store, name);
  const content: Record<string, readonly unknown[]> = {
    keys: (await store.keysOf(organisation)).map(withoutNumber),
    interactions: (await everyInteraction(store, organisation)).map((row) => JSON.stringify(row)).sort(),
    ledger: await ledgerOf(store, organisation),
    segments: await segmentsOf(store, organisation),
    usage: (await store.usage(organisation, '2000-01-01', '2099-12-31'))
      .map((sums) => JSON.stringify(sums))
      .sort(),
  };
  for (const type of recordTypeNames) {
    content[type] = await everyRecord(store, organisation, type);
  }
  return content;
}

/** Returns the entries with their ids. */
async function ledgerOf(store: Store, organisation: OrganisationNumber): Promise<readonly unknown[]> {
  const ledger: unknown[] = [];
  let afterSeq = 0;
  for (;;) {
    const part = await store.ledgerPart(organisation, afterSeq);
    for (const entry of part.entries) ledger.push({ ...entry, ids: Buffer.from(entry.ids).toString('hex') });
    if (part.isLast) return ledger;
    afterSeq = part.lastSeq;
  }
}
