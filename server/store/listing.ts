// Describes the contents and the order of a list of records or interactions. Each store translates this description
// into its own SQL.

import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { InteractionPage, InteractionPosition } from './interactions.ts';
import type { RecordPage } from './records.ts';
import type { Row } from './rows.ts';
import { type Index, isIndexedInPart, listingIndex, type Table } from './tables.ts';

/** A row's values in the columns by which the list is sorted. */
export type Position = readonly string[];

export interface Bound {
  readonly columns: readonly string[];
  readonly test: '<' | '<=' | '>' | '>=';
  readonly values: Position;
}

export type Equality = readonly [field: string, value: ColumnValue];

export interface Listing {
  readonly table: Table;
  /** The index in whose order the rows are read. Null means the primary key. */
  readonly index: Index | null;
  readonly order: readonly string[];
  readonly isDescending: boolean;
  /**
   * Conditions on the field by which the index groups rows. Their values are not null. The index has the matching
   * entries side by side, so that no other entries are read.
   */
  readonly inIndex: readonly Equality[];
  /**
   * Conditions that have to be checked in each row, because the index does not contain the field, or contains only the
   * beginning of its texts. If there are none, every entry between the bounds
   * is in the list.
   */
  readonly inRow: readonly Equality[];
  /**
   * The list has at most one bound on either side, because SQLite uses only one to find the entries and would check a
   * second one on every entry.
   */
  readonly begin: Bound | null;
  readonly end: Bound | null;
}

export function recordListing(table: Table, { afterId, includeDeleted }: RecordPage): Listing {
  const listing: Listing = {
    table,
    index: null,
    order: [table.key],
    isDescending: false,
    inIndex: [],
    inRow: includeDeleted ? [] : [['is_deleted', false]],
    begin: null,
    end: null,
  };
  return afterId === null ? listing : behind(listing, [afterId]);
}

export function interactionListing(table: Table, { equal, from, to, before }: InteractionPage): Listing {
  const unknown = Object.keys(equal).find((field) => table.columns.every(({ name }) => name !== field));
  if (unknown !== undefined) throw new Error(`interactions have no field ${unknown} to filter by`);
  const index = listingIndex(table, equal);
  const equalities = Object.entries(equal);
  const isInIndex = ([field]: Equality): boolean => field === index.filter;
  const listing: Listing = {
    table,
    index,
    order: ['occurred_at', 'interaction_id'],
    isDescending: true,
    inIndex: equalities.filter(isInIndex),
    inRow: equalities.filter((equality) => !isInIndex(equality) || isIndexedInPart(table, equality[0])),
    begin: to === null ? null : { columns: ['occurred_at'], test: '<', values: [to] },
    end: from === null ? null : { columns: ['occurred_at'], test: '>=', values: [from] },
  };
  const isWithin = before !== null && (to === null || before.occurredAt < to);
  return isWithin ? behind(listing, [before.occurredAt, before.interactionId]) : listing;
}

export function interactionPosition([occurredAt, interactionId]: Position): InteractionPosition {
  return { occurredAt: occurredAt!, interactionId: interactionId! };
}

/** Returns the rest of the list after a position. */
export function behind(listing: Listing, values: Position): Listing {
  const test = listing.isDescending ? '<' : '>';
  return { ...listing, begin: { columns: listing.order, test, values } };
}

/** Returns the beginning of the list up to and including a position. */
export function upTo(listing: Listing, values: Position): Listing {
  const test = listing.isDescending ? '>=' : '<=';
  return { ...listing, end: { columns: listing.order, test, values } };
}

export function positionOf({ table, order }: Listing, row: Row): Position {
  return order.map((column) => row[table.columns.findIndex(({ name }) => name === column)] as string);
}
