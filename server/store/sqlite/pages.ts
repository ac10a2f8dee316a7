// Reads single rows, and lists of rows page by page. Rows are returned as JSON text, which crosses threads in a third
// of the time of a structured clone. Lists are read in steps of bounded cost, because a running SQLite statement cannot
// be interrupted.

import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import { behind, type Listing, type Position, positionOf, upTo } from '../listing.ts';
import { COUNT_STEP_ENTRIES, PageAccount, STEP_ENTRIES } from '../page-limits.ts';
import type { OrganisationNumber, Row } from '../rows.ts';
import { isIndexedInPart, quoted, quotedList, type Table } from '../tables.ts';
import { codecs, toColumn } from './codecs.ts';
import { indexedPart } from './schema.ts';
import type { Prepare } from './statements.ts';

const LARGEST_ROWID = 2n ** 63n - 1n;

/** A page in the form in which it is sent to another thread. */
export interface PackedPage {
  readonly rowsJson: string;
  readonly next: Position | null;
}

/** A generator that yields after each step, so that other calls get their turn, and finally returns the result. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

export function rowsOf(rowsJson: string): readonly Row[] {
  return JSON.parse(rowsJson) as Row[];
}

/** Returns a JSON array with the row as its only element, or an empty array if the row does not exist. */
export function rowByKey(
  prepare: Prepare,
  table: Table,
  organisation: OrganisationNumber,
  id: string,
): string {
  const select = prepare(`SELECT ${columnNames(table)} FROM ${quoted(table.name)}
    WHERE "organisation" = ? AND ${quoted(table.key)} = ?`);
  select.setReturnArrays(true);
  const values = select.get(organisation, id) as unknown as SQLOutputValue[] | undefined;
  return JSON.stringify(values === undefined ? [] : [rowOf(table, values)]);
}

export function* pageOf(
  prepare: Prepare,
  organisation: OrganisationNumber,
  whole: Listing,
  limit: number,
): Steps<PackedPage> {
  const account = new PageAccount(limit);
  const rowsJson: string[] = [];
  const pageUntil = (next: Position | null): PackedPage => ({ rowsJson: `[${rowsJson.join(',')}]`, next });
  let rest = whole;
  let last: Row | null = null;
  for (;;) {
    account.beginStep();
    const stepEnd = whole.inRow.length === 0 ? null : endOfStep(prepare, organisation, rest);
    const step = stepEnd === null ? rest : upTo(rest, stepEnd);
    const { sql, parameters } = rowsQuery(organisation, step, account.roomRows + 1);
    const select = prepare(sql);
    select.setReturnArrays(true);
    for (const values of select.iterate(...parameters) as unknown as Iterable<SQLOutputValue[]>) {
      const row = rowOf(whole.table, values);
      const json = JSON.stringify(row);
      if (!account.take(json)) return pageUntil(positionOf(whole, last!));
      rowsJson.push(json);
      last = row;
    }
    if (stepEnd === null) return pageUntil(null);
    if (!account.endStep()) return pageUntil(stepEnd);
    rest = behind(whole, stepEnd);
    yield;
  }
}

export function* countOf(
  prepare: Prepare,
  { name, key }: Table,
  organisation: OrganisationNumber,
): Steps<number> {
  const skip = prepare(
    `SELECT ${quoted(key)} FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} > ?
      ORDER BY ${quoted(key)} LIMIT 1 OFFSET ${COUNT_STEP_ENTRIES - 1}`,
  );
  const countRest = prepare(
    `SELECT count(*) AS entries FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} > ?`,
  );
  let entries = 0;
  for (let after = ''; ; ) {
    const end = skip.get(organisation, after);
    if (end === undefined) return entries + Number(countRest.get(organisation, after)!.entries);
    entries += COUNT_STEP_ENTRIES;
    after = end[key] as string;
    yield;
  }
}

/** Returns the last position of the next step, or null if the remaining entries fit into one step. */
function endOfStep(prepare: Prepare, organisation: OrganisationNumber, listing: Listing): Position | null {
  const { sql, parameters } = stepEndQuery(organisation, listing);
  const row = prepare(sql).get(...parameters);
  return row === undefined ? null : listing.order.map((column) => row[column] as string);
}

