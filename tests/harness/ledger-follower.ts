// Follows an organisation's ledger while others write to it, and fails if an entry is visible before an earlier one, or
// before the records that it describes.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { presenters } from '@headgate/catalogue/presentation.ts';
import { INTERACTIONS, type RecordTypeName, type UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { ChangePosition } from '../../server/store/ledger.ts';
import { unpackIds } from '../../server/store/packed-ids.ts';
import type { OrganisationNumber, Row } from '../../server/store/rows.ts';
import { type Store, StoreUnavailable } from '../../server/store/store.ts';
import { catalogueTables, tableOf } from '../../server/store/tables.ts';
import { everyInteraction, everyRecord } from '../../server/store/test-lists.ts';
import type { Random } from './random.ts';

const MOST_CHANGES = 300;
const LONGEST_PAUSE_MS = 15;

interface Change {
  readonly seq: number;
  readonly type: UploadTypeName;
  readonly id: string;
  readonly record: object | null;
}

export class LedgerFollower {
  readonly #store: Store;
  readonly #organisation: OrganisationNumber;
  readonly #random: Random;
  readonly #types: readonly RecordTypeName[];
  /** The last state of each record that was in a page of changes. */
  readonly #seen = new Map<string, object>();
  /** The ids of each entry, by the entry's number. */
  readonly #idsOfEntries = new Map<number, readonly string[]>();
  #position: ChangePosition = { seq: 0, ids: null };
  #lastSeq = 0;
  #isOver = false;

  constructor(
    store: Store,
    organisation: OrganisationNumber,
    random: Random,
    types: readonly RecordTypeName[],
  ) {
    this.#store = store;
    this.#organisation = organisation;
    this.#random = random;
    this.#types = types;
  }

  /** The number of entries that it has seen. */
  get entries(): number {
    return this.#idsOfEntries.size;
  }

  /** Follows the ledger. Resolves when everything that was written before `end` is read. */
  async follow(): Promise<void> {
    for (;;) {
      const isOver = this.#isOver;
      try {
        const isAtEnd = await this.#readPage();
        await this.#readEntries();
        if (isAtEnd && isOver) return;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
      }
      await sleep(this.#random.integer(0, LONGEST_PAUSE_MS));
    }
  }

  end(): void {
    this.#isOver = true;
  }

  /** Returns whether there is nothing more to read. */
  async #readPage(): Promise<boolean> {
    const read = await this.#store.changes(this.#organisation, {
      after: this.#position,
      types: [...this.#types, INTERACTIONS],
      limit: this.#random.integer(1, MOST_CHANGES),
    });
    assert.ok(read.kind === 'changes');
    for (const line of new TextDecoder().decode(read.lines).split('\n').slice(0, -1)) {
      const { seq, type, id, record } = JSON.parse(line) as Change;
      assert.ok(seq >= this.#position.seq, `entry ${seq} comes after position ${this.#position.seq}`);
      assert.ok(record !== null, `entry ${seq} is visible before its record ${id}`);
      this.#seen.set(`${type} ${id}`, record);
    }
    this.#position = read.next;
    return read.next.seq === read.latest && read.next.ids === null;
  }

  async #readEntries(): Promise<void> {
    const { entries } = await this.#store.ledgerPart(this.#organisation, this.#lastSeq);
    for (const { seq, ids } of entries) {
      assert.equal(seq, this.#lastSeq + 1, 'the numbers have no gaps');
      this.#lastSeq = seq;
      this.#idsOfEntries.set(seq, unpackIds(ids));
    }
  }

  /** Asserts that it has seen the ids, each of which was written only once, in exactly one entry: the given one if known. */
  assertSeenOnce(type: UploadTypeName, ids: readonly string[], seq: number | null): void {
    for (const id of ids) {
      assert.ok(this.#seen.has(`${type} ${id}`), `the acknowledged ${type} ${id} is not in the changes`);
      const entries = this.#entriesOfIds().get(id) ?? [];
      assert.equal(entries.length, 1, `${type} ${id} is in ${entries.length} entries`);
      if (seq !== null) assert.equal(entries[0], seq);
    }
  }

  #byId: ReadonlyMap<string, readonly number[]> | null = null;

  #entriesOfIds(): ReadonlyMap<string, readonly number[]> {
    if (this.#byId !== null) return this.#byId;
    const byId = new Map<string, number[]>();
    for (const [seq, ids] of this.#idsOfEntries) {
      for (const id of ids) byId.set(id, [...(byId.get(id) ?? []), seq]);
    }
    this.#byId = byId;
    return byId;
  }

  /** Asserts that it has the same records as the store. Nothing may be written meanwhile. */
  async assertComplete(): Promise<void> {
    const stored = new Map<string, object>();
    const add = (type: UploadTypeName, rows: readonly Row[]): void => {
      const { key, columns } = tableOf(catalogueTables, type);
      const keyPosition = columns.findIndex(({ name }) => name === key);
      for (const row of rows) stored.set(`${type} ${row[keyPosition]}`, presenters[type](row));
    };
    for (const type of this.#types) add(type, await everyRecord(this.#store, this.#organisation, type));
    add(INTERACTIONS, await everyInteraction(this.#store, this.#organisation));
    assert.deepEqual(
      [...stored.keys()].filter((key) => !this.#seen.has(key)),
      [],
      'stored records that are in no entry',
    );
    assert.equal(this.#seen.size, stored.size);
    for (const [key, record] of stored) assert.deepEqual(this.#seen.get(key), record);
  }
}
