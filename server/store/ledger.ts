// The store interface for the ledger. Each organisation has a ledger. It gets one entry for every upload, and one for
// the single interactions of a key that are committed together. An entry is written in the transaction that it
// describes.
//
// Every store guarantees that the numbers of an organisation's entries have no gaps and are in the order in which the
// entries become visible: whoever has seen entry n has seen every entry below n, and the rows that they describe.

import { type UploadTypeName, uploadTypeNames } from '@headgate/catalogue/record-types.ts';
import type { OrganisationNumber, Tally } from './rows.ts';

/** Who sent something, and when. */
export interface EntryOrigin {
  readonly requestId: string;
  readonly keyId: string;
  readonly receivedAtMs: number;
  /** The size of the request's body as it was sent. */
  readonly bytes: number;
}

/** What is known about an upload before it is written. */
export interface UploadEntry extends EntryOrigin {
  readonly received: number;
  readonly rejected: number;
  /** Why records were rejected, as JSON. Null if none was. */
  readonly causesJson: string | null;
}

export interface LedgerEntry extends UploadEntry, Tally {
  readonly seq: number;
  readonly type: UploadTypeName;
  /** The time from the arrival of the request until its entry was written. */
  readonly ms: number;
}

/** `success`: nothing was rejected; `error`: everything was rejected; `partial`: anything else. */
export const uploadStatuses = ['success', 'partial', 'error'] as const;
export type UploadStatus = (typeof uploadStatuses)[number];

export function uploadStatusOf({ received, rejected }: LedgerEntry): UploadStatus {
  return rejected === 0 ? 'success' : rejected === received ? 'error' : 'partial';
}

export interface EntryFilter {
  readonly types: readonly UploadTypeName[];
  /** Entries of these types are also listed, but only those of the key. */
  readonly own: { readonly keyId: string; readonly types: readonly UploadTypeName[] } | null;
  readonly status: UploadStatus | null;
  readonly keyId: string | null;
  /** Bounds on the time of receipt: `fromMs` is included, `toMs` is not. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

export interface EntryPage extends EntryFilter {
  /** `next` of the previous page; null for the first page. */
  readonly before: number | null;
  readonly limit: number;
}

export interface EntriesRead {
  /** Newest first. `causesJson` is null in all of them. */
  readonly entries: readonly LedgerEntry[];
  /** The number before which the next page begins, or null if the list has ended. The next page may be empty. */
  readonly next: number | null;
}

/**
 * A position in the ledger: everything up to entry `seq` has been read, or, if `ids` is not null, everything before entry
 * `seq` and this many of its ids.
 */
export interface ChangePosition {
  readonly seq: number;
  readonly ids: number | null;
}

export interface ChangesPage {
  readonly after: ChangePosition;
  readonly types: readonly UploadTypeName[];
  /** The maximum number of changes. A page may have fewer. */
  readonly limit: number;
}

/** `gone`: the ledger does not contain the position, because it is too old or lies beyond the end. */
export type ChangesRead =
  | { readonly kind: 'gone'; readonly latest: number }
  | {
      readonly kind: 'changes';
      /** One line of JSON per change, each with a line feed, in UTF-8. */
      readonly lines: Uint8Array<ArrayBuffer>;
      readonly next: ChangePosition;
      readonly latest: number;
    };

/** Rows of one type, column by column. */
export interface ColumnarRows {
  readonly type: UploadTypeName;
  /** The ids that were looked up, as a JSON array. A row that does not exist is in no column. */
  readonly idsJson: string;
  /** One JSON array of stored values for each column of the type's table, in the order of the columns. */
  readonly columnsJson: readonly string[];
}

export type ChangedRowsRead =
  | { readonly kind: 'gone'; readonly latest: number }
  | {
      readonly kind: 'rows';
      /** Each type once. */
      readonly rows: readonly ColumnarRows[];
      readonly next: ChangePosition;
      readonly latest: number;
    };

/** How many ids a part of a snapshot has at most. */
export const SNAPSHOT_IDS = 10_000;

export interface SnapshotPart {
  /** Empty if there are no records. */
  readonly rows: readonly ColumnarRows[];
  /** The id after which the next part begins, or null if this is the last part. */
  readonly next: string | null;
}