export interface Query {
  readonly sql: string;
  readonly parameters: readonly SQLInputValue[];
}

/** Returns the query for the last position of a step. The query reads one row; it skips the others in the index. */
export function stepEndQuery(organisation: OrganisationNumber, listing: Listing): Query {
  const { sql, parameters } = selection(quotedList(listing.order), organisation, { ...listing, inRow: [] });
  return { sql: `${sql} LIMIT 1 OFFSET ${STEP_ENTRIES}`, parameters };
}

export function rowsQuery(organisation: OrganisationNumber, listing: Listing, limit: number): Query {
  const { sql, parameters } = selection(columnNames(listing.table), organisation, listing);
  return { sql: `${sql} LIMIT ?`, parameters: [...parameters, limit] };
}

function selection(selected: string, organisation: OrganisationNumber, listing: Listing): Query {
  const { table, index, order, isDescending, inIndex, inRow, begin, end } = listing;
  const conditions = ['"organisation" = ?'];
  const parameters: SQLInputValue[] = [organisation];
  const given = (field: string, value: ColumnValue): SQLInputValue =>
    toColumn(table.columns.find(({ name }) => name === field)!.kind, value);
  for (const [field, value] of inIndex) {
    const indexed = isIndexedInPart(table, field) ? indexedPart : (sql: string) => sql;
    conditions.push(`${indexed(quoted(field))} = ${indexed('?')}`);
    parameters.push(given(field, value));
  }
  for (const [field, value] of inRow) {
    // Uses `=` instead of `IS`, because SQLite can use an index of non-null values only with `=`.
    conditions.push(value === null ? `${quoted(field)} IS NULL` : `${quoted(field)} = ?`);
    if (value !== null) parameters.push(given(field, value));
  }
  for (const bound of [begin, end]) {
    if (bound === null) continue;
    const values = bound.columns.map((column) => (isRowid(listing, column) ? rowidSql(table) : '?'));
    conditions.push(`(${orderSql(listing, bound.columns)}) ${bound.test} (${values.join(', ')})`);
    bound.columns.forEach((column, at) => {
      if (isRowid(listing, column)) parameters.push(organisation);
      parameters.push(given(column, bound.values[at]!));
    });
  }
  // Names the index, because SQLite could choose another one with many more entries between the bounds, or read the whole
  // table.
  const source = `${quoted(table.name)} INDEXED BY ${quoted(index?.name ?? keyIndexName(table))}`;
  const ordered = orderSql(listing, order, isDescending ? ' DESC' : ' ASC');
  return {
    sql: `SELECT ${selected} FROM ${source} WHERE ${conditions.join(' AND ')} ORDER BY ${ordered}`,
    parameters,
  };
}

/** Returns the name that SQLite gives to the index of the primary key. */
function keyIndexName({ name }: Table): string {
  return `sqlite_autoindex_${name}_1`;
}

/** Returns whether the list is sorted by the rowid instead of the column, because its index ends with the rowid. */
function isRowid({ table, index }: Listing, column: string): boolean {
  return index !== null && column === table.key;
}

function orderSql(listing: Listing, columns: readonly string[], direction = ''): string {
  return columns
    .map((column) => `${isRowid(listing, column) ? 'rowid' : quoted(column)}${direction}`)
    .join(', ');
}

/**
 * Returns SQL for the rowid of an organisation's row by its key. If the row has been deleted, the position is before all
 * other rows of its time, so that none of them is left out. SQLite finds the position of a rowid in an index only if the
 * value has a collation.
 */
function rowidSql({ name, key }: Table): string {
  return `coalesce((SELECT rowid FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} = ?), ${LARGEST_ROWID}) COLLATE BINARY`;
}

function columnNames({ columns }: Table): string {
  return quotedList(columns.map(({ name }) => name));
}

function rowOf({ columns }: Table, values: readonly SQLOutputValue[]): Row {
  return columns.map(({ kind }, position): ColumnValue => {
    const value = values[position]!;
    const { conversion } = codecs[kind];
    return conversion === null ? (value as ColumnValue) : conversion.fromColumn(value);
  });
}
