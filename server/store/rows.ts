// What crosses the ports of a store: rows, what became of them, and pages of them.
//
// Values are in the kept form that the catalogue's kinds define: date-times as UTC text of fixed width, UUIDs in lower case.

import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';

/** An organisation's number within this database. It is the first column of every key. */
export type OrganisationNumber = number;

/** A record's values in the order of its type's declared fields. */
export type Row = readonly ColumnValue[];

/** What became of a batch's rows. */
export interface Tally {
  readonly created: number;
  readonly updated: number;
  /** Identical to what is stored, or older than it. */
  readonly unchanged: number;
}

/**
 * A part of a list. It ends at `limit` rows, at about PAGE_BYTES, or when the store has looked at as much as it looks at
 * for one page (page-bounds.ts). So it may have fewer rows than `limit`, even none, although more exist.
 */
export interface Page<Position> {
  readonly rows: readonly Row[];
  /**
   * Null if and only if the store has seen the end of the list. Otherwise the position behind which the next page
   * begins; that page may turn out to be empty.
   */
  readonly next: Position | null;
}
