// What a list of records or interactions consists of, and in what order, for every store to put into its own SQL.

import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { InteractionPage, InteractionPosition } from './interactions.ts';
import type { RecordPage } from './records.ts';
import type { Row } from './rows.ts';
import { type Index, listingIndex, type Table } from './tables.ts';

/** A row's values in the columns of the order. */
export type Position = readonly string[];

export interface Bound {
  readonly columns: readonly string[];
  readonly test: '<' | '<=' | '>' | '>=';
  readonly values: Position;
}

export type Equality = readonly [field: string, value: ColumnValue];

export interface Listing {
  readonly table: Table;
  /** The index in whose order the rows are; null for the primary key. */
  readonly index: Index | null;
  readonly order: readonly string[];
  readonly isDescending: boolean;
  /** What all entries of the index between the bounds have. */
  readonly inIndex: readonly Equality[];
  /** What has to be looked at in each row. If there is nothing, every entry between the bounds is in the list. */
  readonly inRow: readonly Equality[];
  /** One bound on either side: SQLite uses one, and would look at every entry for another. */
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
    inRow: equalities.filter((equality) => !isInIndex(equality)),
    begin: to === null ? null : { columns: ['occurred_at'], test: '<', values: [to] },
    end: from === null ? null : { columns: ['occurred_at'], test: '>=', values: [from] },
  };
  const isWithin = before !== null && (to === null || before.occurredAt < to);
  return isWithin ? behind(listing, [before.occurredAt, before.interactionId]) : listing;
}

export function interactionPosition([occurredAt, interactionId]: Position): InteractionPosition {
  return { occurredAt: occurredAt!, interactionId: interactionId! };
}

/** The rest of the list behind a position in it. */
export function behind(listing: Listing, values: Position): Listing {
  const test = listing.isDescending ? '<' : '>';
  return { ...listing, begin: { columns: listing.order, test, values } };
}

/** The beginning of the list, the position included. */
export function upTo(listing: Listing, values: Position): Listing {
  const test = listing.isDescending ? '>=' : '<=';
  return { ...listing, end: { columns: listing.order, test, values } };
}

export function positionOf({ table, order }: Listing, row: Row): Position {
  return order.map((column) => row[table.columns.findIndex(({ name }) => name === column)] as string);
}
