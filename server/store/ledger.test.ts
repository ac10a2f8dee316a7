// Tests the ledger of every store.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import { presenters } from '@headgate/catalogue/presentation.ts';
import {
  INTERACTIONS,
  recordTypes,
  storedInteraction,
  type UploadTypeName,
  uploadTypeNames,
} from '@headgate/catalogue/record-types.ts';
import fc from 'fast-check';
import { CHANGES_PAGE_BYTES } from './changed-ids.ts';
import type { IdempotencyRecord, Written } from './idempotency-records.ts';
import {
  type ChangePosition,
  type ChangesPage,
  type ChangesRead,
  COPIED_ENTRIES,
  type ColumnarRows,
  type EntryFilter,
  type EntryPage,
  EXPIRED_ENTRIES_AT_ONCE,
  type LedgerEntry,
  type LedgerPart,
  SNAPSHOT_IDS,
  type UploadEntry,
  type Usage,
} from './ledger.ts';
import { USAGE_GROUP_ENTRIES } from './ledger-table.ts';
import { openStore } from './open-store.ts';
import { packIds } from './packed-ids.ts';
import type { OrganisationNumber, Row } from './rows.ts';
import type { Store } from './store.ts';
import { catalogueTables, tableOf } from './tables.ts';
import { type TestDatabases, testDatabases } from './test-databases.ts';
import { everyInteraction, everyRecord } from './test-lists.ts';
import { anyRow, interactionRow, recordRow, type Values } from './test-rows.ts';
import { directStores, replicaStore, type TestStore, testStores } from './test-stores.ts';
import { isThorough, times } from './test-thoroughness.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const NOON_MS = Date.parse('2024-05-01T12:00:00Z');
const START: ChangePosition = { seq: 0, ids: null };
const followedTypes = ['tags', 'keywords', 'shops', INTERACTIONS] as const;

interface Change {
  readonly seq: number;
  readonly type: UploadTypeName;
  readonly id: string;
  readonly record: object | null;
}

function sentBy(keyId: string, values: Partial<UploadEntry> = {}): UploadEntry {
  return {
    requestId: randomUUID(),
    keyId,
    receivedAtMs: NOON_MS,
    bytes: 100,
    received: 1,
    rejected: 0,
    causesJson: null,
    ...values,
  };
}

function idOf(type: UploadTypeName, row: Row): string {
  const { key, columns } = tableOf(catalogueTables, type);
  return row[columns.findIndex(({ name }) => name === key)] as string;
}

/** Returns a record with the id. */
function recordWith(type: 'tags' | 'keywords' | 'shops', id: string, values: Values = {}): Row {
  return recordRow(type, { [recordTypes[type].key]: id, ...values });
}

function changeOf(seq: number, type: UploadTypeName, row: Row): Change {
  return { seq, type, id: idOf(type, row), record: presenters[type](row) };
}

function idsOf(changes: readonly Change[]): readonly string[] {
  return changes.map(({ id }) => id);
}

function newIds(count: number): readonly string[] {
  return Array.from({ length: count }, () => randomUUID());
}

function changesIn(read: ChangesRead): readonly Change[] {
  assert.ok(read.kind === 'changes');
  return parsed(read.lines);
}

function parsed(lines: Uint8Array): readonly Change[] {
  const text = new TextDecoder().decode(lines);
  assert.ok(text === '' || text.endsWith('\n'));
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Change);
}

