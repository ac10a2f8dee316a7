// Reads single rows, and lists of rows page by page.

import { type Bound, behind, type Listing, type Position, positionOf, upTo } from '../listing.ts';
import { COUNT_STEP_ENTRIES, PageAccount, STEP_ENTRIES } from '../page-limits.ts';
import type { OrganisationNumber, Page, Row } from '../rows.ts';
import { StoreBusy } from '../store.ts';
import { type Column, isIndexedInPart, quoted, quotedList, type Table } from '../tables.ts';
import { codecs } from './codecs.ts';
import type { Run, Sessions, Statement } from './connections.ts';
import { isTimedOut } from './errors.ts';
import { rowOf, selectedColumn } from './row-text.ts';
import { indexedPart } from './schema.ts';

/**
 * Up to this many rows are read without measuring them first, because they make at most about one page, however long
 * their texts are.
 */
const FEW_ROWS = 6;
/** The approximate size of a value of bounded length. */
const SHORT_VALUE_BYTES = 40;
/** A step takes milliseconds. A server that needs this long is overloaded. */
const STEP_TIMEOUT_MS = 10_000;

/**
 * Makes PostgreSQL read lists in the order of an index, up to a limit. If its statistics are missing or old, PostgreSQL
 * would assume that a list is short, read all of it and sort it. The settings prevent that within the transaction.
 */
const readInOrder: Statement = {
  name: 'read in order',
  text: `SELECT set_config('statement_timeout', '${STEP_TIMEOUT_MS}', true),
    set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)`,
  values: [],
};

export async function rowByKey(
  run: Run,
  table: Table,
  organisation: OrganisationNumber,
  id: string,
): Promise<Row | null> {
  const [row] = await run({
    name: `one of ${table.name}`,
    text: `SELECT ${table.columns.map(selectedColumn).join(', ')} FROM ${quoted(table.name)}
      WHERE "organisation" = $1 AND ${quoted(table.key)} = $2::uuid`,
    values: [organisation, id],
  });
  return row === undefined ? null : rowOf(table, row);
}