/** What is added up of entries. */
export const usageSums = [
  'uploads',
  'received',
  'created',
  'updated',
  'unchanged',
  'rejected',
  'bytes',
] as const;

/** The sums of all entries of one type, key and day. */
export interface Usage extends Readonly<Record<(typeof usageSums)[number], number>> {
  /** A UTC date, such as 2026-01-31. */
  readonly day: string;
  readonly type: UploadTypeName;
  readonly keyId: string;
}

export interface LedgerSize {
  readonly entries: number;
  readonly ids: number;
}

/** How many ids and entries of an organisation a step deletes. Few, because uploads wait for a step. */
export const EXPIRED_ENTRIES_AT_ONCE = 100;

export interface LedgerStore {
  /** Returns the number of the organisation's last entry, or 0 if it has none. */
  latestEntry(organisation: OrganisationNumber): Promise<number>;
  /** Returns the number of an upload's entry, or null if there is none. */
  entryNumber(organisation: OrganisationNumber, requestId: string): Promise<number | null>;
  entry(organisation: OrganisationNumber, requestId: string): Promise<LedgerEntry | null>;
  entries(organisation: OrganisationNumber, page: EntryPage): Promise<EntriesRead>;
  /**
   * Returns the current state of what has changed after a position, sorted by the number of the last change. An id
   * occurs once in a page, even if it has changed more than once.
   */
  changes(organisation: OrganisationNumber, page: ChangesPage): Promise<ChangesRead>;
  /** Returns the same as `changes`, column by column. */
  changedRows(organisation: OrganisationNumber, page: ChangesPage): Promise<ChangedRowsRead>;
  /**
   * Returns the rows with the next ids of a type, in any order. Whoever reads all parts and then follows the changes
   * after the entry that was the last one before, has everything.
   */
  snapshot(
    organisation: OrganisationNumber,
    type: UploadTypeName,
    afterId: string | null,
  ): Promise<SnapshotPart>;
  /** Returns the usage from the first to the last day, both included. */
  usage(organisation: OrganisationNumber, firstDay: string, lastDay: string): Promise<readonly Usage[]>;
  /** Deletes the ids of entries, and entries, that are older than the given times. */
  expireLedgers(idsBeforeMs: number, entriesBeforeMs: number): Promise<void>;
  /** Returns the size of all organisations' ledgers together. */
  ledgerSize(): Promise<LedgerSize>;
  /** Returns a part of the ledger for another store, beginning after an entry. */
  ledgerPart(organisation: OrganisationNumber, afterSeq: number): Promise<LedgerPart>;
  /** Adds entries that the ledger does not have, in the order of their numbers, and takes over the bounds and usage. */
  addLedgerPart(organisation: OrganisationNumber, part: LedgerPart): Promise<void>;
}

/** How many entries one part of a ledger has at most. The last part has fewer. */
export const COPIED_ENTRIES = 500;

/** Which numbers a ledger has. */
export interface LedgerBounds {
  /** The number of the last entry. */
  readonly lastSeq: number;
  /** The ids of entries after this number exist. */
  readonly idsAfterSeq: number;
  /** Entries after this number exist. */
  readonly entriesAfterSeq: number;
}

/** A part of a ledger, for copying. `lastSeq` is that of the part, or of the whole ledger if this is the last part. */
export interface LedgerPart extends LedgerBounds {
  readonly entries: readonly (LedgerEntry & { readonly ids: Uint8Array })[];
  /** The usage that is already added up. Only in the last part. */
  readonly usage: readonly Usage[];
  readonly isLast: boolean;
}

/** Filters nothing. */
export const everyEntry: EntryFilter = {
  types: uploadTypeNames,
  own: null,
  status: null,
  keyId: null,
  fromMs: null,
  toMs: null,
};

/** Returns the entry with this number, or null if there is none. Its `causesJson` is null. */
export async function entryAt(
  store: Pick<LedgerStore, 'entries'>,
  organisation: OrganisationNumber,
  seq: number,
): Promise<LedgerEntry | null> {
  const { entries } = await store.entries(organisation, { ...everyEntry, before: seq + 1, limit: 1 });
  return entries[0]?.seq === seq ? entries[0] : null;
}
