// Collects the ids of a page of changes, and makes its lines. An id that has changed several times is in the page once,
// at its last change.

import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { ChangePosition } from './ledger.ts';
import { unpackIds } from './packed-ids.ts';

/** The approximate limit for the lines of a page, in bytes. */
export const CHANGES_PAGE_BYTES = 6 * 1024 * 1024;
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
  /** In the order of their positions. Null if the id has changed again later. */
  readonly #changes: (ChangedId | null)[] = [];
  /** The places of the ids in `#changes`, by type. */
  readonly #places = new Map<UploadTypeName, Map<string, number>>();
  #count = 0;
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
    const places = this.#places.get(type) ?? new Map<string, number>();
    this.#places.set(type, places);
    let read = this.#position.ids !== null && this.#position.seq === seq ? this.#position.ids : 0;
    for (; read < all.length; read++) {
      const id = all[read]!;
      const earlier = places.get(id);
      if (earlier !== undefined) this.#changes[earlier] = null;
      else if (this.#count === this.#limit) {
        this.#position = read === 0 ? { seq: seq - 1, ids: null } : { seq, ids: read };
        return false;
      } else this.#count++;
      places.set(id, this.#changes.push({ type, id, seq, ids: read + 1 }) - 1);
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
    return this.#count === this.#limit || this.#idsRead >= CHANGES_PAGE_IDS;
  }

  inOrder(): readonly ChangedId[] {
    return this.#changes.filter((change) => change !== null);
  }
}

/** Returns the position after a page. `cutAfter` is its last change, or null if the page has all ids. */
export function positionAfter(ids: ChangedIds, cutAfter: ChangedId | null): ChangePosition {
  return cutAfter === null ? ids.position : { seq: cutAfter.seq, ids: cutAfter.ids };
}

/** Returns the changes of a snapshot, as if all its records had been changed by entry 0. */
export function snapshotOf(type: UploadTypeName, ids: readonly string[]): readonly ChangedId[] {
  return ids.map((id, position) => ({ type, id, seq: 0, ids: position + 1 }));
}

/** Returns the part of a change's line before its id. */
export function lineStart({ seq, type }: ChangedId): string {
  return `{"seq":${seq},"type":"${type}","id":"`;
}

/** The part of a change's line between its id and its record, which is JSON or null. */
export const LINE_MIDDLE = '","record":';
export const LINE_END = '}\n';

/** Yields the changes in runs of up to `most` changes of the same entry. */
export function* runsOfOneEntry(changes: readonly ChangedId[], most: number): Iterable<readonly ChangedId[]> {
  for (let first = 0; first < changes.length; ) {
    const { seq } = changes[first]!;
    let end = first + 1;
    while (end < changes.length && end - first < most && changes[end]!.seq === seq) end++;
    yield changes.slice(first, end);
    first = end;
  }
}

const LINE_FEED = 0x0a;

/** Collects the lines of a page until it has enough bytes. */
export class ChangeLines {
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;
  #last: ChangedId | null = null;

  /** Adds the lines of the next changes, or as many as fit. Returns false if the page is full. */
  add(lines: Uint8Array, changes: readonly ChangedId[]): boolean {
    const roomBytes = CHANGES_PAGE_BYTES - this.#bytes;
    if (lines.length <= roomBytes) {
      this.#take(lines, changes.at(-1)!);
      return true;
    }
    // A line feed ends a line. It does not occur within a line, because JSON escapes it.
    let endByte = lines.lastIndexOf(LINE_FEED, roomBytes - 1) + 1;
    // The page has at least one change.
    if (endByte === 0 && this.#last === null) endByte = lines.indexOf(LINE_FEED) + 1;
    const fitting = lines.subarray(0, endByte);
    let count = 0;
    for (let at = fitting.indexOf(LINE_FEED); at !== -1; at = fitting.indexOf(LINE_FEED, at + 1)) count++;
    if (count > 0) this.#take(fitting, changes[count - 1]!);
    return false;
  }

  #take(lines: Uint8Array, last: ChangedId): void {
    this.#parts.push(lines);
    this.#bytes += lines.length;
    this.#last = last;
  }

  /** The last change that was added. */
  get last(): ChangedId {
    return this.#last!;
  }

  bytes(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.#bytes);
    let next = 0;
    for (const part of this.#parts) {
      all.set(part, next);
      next += part.length;
    }
    return all;
  }
}