/** Returns the rows that exist, by their keys. */
export async function rowsByKeys(
  run: Run,
  table: Table,
  organisation: OrganisationNumber,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Row>> {
  const keyPosition = table.columns.findIndex(({ name }) => name === table.key);
  const found = await run({
    name: `some of ${table.name}`,
    text: `SELECT ${table.columns.map(selectedColumn).join(', ')} FROM ${quoted(table.name)}
      WHERE "organisation" = $1 AND ${quoted(table.key)} = ANY ($2::uuid[])`,
    values: [organisation, ids],
  });
  return new Map(
    found.map((values) => {
      const row = rowOf(table, values);
      return [row[keyPosition] as string, row];
    }),
  );
}

/** Returns the rows that exist column by column, each column as a JSON array. */
export async function columnsByKeys(
  run: Run,
  table: Table,
  organisation: OrganisationNumber,
  ids: readonly string[],
): Promise<readonly string[]> {
  const arrays = table.columns.map((column) => `coalesce(json_agg(${selectedColumn(column)}), '[]')`);
  const [columns] = await run({
    name: `columns of ${table.name}`,
    text: `SELECT ${arrays.join(', ')} FROM ${quoted(table.name)}
      WHERE "organisation" = $1 AND ${quoted(table.key)} = ANY ($2::uuid[])`,
    values: [organisation, ids],
  });
  return columns as readonly string[];
}

/** Returns the approximate sizes in bytes of the rows that exist, by their keys. */
export async function sizesByKeys(
  run: Run,
  table: Table,
  organisation: OrganisationNumber,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (!table.columns.some(isLong)) return new Map();
  const found = await run({
    name: `sizes of some ${table.name}`,
    text: `SELECT ${quoted(table.key)}, ${sizeSql(table)} FROM ${quoted(table.name)}
      WHERE "organisation" = $1 AND ${quoted(table.key)} = ANY ($2::uuid[])`,
    values: [organisation, ids],
  });
  return new Map(found.map(([id, bytes]) => [id!, Number(bytes)]));
}

/** Counts in steps, because a large table takes longer than a statement may. */
export async function countOf(
  sessions: Sessions,
  { name, key }: Table,
  organisation: OrganisationNumber,
): Promise<number> {
  const first = async (selected: string, rows: string, after: string | null): Promise<string | null> => {
    const place = after === null ? '' : `AND ${quoted(key)} > $2::uuid`;
    const text = `SELECT ${selected} FROM (SELECT ${quoted(key)} FROM ${quoted(name)}
      WHERE "organisation" = $1 ${place} ORDER BY ${quoted(key)} ${rows}) AS step`;
    const values = after === null ? [organisation] : [organisation, after];
    return inOrder(sessions, async (run) => (await run({ text, values }))[0]?.[0] ?? null);
  };
  let entries = 0;
  for (let after: string | null = null; ; entries += COUNT_STEP_ENTRIES) {
    const last = await first(quoted(key), `LIMIT 1 OFFSET ${COUNT_STEP_ENTRIES - 1}`, after);
    if (last === null) return entries + Number(await first('count(*)', `LIMIT ${COUNT_STEP_ENTRIES}`, after));
    after = last;
  }
}

export async function pageOf(
  sessions: Sessions,
  organisation: OrganisationNumber,
  listing: Listing,
  limit: number,
): Promise<Page<Position>> {
  return inOrder(sessions, (run) => pageIn(run, organisation, listing, limit));
}

async function inOrder<Result>(
  { transaction }: Sessions,
  read: (run: Run) => Promise<Result>,
): Promise<Result> {
  try {
    return await transaction(async ({ run }) => {
      await run(readInOrder);
      return read(run);
    });
  } catch (error) {
    if (!isTimedOut(error)) throw error;
    const message = `PostgreSQL took over ${STEP_TIMEOUT_MS / 1000} s for a part of a list: try again later`;
    throw new StoreBusy(message, { cause: error });
  }
}

async function pageIn(
  run: Run,
  organisation: OrganisationNumber,
  whole: Listing,
  limit: number,
): Promise<Page<Position>> {
  const account = new PageAccount(limit);
  const rows: Row[] = [];
  const untilLast = () => ({ rows, next: positionOf(whole, rows.at(-1)!) });
  let rest = whole;
  for (;;) {
    account.beginStep();
    // Null if the remaining entries fit into one step.
    const [stepEnd = null] =
      whole.inRow.length === 0 ? [] : ((await run(stepEndQuery(organisation, rest))) as readonly Position[]);
    const step = stepEnd === null ? rest : upTo(rest, stepEnd);
    const found = await rowsThatFit(run, organisation, step, account);
    for (const row of found.rows) {
      // The row may not fit although its measured size did, because escapes make its JSON longer than the text that
      // PostgreSQL has measured.
      if (!account.take(JSON.stringify(row))) return untilLast();
      rows.push(row);
    }
    if (found.hasMore && rows.length > 0) return untilLast();
    // All measured rows have since been marked as deleted, so the step is read again.
    if (found.hasMore) continue;
    if (stepEnd === null) return { rows, next: null };
    if (!account.endStep()) return { rows, next: stepEnd };
    rest = behind(whole, stepEnd);
  }
}

/**
 * Returns the next rows: at most one row more than the page has room for, and only as many as fit into the page by
 * their measured bytes. `hasMore` is true if rows were left out because of their bytes.
 */
async function rowsThatFit(
  run: Run,
  organisation: OrganisationNumber,
  listing: Listing,
  account: PageAccount,
): Promise<{ readonly rows: readonly Row[]; readonly hasMore: boolean }> {
  const { table } = listing;
  const wanted = account.roomRows + 1;
  let fitting = wanted;
  if (wanted > FEW_ROWS && table.columns.some(isLong)) {
    const sizes = await run(sizesQuery(organisation, listing, wanted));
    const fittingByBytes = account.fitting(sizes.map(([bytes]) => Number(bytes)));
    if (fittingByBytes < sizes.length) fitting = fittingByBytes;
  }
  const rows = fitting === 0 ? [] : await run(rowsQuery(organisation, listing, fitting));
  return { rows: rows.map((row) => rowOf(table, row)), hasMore: fitting < wanted };
}

/** Returns the query for the last position of a step. The query reads only the index. */
function stepEndQuery(organisation: OrganisationNumber, listing: Listing): Statement {
  const ordered = listing.order.map((column) => listing.table.columns.find(({ name }) => name === column)!);
  const step = selection('step end', ordered.map(selectedColumn), organisation, { ...listing, inRow: [] });
  return { ...step, text: `${step.text} LIMIT 1 OFFSET ${STEP_ENTRIES}` };
}

function sizesQuery(organisation: OrganisationNumber, listing: Listing, limit: number): Statement {
  return limited(selection('sizes', [sizeSql(listing.table)], organisation, listing), limit);
}

/** Returns SQL for the approximate size of a row in bytes. */
function sizeSql({ columns }: Table): string {
  const texts = columns.filter(isLong);
  const othersBytes = (columns.length - texts.length) * SHORT_VALUE_BYTES;
  return [othersBytes, ...texts.map(({ name }) => `coalesce(octet_length(${quoted(name)}), 0)`)].join(' + ');
}

function rowsQuery(organisation: OrganisationNumber, listing: Listing, limit: number): Statement {
  return limited(selection('rows', listing.table.columns.map(selectedColumn), organisation, listing), limit);
}

function limited(statement: Statement, limit: number): Statement {
  const values = [...statement.values, limit];
  return { ...statement, text: `${statement.text} LIMIT $${values.length}`, values };
}

function selection(
  purpose: string,
  selected: readonly string[],
  organisation: OrganisationNumber,
  listing: Listing,
): Statement {
  const { table, order, isDescending, inIndex, inRow, begin, end } = listing;
  const conditions: string[] = [];
  const values: unknown[] = [organisation];
  const typeOf = (field: string) => codecs[table.columns.find(({ name }) => name === field)!.kind].type;
  const given = (field: string, value: unknown) => `$${values.push(value)}::${typeOf(field)}`;
  for (const [field, value] of inIndex) {
    const indexed = isIndexedInPart(table, field) ? indexedPart : (sql: string) => sql;
    conditions.push(`${indexed(quoted(field))} = ${indexed(given(field, value))}`);
  }
  for (const [field, value] of inRow) {
    conditions.push(`${quoted(field)} ${value === null ? 'IS NULL' : `= ${given(field, value)}`}`);
  }
  for (const bound of [begin, end]) {
    if (bound !== null) conditions.push(boundSql(bound, given));
  }
  const direction = isDescending ? 'DESC' : 'ASC';
  const text = `SELECT ${selected.join(', ')} FROM ${quoted(table.name)} WHERE "organisation" = $1
    ${conditions.map((condition) => `AND ${condition}`).join(' ')}
    ORDER BY ${order.map((column) => `${quoted(column)} ${direction}`).join(', ')}`;
  // Statements that use an index other than the primary key get no name: their filters have too many combinations for
  // each connection to keep a plan for each.
  if (listing.index !== null) return { text, values };
  const parts = [begin && 'further', end && 'step', inRow.length > 0 && 'filtered'].filter(Boolean);
  return { name: [purpose, table.name, ...parts].join(' '), text, values };
}

function boundSql(
  { columns, test, values }: Bound,
  given: (field: string, value: unknown) => string,
): string {
  const places = columns.map((column, position) => given(column, values[position]));
  return `(${quotedList(columns)}) ${test} (${places.join(', ')})`;
}

function isLong({ kind }: Column): boolean {
  return codecs[kind].isLong;
}
