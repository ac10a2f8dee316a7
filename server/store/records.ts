// The port for the records of all types.

import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type { IdempotencyRecord, Written } from './idempotency-records.ts';
import type { OrganisationNumber, Page, Row } from './rows.ts';

export interface Upload {
  readonly organisation: OrganisationNumber;
  readonly type: RecordTypeName;
  /** The rows to upsert, by batch. No id occurs twice in an upload. */
  readonly batches: readonly (readonly Row[])[];
  /** Tally what the upload would do, and store nothing. */
  readonly dryRun: boolean;
  readonly idempotencyRecord: IdempotencyRecord | null;
}

export interface RecordPage {
  /** `next` of the page before; null for the first one. */
  readonly afterId: string | null;
  /** The most rows; a page may have fewer. */
  readonly limit: number;
  readonly includeDeleted: boolean;
}

export interface RecordStore {
  /** Returns those of the ids that are records of the type, deleted ones included. */
  existing(
    organisation: OrganisationNumber,
    type: RecordTypeName,
    ids: readonly string[],
  ): Promise<ReadonlySet<string>>;
  /**
   * Upserts all batches in one transaction. A stored row stays if both it and the incoming one carry `updated` and the
   * incoming one is older, or if the two are identical.
   */
  write(upload: Upload): Promise<Written>;
  record(organisation: OrganisationNumber, type: RecordTypeName, id: string): Promise<Row | null>;
  /** Returns a page in the order of ids; a position is an id. */
  records(organisation: OrganisationNumber, type: RecordTypeName, page: RecordPage): Promise<Page<string>>;
  /** Returns how many records of the type exist, deleted ones included. */
  countRecords(organisation: OrganisationNumber, type: RecordTypeName): Promise<number>;
}
