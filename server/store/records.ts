// The store interface for records of all types, and for uploads of many interactions.

import type { RecordTypeName, UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { IdempotencyRecord, Written } from './idempotency-records.ts';
import type { UploadEntry } from './ledger.ts';
import type { OrganisationNumber, Page, Row, Tally } from './rows.ts';

export interface UploadedRows {
  readonly organisation: OrganisationNumber;
  readonly type: UploadTypeName;
  /** The rows to upsert, grouped by batch. No id occurs twice in an upload. */
  readonly batches: readonly (readonly Row[])[];
}

export interface Upload extends UploadedRows {
  readonly idempotencyRecord: IdempotencyRecord | null;
  /** Null if the ledger gets no entry, because the rows are copied from a store that has one. */
  readonly entry: UploadEntry | null;
}

export interface RecordPage {
  /** `next` of the previous page; null for the first page. */
  readonly afterId: string | null;
  /** The maximum number of rows. A page may have fewer. */
  readonly limit: number;
  readonly includeDeleted: boolean;
}

export interface RecordStore {
  /**
   * Returns those of the ids for which a record of the type exists. Records that are marked as deleted count as
   * existing.
   */
  existing(
    organisation: OrganisationNumber,
    type: RecordTypeName,
    ids: readonly string[],
  ): Promise<ReadonlySet<string>>;
  /**
   * Upserts all batches in one transaction. A stored row stays as it is if the incoming row is identical, or if both
   * rows have a value in `updated` and the incoming row is older. A stored interaction always stays as it is.
   */
  write(upload: Upload): Promise<Written>;
  /** Returns the counts that `write` would return, and stores nothing. */
  dryRun(upload: UploadedRows): Promise<readonly Tally[]>;
  record(organisation: OrganisationNumber, type: RecordTypeName, id: string): Promise<Row | null>;
  /** Returns a page of records, sorted by id. The page's `next` is an id. */
  records(organisation: OrganisationNumber, type: RecordTypeName, page: RecordPage): Promise<Page<string>>;
  /** Returns how many records of the type exist, including those that are marked as deleted. */
  countRecords(organisation: OrganisationNumber, type: RecordTypeName): Promise<number>;
}
