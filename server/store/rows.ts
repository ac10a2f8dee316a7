// The types that all store interfaces share: rows, counts of their outcomes, and pages of rows.
//
// Values are in the kept form that the catalogue's kinds define: date-times as UTC text of fixed width, UUIDs in
// lower case.

import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';

/** An organisation's number within this database. It is the first column of every key. */
export type OrganisationNumber = number;

/** A record's values in the order of its type's declared fields. */
export type Row = readonly ColumnValue[];

/** Counts the outcomes of a batch's rows. */
export interface Tally {
  readonly created: number;
  readonly updated: number;
  /** Rows that are identical to the stored ones, or older. */
  readonly unchanged: number;
}

/**
 * A page of a list. It ends at `limit` rows, at about PAGE_BYTES, or at the limits on reading in page-limits.ts. So it
 * may have fewer rows than `limit`, or none, even if more exist.
 */
export interface Page<Position> {
  readonly rows: readonly Row[];
  /**
   * Null if and only if the list has ended. Otherwise the position after which the next page begins; that page may be
   * empty.
   */
  readonly next: Position | null;
}
