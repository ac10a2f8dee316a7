// Collects the ids of a page of changes, and makes its lines. An id that has changed several times is in the page once,
// at its last change.

import { presenters } from '@headgate/catalogue/presentation.ts';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { ChangePosition } from './ledger.ts';
import { unpackIds } from './packed-ids.ts';
import type { Row } from './rows.ts';

/** The approximate limit for the lines of a page, in bytes. */
export const CHANGES_PAGE_BYTES = 4 * 1024 * 1024;
/** How many entries are read at once. Entries of other types are skipped, so the number is limited. */
export const CHANGES_STEP_ENTRIES = 1000;
/** After this many entries, a page ends even if it is not full. */
export const CHANGES_PAGE_ENTRIES = 20_000;
/** After this many ids, a page ends even if it is not full, because the same ids may have changed again and again. */
const CHANGES_PAGE_IDS = 50_000;

export interface ChangedId {
  readonly type: UploadTypeName;
  readonly id: string;
  readonly seq: number;
  /** The number of the entry's ids up to and including this one. */
  readonly ids: number;
}

export class ChangedIds {
  readonly #limit: number;
  readonly #changed = new Map<string, ChangedId>();
  #position: ChangePosition;
  #idsRead = 0;

  constructor(after: ChangePosition, limit: number) {
    this.#position = after;
    this.#limit = limit;
  }

  /** The number of the first entry that has not been read completely. */
  get nextSeq(): number {
    const { seq, ids } = this.#position;
    return ids === null ? seq + 1 : seq;
  }

  /** The position up to which everything has been read. */
  get position(): ChangePosition {
    return this.#position;
  }

  /** Adds the ids of the next entry, or as many as fit. Returns false if the page is full. */
  addEntry(seq: number, type: UploadTypeName, packed: Uint8Array): boolean {
    const all = unpackIds(packed);
    let read = this.#position.ids !== null && this.#position.seq === seq ? this.#position.ids : 0;
    for (; read < all.length; read++) {
      const id = all[read]!;
      const key = `${id}${type}`;
      // The id moves to the end, so that the map is sorted by position.
      if (!this.#changed.delete(key) && this.#changed.size === this.#limit) {
        this.#position = read === 0 ? { seq: seq - 1, ids: null } : { seq, ids: read };
        return false;
      }
      this.#changed.set(key, { type, id, seq, ids: read + 1 });
      this.#idsRead++;
    }
    this.markReadTo(seq);
    return !this.isFull;
  }

  /** Marks everything up to and including the entry as read. */
  markReadTo(seq: number): void {
    this.#position = { seq, ids: null };
  }

  get isFull(): boolean {
    return this.#changed.size === this.#limit || this.#idsRead >= CHANGES_PAGE_IDS;
  }

  inOrder(): readonly ChangedId[] {
    return [...this.#changed.values()];
  }
}

/** Collects the lines of a page until it has enough bytes. */
export class ChangeLines {
  readonly #lines: string[] = [];
  #bytes = 0;

  /** Adds a change. Returns false, without adding it, if the page is full. The first change always fits. */
  add({ type, id, seq }: ChangedId, row: Row | null): boolean {
    const record = row === null ? 'null' : JSON.stringify(presenters[type](row));
    const line = `{"seq":${seq},"type":"${type}","id":"${id}","record":${record}}\n`;
    this.#bytes += Buffer.byteLength(line);
    if (this.#bytes > CHANGES_PAGE_BYTES && this.#lines.length > 0) return false;
    this.#lines.push(line);
    return true;
  }

  encoded(): Uint8Array<ArrayBuffer> {
    return new TextEncoder().encode(this.#lines.join(''));
  }
}