function sortedById(changes: readonly Change[]): readonly Change[] {
  return changes.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** Returns the rows that are given column by column. */
function rowsIn({ columnsJson }: ColumnarRows): readonly Row[] {
  const columns = columnsJson.map((json) => JSON.parse(json) as ColumnValue[]);
  return columns[0]!.map((_, at) => columns.map((column) => column[at]!));
}

const everyEntry: EntryPage = {
  types: followedTypes,
  own: null,
  status: null,
  keyId: null,
  fromMs: null,
  toMs: null,
  before: null,
  limit: 1000,
};

type Filled = Omit<LedgerEntry, 'seq'> & { readonly ids: Uint8Array };

/** The ledger of one organisation. Reads whole lists, and adds entries. */
class Ledger {
  readonly store: Store;
  readonly organisation: OrganisationNumber;

  constructor(store: Store, organisation: OrganisationNumber) {
    this.store = store;
    this.organisation = organisation;
  }

  async upload(
    type: UploadTypeName,
    rows: readonly Row[],
    values: Partial<UploadEntry> & { idempotencyRecord?: IdempotencyRecord } = {},
  ): Promise<Written> {
    const { idempotencyRecord = null, ...given } = values;
    const entry = sentBy('the key', { received: rows.length + (given.rejected ?? 0), ...given });
    const { organisation } = this;
    return this.store.write({ organisation, type, batches: [rows], idempotencyRecord, entry });
  }

  async interact(row: Row, values: Partial<UploadEntry> = {}): Promise<Written> {
    const { requestId, keyId, receivedAtMs, bytes } = sentBy('the key', values);
    const entry = { requestId, keyId, receivedAtMs, bytes };
    return this.store.writeInteraction({
      organisation: this.organisation,
      row,
      idempotencyRecord: null,
      entry,
    });
  }

  changes(after: ChangePosition, page: Partial<ChangesPage> = {}): Promise<ChangesRead> {
    return this.store.changes(this.organisation, { after, types: followedTypes, limit: 1000, ...page });
  }

  /** Returns the parts of a snapshot. */
  async snapshot(type: UploadTypeName): Promise<readonly (readonly Change[])[]> {
    const parts: (readonly Change[])[] = [];
    for (let after: string | null = null; ; ) {
      const { rows, next } = await this.store.snapshot(this.organisation, type, after);
      parts.push(rows.flatMap(rowsIn).map((row) => changeOf(0, type, row)));
      if (next === null) return parts;
      after = next;
    }
  }

  /** Returns the pages of all changes after a position. */
  async pages(
    after: ChangePosition,
    page: Partial<ChangesPage> = {},
  ): Promise<readonly (readonly Change[])[]> {
    const pages: (readonly Change[])[] = [];
    for (let position = after; ; ) {
      const read = await this.changes(position, page);
      assert.ok(read.kind === 'changes');
      if (read.next.seq === read.latest && read.next.ids === null && read.lines.length === 0) return pages;
      assert.notDeepEqual(read.next, position);
      pages.push(changesIn(read));
      position = read.next;
    }
  }

  async entries(page: Partial<EntryPage> = {}): Promise<readonly LedgerEntry[]> {
    const all: LedgerEntry[] = [];
    for (let before: number | null = null; ; ) {
      const { entries, next } = await this.store.entries(this.organisation, {
        ...everyEntry,
        ...page,
        before,
      });
      all.push(...entries);
      if (next === null) return all;
      before = next;
    }
  }

  /** Adds entries as a copy from another store does, which is faster than so many uploads. */
  async fill(entries: readonly Filled[]): Promise<void> {
    const { entries: _, usage: __, ...bounds } = await this.store.ledgerPart(this.organisation, 0);
    let lastSeq = await this.store.latestEntry(this.organisation);
    for (let first = 0; first < entries.length; first += COPIED_ENTRIES) {
      const part = entries
        .slice(first, first + COPIED_ENTRIES)
        .map((entry) => ({ ...entry, seq: ++lastSeq }));
      const isLast = first + COPIED_ENTRIES >= entries.length;
      await this.store.addLedgerPart(this.organisation, {
        ...bounds,
        lastSeq,
        entries: part,
        usage: [],
        isLast,
      });
    }
  }
}

async function newLedger(store: Store): Promise<Ledger> {
  const made = await store.createOrganisation(`org ${randomUUID()}`, randomUUID(), NOON_MS);
  return new Ledger(store, made!.organisation);
}

function seqOf(written: Written): number | null {
  assert.ok(written.kind === 'written');
  return written.seq;
}

/** Returns the usage in an order that does not depend on the store. */
function sorted(usage: readonly Usage[]): readonly Usage[] {
  return usage.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
}

function orderOf({ day, type, keyId }: Usage): string {
  return `${day} ${type} ${keyId}`;
}

/** Returns the usage that the entries add up to. */
function usageOf(entries: readonly LedgerEntry[]): readonly Usage[] {
  const dayOf = ({ receivedAtMs }: LedgerEntry): string => new Date(receivedAtMs).toISOString().slice(0, 10);
  const groups = Map.groupBy(entries, (entry) => `${dayOf(entry)} ${entry.type} ${entry.keyId}`);
  const usage = [...groups.values()].map((group): Usage => {
    const sum = (of: (entry: LedgerEntry) => number): number =>
      group.reduce((total, entry) => total + of(entry), 0);
    const [first] = group as [LedgerEntry];
    return {
      day: dayOf(first),
      type: first.type,
      keyId: first.keyId,
      uploads: group.length,
      received: sum(({ received }) => received),
      created: sum(({ created }) => created),
      updated: sum(({ updated }) => updated),
      unchanged: sum(({ unchanged }) => unchanged),
      rejected: sum(({ rejected }) => rejected),
      bytes: sum(({ bytes }) => bytes),
    };
  });
  return sorted(usage);
}

/** Returns entries that differ in every value, one every `stepMs`. */
function manyEntries(count: number, firstMs: number, stepMs: number, idsEach = 0): readonly Filled[] {
  return Array.from({ length: count }, (_, n): Filled => {
    const [created, updated, unchanged] = [n % 3, n % 2, n % 7 === 0 ? 0 : 4];
    const stored = created + updated + unchanged;
    const rejected = stored === 0 ? 2 : n % 5 === 0 ? 1 : 0;
    return {
      ...sentBy(`key ${n % 4}`, { bytes: n, rejected, received: stored + rejected }),
      receivedAtMs: firstMs + n * stepMs,
      type: followedTypes[n % 3]!,
      ms: n % 9,
      created,
      updated,
      unchanged,
      ids: packIds(newIds(idsEach)),
    };
  });
}

/** A pooler makes no difference to the ledger that the contract suite would not find, so only thorough runs have one. */
const ledgerStores = [...(isThorough ? testStores : directStores), replicaStore];

for (const { name, open } of ledgerStores) {
  describe(`the ledger of a ${name} store`, () => {
    let opened: TestStore;
    let store: Store;
    let ledger: Ledger;
    before(async () => {
      opened = await open();
      store = opened.store;
    });
    after(() => opened.dispose());

    const begin = async (): Promise<Ledger> => {
      ledger = await newLedger(store);
      return ledger;
    };

    describe('an entry', () => {
      test('is added by every upload, with all values', async () => {
        await begin();
        const rows = [recordRow('tags'), recordRow('tags')];
        await ledger.upload('tags', rows);
        const sent = sentBy('another key', {
          receivedAtMs: Date.now() - 1234,
          bytes: 5_000_000_000,
          received: 6,
          rejected: 3,
          causesJson: '[{"code":"required","message":"ünï \\u0000 😀"}]',
        });
        const mixed = [
          rows[0]!,
          recordWith('tags', rows[1]![0] as string, { name: 'new' }),
          recordRow('tags'),
        ];
        assert.equal(seqOf(await ledger.upload('tags', mixed, sent)), 2);
        const entry = await store.entry(ledger.organisation, sent.requestId);
        assert.ok(entry !== null && entry.ms >= 1234 && entry.ms < 60_000);
        const counts = { created: 1, updated: 1, unchanged: 1 };
        const wanted = { ...sent, ...counts, seq: 2, type: 'tags', ms: entry.ms };
        assert.deepEqual(entry, wanted);
        assert.deepEqual((await ledger.entries())[0], { ...wanted, causesJson: null });
        assert.deepEqual(idsOf(changesIn(await ledger.changes({ seq: 1, ids: null }))), [
          mixed[1]![0],
          mixed[2]![0],
        ]);
      });

      test('has a time of at least zero if the clock was set back', async () => {
        await begin();
        const { requestId } = sentBy('k');
        await ledger.upload('tags', [recordRow('tags')], { requestId, receivedAtMs: Date.now() + DAY_MS });
        assert.equal((await store.entry(ledger.organisation, requestId))?.ms, 0);
      });

      test('has the next number of its organisation', async () => {
        const [one, other] = [await newLedger(store), await newLedger(store)];
        assert.equal(await store.latestEntry(one.organisation), 0);
        for (const seq of [1, 2, 3]) {
          assert.equal(seqOf(await one.upload('tags', [recordRow('tags')])), seq);
          assert.equal(seqOf(await other.upload('shops', [recordRow('shops')])), seq);
          assert.equal(await store.latestEntry(one.organisation), seq);
        }
        assert.deepEqual(
          (await one.entries()).map(({ seq, type }) => [seq, type]),
          [
            [3, 'tags'],
            [2, 'tags'],
            [1, 'tags'],
          ],
        );
        const requestId = randomUUID();
        await other.upload('tags', [recordRow('tags')], { requestId });
        assert.equal(await store.entry(one.organisation, requestId), null);
        assert.equal(await store.entryNumber(one.organisation, requestId), null);
        assert.equal(await store.entryNumber(other.organisation, requestId), 4);
      });

      test('has a number of its own if many uploads are written at once', async () => {
        await begin();
        const seqs = await Promise.all(
          Array.from({ length: 40 }, async () => seqOf(await ledger.upload('tags', [recordRow('tags')]))),
        );
        assert.deepEqual(
          seqs.toSorted((a, b) => a! - b!),
          Array.from({ length: 40 }, (_, n) => n + 1),
        );
      });

      test('is added, without ids, by an upload whose records are all rejected', async () => {
        await begin();
        const sent = { requestId: randomUUID(), rejected: 7, causesJson: '[]' };
        assert.equal(seqOf(await ledger.upload('tags', [], sent)), 1);
        const { created, updated, unchanged, received, rejected, causesJson } = (await store.entry(
          ledger.organisation,
          sent.requestId,
        ))!;
        assert.deepEqual(
          [created, updated, unchanged, received, rejected, causesJson],
          [0, 0, 0, 7, 7, '[]'],
        );
        const read = await ledger.changes(START);
        assert.deepEqual(changesIn(read), []);
        assert.ok(read.kind === 'changes');
        assert.deepEqual([read.next, read.latest], [{ seq: 1, ids: null }, 1]);
      });

      test('has no ids if nothing has changed', async () => {
        await begin();
        const rows = Array.from({ length: 150 }, () => recordRow('tags'));
        await ledger.upload('tags', rows);
        for (const seq of [2, 3]) assert.equal(seqOf(await ledger.upload('tags', rows)), seq);
        const [last] = await ledger.entries();
        assert.deepEqual([last!.created, last!.updated, last!.unchanged], [0, 0, 150]);
        assert.deepEqual(changesIn(await ledger.changes({ seq: 1, ids: null })), []);
      });

      test('is not added by a repeated request, which finds the first entry', async () => {
        await begin();
        const { organisation } = ledger;
        const idempotencyRecord = {
          organisation,
          path: '/v1/data/tags',
          key: 'once',
          fingerprint: 'print',
          response: new Uint8Array([1]),
          storedAtMs: Date.now(),
          expiresAtMs: Date.now() + DAY_MS,
        };
        const [first, second] = [randomUUID(), randomUUID()];
        const rows = [recordRow('tags')];
        assert.equal(seqOf(await ledger.upload('tags', rows, { requestId: first, idempotencyRecord })), 1);
        const again = await ledger.upload('tags', rows, { requestId: second, idempotencyRecord });
        assert.equal(again.kind, 'replay');
        assert.equal(await store.entryNumber(organisation, first), 1);
        assert.equal(await store.entryNumber(organisation, second), null);
        assert.equal(await store.latestEntry(organisation), 1);
        const interaction = { organisation, row: interactionRow(), entry: sentBy('the key') };
        for (const kind of ['written', 'replay']) {
          const taken = await store.writeInteraction({
            ...interaction,
            idempotencyRecord: { ...idempotencyRecord, path: '/user-interactions' },
          });
          assert.equal(taken.kind, kind);
        }
        assert.equal(await store.latestEntry(organisation), 2);
      });

      test('is not added by rows that are copied from another store', async () => {
        await begin();
        const { organisation } = ledger;
        await store.write({
          organisation,
          type: 'tags',
          batches: [[recordRow('tags')]],
          idempotencyRecord: null,
          entry: null,
        });
        await store.writeInteraction({
          organisation,
          row: interactionRow(),
          idempotencyRecord: null,
          entry: null,
        });
        assert.equal(await store.latestEntry(organisation), 0);
      });

      test('contains no single interaction that is stored already', async () => {
        await begin();
        const [stored, twice, other] = [interactionRow(), interactionRow(), interactionRow()];
        await ledger.interact(stored);
        const written = await Promise.all([stored, twice, twice, other].map((row) => ledger.interact(row)));
        const created = written.map((one) => (one.kind === 'written' ? one.tallies[0]!.created : null));
        assert.deepEqual(created.toSorted(), [0, 0, 1, 1]);
        const entries = await ledger.entries();
        assert.equal(
          entries.reduce((sum, entry) => sum + entry.created, 0),
          3,
        );
        assert.equal(await store.latestEntry(ledger.organisation), entries.length);
      });

      test('contains all single interactions of a key that are committed together', async () => {
        await begin();
        const rows = Array.from({ length: 60 }, () => interactionRow());
        await Promise.all(
          rows.map((row, n) => ledger.interact(row, { keyId: `key ${n % 2}`, bytes: 10 + (n % 2) })),
        );
        const entries = await ledger.entries();
        // The first interaction may be committed before the others have arrived.
        assert.ok(entries.length >= 2 && entries.length <= 4, `${entries.length} entries`);
        for (const [keyId, bytes] of [
          ['key 0', 10],
          ['key 1', 11],
        ] as const) {
          const ofKey = entries.filter((entry) => entry.keyId === keyId);
          const sum = (of: (entry: LedgerEntry) => number): number =>
            ofKey.reduce((total, one) => total + of(one), 0);
          assert.equal(
            sum(({ received }) => received),
            30,
          );
          assert.equal(
            sum((entry) => entry.created),
            30,
          );
          assert.equal(
            sum((entry) => entry.bytes),
            30 * bytes,
          );
          assert.ok(ofKey.every(({ type, rejected }) => type === INTERACTIONS && rejected === 0));
        }
        const changes = changesIn(await ledger.changes(START));
        assert.deepEqual(new Set(idsOf(changes)), new Set(rows.map((row) => idOf(INTERACTIONS, row))));
        assert.equal(changes.length, rows.length);
        await ledger.interact(rows[0]!);
        assert.equal(
          await store.latestEntry(ledger.organisation),
          entries.length,
          'a stored one adds no entry',
        );
      });

      test('contains single interactions of its own organisation only', async () => {
        const ledgers = [await newLedger(store), await newLedger(store), await newLedger(store)];
        const rows = Array.from({ length: 30 }, () => interactionRow());
        await Promise.all(
          rows.map((row, n) =>
            ledgers[n % 3]!.interact(row, { keyId: `key ${ledgers[n % 3]!.organisation}` }),
          ),
        );
        for (const [at, one] of ledgers.entries()) {
          const wanted = rows.filter((_, n) => n % 3 === at).map((row) => idOf(INTERACTIONS, row));
          assert.deepEqual(idsOf(changesIn(await one.changes(START))).toSorted(), wanted.toSorted());
        }
      });
    });

    describe('the changes', () => {
      test('are the current records, each once at its last change, in the order of the changes', async () => {
        await begin();
        const [a, b, c] = newIds(3) as [string, string, string];
        await ledger.upload('tags', [recordWith('tags', a), recordWith('tags', b)]);
        await ledger.upload('tags', [recordWith('tags', c)]);
        const changed = recordWith('tags', a, { name: 'changed', is_deleted: true });
        await ledger.upload('tags', [changed]);
        const read = await ledger.changes(START);
        assert.deepEqual(changesIn(read), [
          changeOf(1, 'tags', recordWith('tags', b)),
          changeOf(2, 'tags', recordWith('tags', c)),
          changeOf(3, 'tags', changed),
        ]);
        assert.ok(read.kind === 'changes');
        assert.deepEqual([read.next, read.latest], [{ seq: 3, ids: null }, 3]);
        assert.deepEqual(changesIn(await ledger.changes({ seq: 1, ids: null })), changesIn(read).slice(1));
      });

      test('contain records of several types with the same id, or of the given types only', async () => {
        await begin();
        const id = randomUUID();
        const rows = { tags: recordWith('tags', id), keywords: recordWith('keywords', id) };
        const interaction = interactionRow({ interaction_id: id });
        await ledger.upload('tags', [rows.tags]);
        await ledger.upload('keywords', [rows.keywords]);
        await ledger.interact(interaction);
        const all = [
          changeOf(1, 'tags', rows.tags),
          changeOf(2, 'keywords', rows.keywords),
          changeOf(3, INTERACTIONS, interaction),
        ];
        assert.deepEqual(changesIn(await ledger.changes(START)), all);
        for (const change of all) {
          const read = await ledger.changes(START, { types: [change.type] });
          assert.deepEqual(changesIn(read), [change]);
          assert.ok(read.kind === 'changes');
          assert.deepEqual([read.next, read.latest], [{ seq: 3, ids: null }, 3]);
        }
        const none = await ledger.changes(START, { types: ['shops'] });
        assert.ok(none.kind === 'changes');
        assert.deepEqual([none.lines.length, none.next, none.latest], [0, { seq: 3, ids: null }, 3]);
      });

      test('are cut by the limit, also inside an entry, and go on from there', async () => {
        await begin();
        const rows = [120, 1, 35].map((count) => Array.from({ length: count }, () => recordRow('tags')));
        for (const some of rows) await ledger.upload('tags', some);
        const wanted = rows.flatMap((some, at) => some.map((row) => changeOf(at + 1, 'tags', row)));
        for (const limit of [7, 120, 121, 156]) {
          const pages = await ledger.pages(START, { limit });
          assert.ok(pages.slice(0, -1).every(({ length }) => length === limit));
          assert.deepEqual(pages.flat(), wanted, `limit ${limit}`);
        }
        for (const [ids, left] of [
          [0, 156],
          [1, 155],
          [119, 37],
          [120, 36],
          [4000, 36],
        ] as const) {
          assert.deepEqual(
            changesIn(await ledger.changes({ seq: 1, ids })),
            wanted.slice(-left),
            `${ids} ids`,
          );
        }
        const cut = await ledger.changes({ seq: 1, ids: 100 }, { limit: 10 });
        assert.ok(cut.kind === 'changes');
        assert.deepEqual(cut.next, { seq: 1, ids: 110 });
      });

      test('are cut by their size', async () => {
        await begin();
        const long = (n: number) => recordRow('shops', { name: `${n}`.repeat(400_000) });
        const rows = Array.from({ length: 27 }, (_, n) => long(n % 10));
        const huge = recordRow('shops', { name: 'h'.repeat(2 * CHANGES_PAGE_BYTES) });
        await ledger.upload('shops', rows.slice(0, 12));
        await ledger.upload('tags', [recordRow('tags')]);
        await ledger.upload('shops', [...rows.slice(12), huge]);
        // Moves to the end of the first page's entries, but does not fit into that page.
        const moved = recordWith('shops', idOf('shops', rows[0]!), { name: 'm'.repeat(400_000) });
        await ledger.upload('shops', [moved]);
        const types = ['shops'] as const;
        const pages = await ledger.pages(START, { types });
        assert.ok(pages.length >= 4);
        for (const page of pages)
          assert.ok(page.length === 1 || JSON.stringify(page).length < CHANGES_PAGE_BYTES);
        assert.deepEqual(idsOf(pages.flat()), [
          ...rows.slice(1).map((row) => idOf('shops', row)),
          idOf('shops', huge),
          idOf('shops', moved),
        ]);
        assert.deepEqual(pages.flat().at(-1), changeOf(4, 'shops', moved));
        assert.deepEqual(pages.flat()[0], changeOf(1, 'shops', rows[1]!));
      });

      test('have every value of every type as responses have it', async () => {
        await begin();
        for (const type of uploadTypeNames) {
          const fields = type === INTERACTIONS ? storedInteraction : recordTypes[type].fields;
          const rows = fc.sample(anyRow(fields), times(100, 30));
          const after = { seq: await store.latestEntry(ledger.organisation), ids: null };
          const { seq } = (await ledger.upload(type, rows)) as { seq: number };
          assert.deepEqual(
            changesIn(await ledger.changes(after, { types: [type] })),
            rows.map((row) => changeOf(seq, type, row)),
          );
        }
      });

      test('of thousands of entries and ids are read page by page', async () => {
        await begin();
        const rows = Array.from({ length: 12_000 }, () => recordRow('tags'));
        for (let first = 0; first < rows.length; first += 4000) {
          await ledger.upload('tags', rows.slice(first, first + 4000));
        }
        const others = manyEntries(2500, NOON_MS, 1, 1).map((entry) => ({
          ...entry,
          type: 'keywords' as const,
        }));
        await ledger.fill(others);
        await ledger.upload(
          'tags',
          rows.slice(0, 1).map((row) => recordWith('tags', idOf('tags', row), { name: 'x' })),
        );
        const pages = await ledger.pages(START, { types: ['tags'], limit: 10_000 });
        assert.deepEqual(
          pages.map(({ length }) => length),
          [10_000, 2001],
        );
        assert.deepEqual(
          idsOf(pages[0]!),
          rows.slice(0, 10_000).map((row) => idOf('tags', row)),
        );
        assert.deepEqual(pages[1]!.at(-1)?.seq, 2504);
      });

      test('of the same ids again and again are not all read for one page', async () => {
        await begin();
        const [entry] = manyEntries(1, NOON_MS, 1, 5000) as [Filled];
        await ledger.fill(Array.from({ length: 15 }, () => ({ ...entry, requestId: randomUUID() })));
        const pages = await ledger.pages(START, { limit: 10_000 });
        assert.deepEqual(
          pages.map((page) => [page.length, page[0]!.seq]),
          [
            [5000, 10],
            [5000, 15],
          ],
        );
      });

      test('have no record if the id does not exist', async () => {
        await begin();
        const [entry] = manyEntries(1, NOON_MS, 1, 1) as [Filled];
        await ledger.fill([{ ...entry, type: 'tags' }]);
        const [change] = changesIn(await ledger.changes(START));
        assert.deepEqual([change!.seq, change!.type, change!.record], [1, 'tags', null]);
      });

      test('of an organisation without entries, and after the last entry, are none', async () => {
        await begin();
        for (const seq of [0, 1]) {
          const read = await ledger.changes({ seq, ids: null });
          assert.ok(read.kind === 'changes');
          assert.deepEqual([read.lines.length, read.next, read.latest], [0, { seq, ids: null }, seq]);
          await ledger.upload('tags', [recordRow('tags')]);
        }
      });

      test('beyond the last entry are gone', async () => {
        await begin();
        await ledger.upload('tags', [recordRow('tags')]);
        for (const after of [
          { seq: 2, ids: null },
          { seq: 2, ids: 0 },
        ]) {
          assert.deepEqual(await ledger.changes(after), { kind: 'gone', latest: 1 });
        }
      });

      /** Asserts that the page has the same records column by column. */
      const assertSameRows = async (
        { organisation }: Ledger,
        after: ChangePosition,
        limit: number,
        { latest, next }: ChangesRead & { kind: 'changes' },
        changes: readonly Change[],
      ): Promise<void> => {
        const read = await store.changedRows(organisation, { after, types: followedTypes, limit });
        assert.ok(read.kind === 'rows');
        assert.deepEqual([read.next, read.latest], [next, latest]);
        const found = new Map<string, object>();
        for (const rows of read.rows) {
          const shown = new Map(
            rowsIn(rows).map((row) => [idOf(rows.type, row), presenters[rows.type](row)]),
          );
          const ids = JSON.parse(rows.idsJson) as string[];
          assert.deepEqual(new Set(shown.keys()), new Set(ids));
          for (const [id, record] of shown) found.set(`${rows.type} ${id}`, record);
        }
        assert.deepEqual(found, new Map(changes.map(({ type, id, record }) => [`${type} ${id}`, record])));
      };

      test('beyond the last entry, and of ids that do not exist, have no rows', async () => {
        await begin();
        const page = { types: followedTypes, limit: 10 };
        const read = (seq: number) =>
          store.changedRows(ledger.organisation, { ...page, after: { seq, ids: null } });
        assert.deepEqual(await read(1), { kind: 'gone', latest: 0 });
        const [entry] = manyEntries(1, NOON_MS, 1, 1) as [Filled];
        await ledger.fill([{ ...entry, type: 'tags' }]);
        const found = await read(0);
        assert.ok(found.kind === 'rows');
        const [rows, ...others] = found.rows;
        assert.deepEqual(others, []);
        assert.equal((JSON.parse(rows!.idsJson) as string[]).length, 1);
        assert.deepEqual(rowsIn(rows!), []);
      });

      test('have the records of the organisation, even if another one stores the same ids in between', async () => {
        await begin();
        const other = await newLedger(store);
        const [first, second] = newIds(2) as [string, string];
        const tag = (id: string, value: string): Row => recordWith('tags', id, { name: value });
        await ledger.upload('tags', [tag(first, 'old')]);
        await other.upload('tags', [tag(second, 'of another organisation')]);
        await ledger.upload('tags', [tag(second, 'old')]);
        const rows = [tag(first, 'new'), tag(second, 'new')];
        await ledger.upload('tags', rows);
        const read = await ledger.changes(START);
        const changes = changesIn(read);
        assert.deepEqual(
          changes,
          rows.map((row) => changeOf(3, 'tags', row)),
        );
        await assertSameRows(ledger, START, 1000, read as ChangesRead & { kind: 'changes' }, changes);
      });

      test('let a follower have the same records as the store, whatever is uploaded', async () => {
        const ids = newIds(6);
        const anyUpload = fc.record({
          type: fc.constantFrom('tags' as const, 'keywords' as const),
          ids: fc.uniqueArray(fc.constantFrom(...ids), { maxLength: 6 }),
          name: fc.constantFrom('a', 'b', 'c'),
          updated: fc.constantFrom(null, '2024-05-01T09:30:00.000000Z', '2024-05-01T09:30:00.000001Z'),
        });
        const anyInteractions = fc.record({ interactions: fc.integer({ min: 1, max: 3 }) });
        const anyPage = fc.record({ limit: fc.integer({ min: 1, max: 9 }) });
        const steps = fc.array(fc.oneof(anyUpload, anyUpload, anyInteractions, anyPage, anyPage), {
          maxLength: 25,
        });
        await fc.assert(
          fc.asyncProperty(steps, async (taken) => {
            const followed = await newLedger(store);
            const seen = new Map<string, object | null>();
            let position = START;
            let lastSeq = 0;
            const readPage = async (limit: number): Promise<boolean> => {
              const read = await followed.changes(position, { limit });
              assert.ok(read.kind === 'changes');
              const changes = changesIn(read);
              assert.ok(changes.length <= limit);
              assert.equal(new Set(changes.map(({ type, id }) => `${type} ${id}`)).size, changes.length);
              await assertSameRows(followed, position, limit, read, changes);
              for (const { seq, type, id, record } of changes) {
                assert.ok(seq >= lastSeq);
                lastSeq = seq;
                seen.set(`${type} ${id}`, record);
              }
              position = read.next;
              return position.seq < read.latest || position.ids !== null;
            };
            for (const step of taken) {
              if ('limit' in step) await readPage(step.limit);
              else if ('interactions' in step) {
                await Promise.all(
                  Array.from({ length: step.interactions }, () => followed.interact(interactionRow())),
                );
              } else {
                const { type, name: value, updated } = step;
                await followed.upload(
                  type,
                  step.ids.map((id) => recordWith(type, id, { name: value, updated })),
                );
              }
            }
            while (await readPage(3));
            const stored = new Map<string, object>();
            for (const type of ['tags', 'keywords'] as const) {
              for (const row of await everyRecord(store, followed.organisation, type)) {
                stored.set(`${type} ${idOf(type, row)}`, presenters[type](row));
              }
            }
            for (const row of await everyInteraction(store, followed.organisation)) {
              stored.set(`${INTERACTIONS} ${idOf(INTERACTIONS, row)}`, presenters[INTERACTIONS](row));
            }
            assert.deepEqual(seen, stored);
          }),
          { numRuns: times(30, 10) },
        );
      });
    });

    describe('a snapshot', () => {
      test('has every record of the type once, part by part, and none of another organisation', async () => {
        await begin();
        const other = await newLedger(store);
        await other.upload('tags', [recordRow('tags')]);
        const rows = newIds(SNAPSHOT_IDS + 10).map((id) => recordWith('tags', id));
        await ledger.upload('tags', rows);
        await ledger.upload('shops', [
          recordRow('shops', { name: 'n'.repeat(CHANGES_PAGE_BYTES) }),
          recordRow('shops'),
        ]);
        const all = sortedById(rows.map((row) => changeOf(0, 'tags', row)));
        const parts = await ledger.snapshot('tags');
        assert.deepEqual(parts.map(sortedById), [all.slice(0, SNAPSHOT_IDS), all.slice(SNAPSHOT_IDS)]);
        assert.equal((await ledger.snapshot('shops')).flat().length, 2);
        assert.deepEqual(await ledger.snapshot('keywords'), [[]]);
        assert.deepEqual(await ledger.snapshot(INTERACTIONS), [[]]);
      });
    });

    describe('the list of entries', () => {
      const filled = manyEntries(2500, NOON_MS, 1000);
      let list: Ledger;
      before(async () => {
        list = await newLedger(store);
        await list.fill(filled);
      });
      const wantedOf = (is: (entry: Filled) => boolean): readonly LedgerEntry[] =>
        filled
          .map(({ ids: _, ...entry }, at) => ({ ...entry, seq: at + 1, isWanted: is(filled[at]!) }))
          .filter(({ isWanted }) => isWanted)
          .map(({ isWanted: _, ...entry }) => entry)
          .reverse();

      test('is newest first', async () => {
        assert.deepEqual(
          await list.entries(),
          wantedOf(() => true),
        );
        assert.deepEqual(
          await list.entries({ limit: 77 }),
          wantedOf(() => true),
        );
      });

      const untilMs = NOON_MS + 1_900_000;
      const filters: readonly [Partial<EntryFilter>, (entry: Filled) => boolean][] = [
        [{ types: ['keywords'] }, ({ type }) => type === 'keywords'],
        [{ types: ['tags', 'shops'] }, ({ type }) => type !== 'keywords'],
        [{ types: ['customers'] }, () => false],
        [{ status: 'success' }, ({ rejected }) => rejected === 0],
        [{ status: 'error' }, ({ rejected, received }) => rejected > 0 && rejected === received],
        [{ status: 'partial' }, ({ rejected, received }) => rejected > 0 && rejected < received],
        [{ keyId: 'key 2' }, ({ keyId }) => keyId === 'key 2'],
        [
          { types: ['shops'], own: { keyId: 'key 1', types: ['tags'] } },
          ({ type, keyId }) => type === 'shops' || (type === 'tags' && keyId === 'key 1'),
        ],
        [
          { types: [], own: { keyId: 'key 1', types: ['tags'] } },
          ({ type, keyId }) => type === 'tags' && keyId === 'key 1',
        ],
        [{ fromMs: untilMs }, ({ receivedAtMs }) => receivedAtMs >= untilMs],
        [{ toMs: untilMs }, ({ receivedAtMs }) => receivedAtMs < untilMs],
        [
          { types: ['shops'], status: 'partial', keyId: 'key 1', fromMs: NOON_MS + 500_000, toMs: untilMs },
          ({ type, keyId, rejected, received, receivedAtMs }) =>
            type === 'shops' &&
            keyId === 'key 1' &&
            rejected > 0 &&
            rejected < received &&
            receivedAtMs >= NOON_MS + 500_000 &&
            receivedAtMs < untilMs,
        ],
      ];
      for (const [filter, is] of filters) {
        test(`has the entries with ${JSON.stringify(filter)}, page after page`, async () => {
          for (const limit of [70, 1000])
            assert.deepEqual(await list.entries({ ...filter, limit }), wantedOf(is));
        });
      }

      test('has pages of the limit, and says where the next one begins', async () => {
        const { entries, next } = await store.entries(list.organisation, { ...everyEntry, limit: 3 });
        assert.deepEqual(
          entries.map(({ seq }) => seq),
          [2500, 2499, 2498],
        );
        const following = await store.entries(list.organisation, { ...everyEntry, before: next, limit: 1 });
        assert.equal(following.entries[0]?.seq, 2497);
        const last = await store.entries(list.organisation, { ...everyEntry, before: 2, limit: 1 });
        assert.deepEqual([last.entries.length, last.next], [1, null]);
      });

      test('is empty for an organisation without entries', async () => {
        assert.deepEqual(await (await begin()).entries(), []);
      });
    });

    describe('the usage', () => {
      const ALL_DAYS = ['2000-01-01', '2100-01-01'] as const;

      test('is the sum of the entries of each day, type and key, across groups', async () => {
        await begin();
        assert.deepEqual(await store.usage(ledger.organisation, ...ALL_DAYS), []);
        const assertUsage = async (): Promise<void> => {
          const wanted = usageOf(await ledger.entries());
          assert.ok(wanted.length > 0);
          assert.deepEqual(sorted(await store.usage(ledger.organisation, ...ALL_DAYS)), wanted);
        };
        const fillUntil = async (seq: number): Promise<void> => {
          const count = seq - (await store.latestEntry(ledger.organisation));
          await ledger.fill(manyEntries(count, NOON_MS, 300_000));
        };
        await fillUntil(USAGE_GROUP_ENTRIES - 2);
        for (let n = 0; n < 3; n++) {
          await assertUsage();
          await ledger.upload('tags', [recordRow('tags')]);
        }
        await assertUsage();
        // A transaction with an entry for each of six keys completes the second group.
        await fillUntil(2 * USAGE_GROUP_ENTRIES - 3);
        await Promise.all(newIds(6).map((keyId) => ledger.interact(interactionRow(), { keyId })));
        await assertUsage();
        assert.equal(await store.latestEntry(ledger.organisation), 2 * USAGE_GROUP_ENTRIES + 3);
      });

      test('is of the given days only, both included', async () => {
        await begin();
        await ledger.fill(manyEntries(USAGE_GROUP_ENTRIES - 1, NOON_MS, 600_000));
        const read = async (first: string, last: string): Promise<readonly Usage[]> =>
          sorted(await store.usage(ledger.organisation, first, last));
        const assertDays = async (): Promise<void> => {
          const wanted = usageOf(await ledger.entries());
          for (const [first, last] of [
            ['2024-05-01', '2024-05-01'],
            ['2024-05-02', '2024-05-04'],
            ['2024-05-08', '2024-06-30'],
            ['2024-04-01', '2024-04-30'],
            ['2024-05-04', '2024-05-02'],
          ] as const) {
            assert.deepEqual(
              await read(first, last),
              wanted.filter(({ day }) => day >= first && day <= last),
              `${first} to ${last}`,
            );
          }
        };
        await assertDays();
        const midnightMs = Date.parse('2024-05-02T00:00:00Z');
        for (const receivedAtMs of [midnightMs - 1, midnightMs]) {
          await ledger.upload('tags', [recordRow('tags')], { receivedAtMs, keyId: `at ${receivedAtMs}` });
        }
        await assertDays();
        const daysOf = (keyId: string, usage: readonly Usage[]): readonly string[] =>
          usage.filter((one) => one.keyId === keyId).map(({ day }) => day);
        const all = await read(...ALL_DAYS);
        assert.deepEqual(daysOf(`at ${midnightMs - 1}`, all), ['2024-05-01']);
        assert.deepEqual(daysOf(`at ${midnightMs}`, all), ['2024-05-02']);
      });

      test('of another organisation is not included', async () => {
        const [one, other] = [await newLedger(store), await newLedger(store)];
        await one.upload('tags', [recordRow('tags')]);
        assert.deepEqual(await store.usage(other.organisation, ...ALL_DAYS), []);
      });
    });
  });

  describe(`the retention of a ${name} store`, () => {
    let opened: TestStore;
    let store: Store;
    before(async () => {
      opened = await open();
      store = opened.store;
    });
    after(() => opened.dispose());

    const boundsOf = async ({ organisation }: Ledger): Promise<readonly number[]> => {
      const { lastSeq, idsAfterSeq, entriesAfterSeq } = await store.ledgerPart(organisation, 1_000_000);
      return [idsAfterSeq, entriesAfterSeq, lastSeq];
    };

    test('deletes ids and then entries that are too old, and keeps usage', async () => {
      const [ledger, other] = [await newLedger(store), await newLedger(store)];
      await other.fill(manyEntries(20, NOON_MS + 100_000, 1, 1));
      const count = 3 * EXPIRED_ENTRIES_AT_ONCE + 50;
      // One entry a second, with three ids.
      const filled = manyEntries(count, NOON_MS, 1000, 3);
      await ledger.fill(filled);
      assert.deepEqual(await store.ledgerSize(), { entries: count + 20, ids: 3 * count + 20 });
      const usage = usageOf(await ledger.entries());
      const atMs = (seq: number): number => NOON_MS + (seq - 1) * 1000;
      const assertKept = async (idsAfterSeq: number, entriesAfterSeq: number): Promise<void> => {
        assert.deepEqual(await boundsOf(ledger), [idsAfterSeq, entriesAfterSeq, count]);
        assert.deepEqual(
          (await ledger.entries()).map(({ seq }) => seq),
          Array.from({ length: count - entriesAfterSeq }, (_, n) => count - n),
        );
        const gone = await ledger.changes({ seq: idsAfterSeq - 1, ids: null });
        if (idsAfterSeq > 0) {
          assert.deepEqual(gone, { kind: 'gone', latest: count });
          assert.equal((await ledger.changes({ seq: idsAfterSeq, ids: 1 })).kind, 'gone');
        }
        const changes = (await ledger.pages({ seq: idsAfterSeq, ids: null })).flat();
        assert.equal(changes.length, 3 * (count - idsAfterSeq));
        assert.deepEqual(sorted(await store.usage(ledger.organisation, '2000-01-01', '2100-01-01')), usage);
        const others = await other.entries();
        assert.deepEqual(await store.ledgerSize(), {
          entries: count - entriesAfterSeq + others.length,
          ids:
            3 * (count - idsAfterSeq) +
            (await other.pages({ seq: 20 - others.length, ids: null })).flat().length,
        });
      };
      await store.expireLedgers(atMs(1), atMs(1));
      await assertKept(0, 0);
      await store.expireLedgers(atMs(2), atMs(1));
      await assertKept(1, 0);
      await store.expireLedgers(atMs(251), atMs(231));
      // 20 entries of the other organisation were received just after the 101st.
      assert.deepEqual([(await other.entries()).length, (await boundsOf(other))[0]], [0, 20]);
      await assertKept(250, 230);
      // Ids are not kept longer than their entries.
      await store.expireLedgers(atMs(1), atMs(301));
      await assertKept(300, 300);
      await store.expireLedgers(atMs(1), atMs(301));
      await assertKept(300, 300);
      assert.equal(await store.entry(ledger.organisation, filled[299]!.requestId), null);
      assert.equal(await store.entryNumber(ledger.organisation, filled[300]!.requestId), 301);
    });

    test('deletes everything in the end, and the numbers go on', async () => {
      const ledger = await newLedger(store);
      await ledger.fill(manyEntries(USAGE_GROUP_ENTRIES - 2, NOON_MS, 1000, 1));
      const before = await ledger.entries();
      await store.expireLedgers(NOON_MS + DAY_MS, NOON_MS + DAY_MS);
      assert.deepEqual(await boundsOf(ledger), Array(3).fill(USAGE_GROUP_ENTRIES - 2));
      assert.deepEqual(await ledger.entries(), []);
      const latest = USAGE_GROUP_ENTRIES - 2;
      assert.equal(await store.latestEntry(ledger.organisation), latest);
      const read = await ledger.changes({ seq: latest, ids: null });
      assert.ok(read.kind === 'changes' && read.lines.length === 0);
      // The following uploads complete the group of which most entries are already deleted.
      for (let n = 1; n <= 3; n++) {
        const receivedAtMs = NOON_MS + 2 * DAY_MS;
        assert.equal(seqOf(await ledger.upload('tags', [recordRow('tags')], { receivedAtMs })), latest + n);
        assert.deepEqual(
          sorted(await store.usage(ledger.organisation, '2000-01-01', '2100-01-01')),
          usageOf([...before, ...(await ledger.entries())]),
        );
      }
      assert.equal((await ledger.pages({ seq: latest, ids: null })).flat().length, 3);
    });

    test('keeps an old entry that comes after a newer one', async () => {
      const ledger = await newLedger(store);
      const laterMs = Date.now() + DAY_MS;
      for (const receivedAtMs of [laterMs - 5, laterMs, laterMs - 5]) {
        await ledger.upload('tags', [recordRow('tags')], { receivedAtMs });
      }
      await store.expireLedgers(laterMs - 1, laterMs - 1);
      assert.deepEqual(await boundsOf(ledger), [1, 1, 3]);
      assert.equal((await ledger.pages({ seq: 1, ids: null })).flat().length, 2);
    });

    test('lets uploads in between, and a follower sees either changes or that they are gone', async () => {
      const ledger = await newLedger(store);
      await ledger.fill(manyEntries(800, NOON_MS, 1, 5));
      let isDone = false;
      const expiring = store.expireLedgers(NOON_MS + DAY_MS, NOON_MS + 1).then(() => {
        isDone = true;
      });
      let reads = 0;
      do {
        const read = await ledger.changes({ seq: 700, ids: null });
        if (read.kind === 'changes')
          assert.equal(changesIn(read).filter(({ seq }) => seq <= 800).length, 500);
        await ledger.upload('tags', [recordRow('tags')], { receivedAtMs: NOON_MS + 2 * DAY_MS });
        reads++;
      } while (!isDone);
      await expiring;
      assert.deepEqual((await ledger.changes({ seq: 700, ids: null })).kind, 'gone');
      assert.deepEqual(await boundsOf(ledger), [800, 1, 800 + reads]);
    });
  });
}

/** Copies a whole ledger, as `headgate copy` does. */
async function copyLedger(from: Ledger, to: Ledger): Promise<void> {
  let part: LedgerPart;
  let afterSeq = 0;
  do {
    part = await from.store.ledgerPart(from.organisation, afterSeq);
    await to.store.addLedgerPart(to.organisation, part);
    afterSeq = part.lastSeq;
  } while (!part.isLast);
}

for (const from of directStores) {
  // Between two stores of different kinds, each kind is once the source and once the target.
  for (const to of directStores.filter((other) => other !== from || isThorough)) {
    describe(`a ledger that is copied from ${from.name} to ${to.name}`, () => {
      let [source, target]: [TestStore, TestStore] = [] as never;
      before(async () => {
        [source, target] = [await from.open(), await to.open()];
      });
      after(async () => {
        await source.dispose();
        await target.dispose();
      });

      const assertEqual = async (one: Ledger, other: Ledger): Promise<void> => {
        const everything = async (ledger: Ledger): Promise<readonly unknown[]> => {
          const { store, organisation } = ledger;
          const { entries: _, ...last } = await store.ledgerPart(organisation, 1_000_000);
          const entries = await ledger.entries();
          const causes = await Promise.all(
            entries
              .slice(0, 5)
              .map(async ({ requestId }) => (await store.entry(organisation, requestId))?.causesJson),
          );
          return [
            entries,
            causes,
            { ...last, usage: sorted(last.usage) },
            (await ledger.pages({ seq: last.idsAfterSeq, ids: null }))
              .flat()
              .map(({ record: __, ...change }) => change),
            sorted(await store.usage(organisation, '2000-01-01', '2100-01-01')),
            await store.ledgerSize(),
          ];
        };
        assert.deepEqual(await everything(other), await everything(one));
      };

      test('is the same, can be copied again, and goes on', async () => {
        const [one, other] = [await newLedger(source.store), await newLedger(target.store)];
        await copyLedger(one, other);
        await assertEqual(one, other);
        await one.fill(manyEntries(USAGE_GROUP_ENTRIES - 4, NOON_MS, 1000, 2));
        for (let n = 0; n < 6; n++) {
          const causesJson = n === 5 ? '["ünï"]' : null;
          await one.upload('tags', [recordRow('tags')], { causesJson, receivedAtMs: NOON_MS + DAY_MS });
        }
        await one.interact(interactionRow(), { receivedAtMs: NOON_MS + DAY_MS });
        // Leaves out the last part, as if the copy had been interrupted.
        await other.store.addLedgerPart(other.organisation, await one.store.ledgerPart(one.organisation, 0));
        assert.equal(await other.store.latestEntry(other.organisation), COPIED_ENTRIES);
        for (let times = 0; times < 2; times++) {
          await copyLedger(one, other);
          await assertEqual(one, other);
        }
        // The copy is continued after some has expired in the source, and some has been added.
        await one.store.expireLedgers(NOON_MS + 800_000, NOON_MS + 700_000);
        for (let n = 0; n < 3; n++) await one.upload('tags', [recordRow('tags')]);
        for (let times = 0; times < 2; times++) {
          await copyLedger(one, other);
          await assertEqual(one, other);
        }
        // Expires a part of the current group, too.
        await one.store.expireLedgers(NOON_MS + 2 * DAY_MS, NOON_MS + 2 * DAY_MS);
        await one.upload('tags', [recordRow('tags')]);
        await copyLedger(one, other);
        await assertEqual(one, other);
        const next = (await one.store.latestEntry(one.organisation)) + 1;
        assert.equal(seqOf(await other.upload('tags', [recordRow('tags')])), next);
      });
    });
  }
}

/** The schema versions that did not have a ledger yet. */
const versionsBefore = { sqlite: 1, postgres: 2 } as const;

/** Makes the database like those of releases without a ledger. */
async function withoutLedger({ ask }: TestDatabases, database: string): Promise<void> {
  const later = [
    'ledgers',
    'ledger_entries',
    'usage_days',
    'segment_sets',
    'segments',
    'segment_memberships',
  ];
  for (const table of later) await ask(database, `DROP TABLE ${table}`);
  await ask(
    database,
    database.startsWith('sqlite:')
      ? `PRAGMA user_version = ${versionsBefore.sqlite}`
      : `UPDATE headgate_schema SET version = ${versionsBefore.postgres}`,
  );
}

for (const databases of testDatabases) {
  test(`an older database on ${databases.name} has a ledger that begins after entry 1`, async (t) => {
    const { database, remove } = await databases.newDatabase();
    t.after(remove);
    const old = await openStore(database);
    const { organisation } = await newLedger(old);
    const row = recordRow('tags');
    const upload = { organisation, type: 'tags', batches: [[row]], idempotencyRecord: null } as const;
    await old.write({ ...upload, entry: null });
    await old.close();
    await withoutLedger(databases, database);
    const store = await openStore(database);
    t.after(() => store.close());
    const [older, newer] = [new Ledger(store, organisation), await newLedger(store)];
    assert.deepEqual(await store.ledgerSize(), { entries: 0, ids: 0 });
    assert.equal(await store.latestEntry(organisation), 1);
    assert.deepEqual(await older.entries(), []);
    assert.deepEqual(await older.changes(START), { kind: 'gone', latest: 1 });
    const end: ChangePosition = { seq: 1, ids: null };
    assert.deepEqual(changesIn(await older.changes(end)), []);
    const changed = recordWith('tags', idOf('tags', row), { name: 'changed' });
    assert.equal(seqOf(await older.upload('tags', [changed])), 2);
    assert.deepEqual(changesIn(await older.changes(end)), [changeOf(2, 'tags', changed)]);
    assert.equal(seqOf(await newer.upload('tags', [row])), 1);
    assert.deepEqual(changesIn(await newer.changes(START)), [changeOf(1, 'tags', row)]);
    assert.deepEqual(await store.ledgerSize(), { entries: 2, ids: 2 });
  });
}

const REFUSED = 'refused';

/** Makes every entry with the key fail, after the rows that it describes were written. */
function refuseEntries({ ask }: TestDatabases, database: string): Promise<unknown> {
  return ask(
    database,
    database.startsWith('sqlite:')
      ? `CREATE TRIGGER no_entry BEFORE INSERT ON ledger_entries WHEN NEW.key_id = '${REFUSED}'
          BEGIN SELECT RAISE(ABORT, 'no entry'); END`
      : `ALTER TABLE ledger_entries ADD CONSTRAINT no_entry CHECK (key_id <> '${REFUSED}')`,
  );
}

for (const databases of testDatabases) {
  test(`on ${databases.name}, nothing is stored if its entry cannot be added`, async (t) => {
    const { database, remove } = await databases.newDatabase();
    const store = await openStore(database);
    t.after(async () => {
      await store.close();
      await remove();
    });
    const ledger = await newLedger(store);
    const { organisation } = ledger;
    await refuseEntries(databases, database);
    const newRecord = (): IdempotencyRecord => ({
      organisation,
      path: '/',
      key: randomUUID(),
      fingerprint: 'f',
      response: new Uint8Array(1),
      storedAtMs: NOON_MS,
      expiresAtMs: NOON_MS + DAY_MS,
    });
    const rowsOf = { tags: () => recordRow('tags'), [INTERACTIONS]: () => interactionRow() };
    const interact = (keyId: string, idempotencyRecord: IdempotencyRecord | null): Promise<Written> => {
      const { requestId, receivedAtMs, bytes } = sentBy(keyId);
      const entry = { requestId, keyId, receivedAtMs, bytes };
      return store.writeInteraction({ organisation, row: interactionRow(), idempotencyRecord, entry });
    };
    const assertStored = async (tags: number, interactions: number, entries: number): Promise<void> => {
      assert.equal((await everyRecord(store, organisation, 'tags')).length, tags);
      assert.equal((await everyInteraction(store, organisation)).length, interactions);
      assert.equal(await store.latestEntry(organisation), entries);
      assert.equal((await ledger.entries()).length, entries);
    };

    for (const type of ['tags', INTERACTIONS] as const) {
      // PostgreSQL writes few rows in a group, more of them alone, and copies many.
      for (const count of [1, 50, 500]) {
        const rows = Array.from({ length: count }, rowsOf[type]);
        const idempotencyRecord = newRecord();
        await assert.rejects(ledger.upload(type, rows, { keyId: REFUSED }));
        await assert.rejects(ledger.upload(type, rows, { keyId: REFUSED, idempotencyRecord }));
        await assertStored(0, 0, 0);
        assert.equal(await store.storedResponse(idempotencyRecord, NOON_MS), null);
      }
    }
    const idempotencyRecord = newRecord();
    await assert.rejects(interact(REFUSED, null));
    await assert.rejects(interact(REFUSED, idempotencyRecord));
    await assertStored(0, 0, 0);
    assert.equal(await store.storedResponse(idempotencyRecord, NOON_MS), null);

    // Others that are written at the same time are stored with their entries.
    const results = await Promise.allSettled([
      ledger.upload('tags', [recordRow('tags')], { keyId: REFUSED }),
      ledger.upload('tags', [recordRow('tags')]),
      interact(REFUSED, null),
      interact('the key', null),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'fulfilled', 'rejected', 'fulfilled'],
    );
    await assertStored(1, 1, 2);
  });
}
