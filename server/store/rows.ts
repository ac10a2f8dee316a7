// The types that all store interfaces share: rows, counts of outcomes, and pages of rows.
//
// Values are in the stored form that their kind defines in the catalogue: date-times as fixed-width UTC text, UUIDs in
// lower case.

import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';

/**
 * An organisation's number within this database. The primary keys of records, interactions and idempotency records
 * begin with this number.
 */
export type OrganisationNumber = number;

/** A record's values in the order of its type's declared fields. */
export type Row = readonly ColumnValue[];

/** Counts the outcomes of a batch's rows. */
export interface Tally {
  readonly created: number;
  readonly updated: number;
  /** Rows that were not stored, because the stored row is identical or newer. */
  readonly unchanged: number;
}

/**
 * A page of a list. A page ends at `limit` rows, at about PAGE_BYTES of JSON, or at one of the limits on reading in
 * page-limits.ts. It may therefore have fewer rows than `limit`, or none, although the list goes on.
 */
export interface Page<Position> {
  readonly rows: readonly Row[];
  /**
   * The position after which the next page begins, or null if and only if the list has ended. The next page may be
   * empty.
   */
  readonly next: Position | null;
}
