// Writes rows to a table. If all rows are new, they are copied. Otherwise one statement merges them and returns the
// outcome of each row.

import type { OrganisationNumber, Row, Tally } from '../rows.ts';
import { quoted, quotedList, type Table } from '../tables.ts';
import { codecs } from './codecs.ts';
import type { Run, Session, Statement } from './connections.ts';
import { arrayOf, copyTextOf } from './row-text.ts';
import { ORGANISATION_TYPE } from './schema.ts';

export interface OwnedRow {
  readonly organisation: OrganisationNumber;
  readonly row: Row;
}

/** The outcome of a row. It is `unchanged` if the row is identical to the stored one, or older. */
export type RowOutcome = keyof Tally;

export function tallyOf(outcomes: readonly RowOutcome[]): Tally {
  const tally = { created: 0, updated: 0, unchanged: 0 };
  for (const outcome of outcomes) tally[outcome]++;
  return tally;
}

/**
 * Merges the rows and returns their outcomes in the same order. No id may occur twice among the rows of one
 * organisation, unless the table is insert-only.
 */
export async function upsert(
  run: Run,
  table: Table,
  owned: readonly OwnedRow[],
): Promise<readonly RowOutcome[]> {
  if (owned.length === 0) return [];
  const keyPosition = table.columns.findIndex(({ name }) => name === table.key);
  const values = await sentValues(table, owned);
  const returned = await run({ name: `upsert ${table.name}`, text: upsertSql(table), values });
  const outcomes = new Map<string, RowOutcome>();
  for (const [organisation, key, isNew] of returned) {
    outcomes.set(`${organisation} ${key}`, isNew === 't' ? 'created' : 'updated');
  }
  return owned.map(({ organisation, row }) => {
    const key = `${organisation} ${row[keyPosition]}`;
    const outcome = outcomes.get(key) ?? 'unchanged';
    // If an insert-only table gets two rows with the same id, only one of them is stored.
    outcomes.delete(key);
    return outcome;
  });
}

/**
 * Returns a statement that inserts the rows and returns 1 for each. It fails with a RowExists if one of them is stored.
 * If all of them are new, it takes less time than an upsert.
 */
export async function insertion(table: Table, owned: readonly OwnedRow[]): Promise<Statement> {
  return {
    name: `insert ${table.name}`,
    text: `${insertSql(table)} RETURNING 1`,
    values: await sentValues(table, owned),
  };
}

/** Returns the values of the parameters of `insertSql`. */
async function sentValues(table: Table, owned: readonly OwnedRow[]): Promise<readonly unknown[]> {
  const keyPosition = table.columns.findIndex(({ name }) => name === table.key);
  // Rows are locked in the order of the statement. If all statements use the same order, they cannot deadlock.
  const sorted = owned.toSorted(
    (a, b) => a.organisation - b.organisation || (a.row[keyPosition]! < b.row[keyPosition]! ? -1 : 1),
  );
  const rows = sorted.map(({ row }) => row);
  checkWidths(table, rows);
  return [`{${sorted.map(({ organisation }) => organisation).join(',')}}`, ...(await arraysOf(table, rows))];
}

function checkWidths({ name, columns }: Table, rows: readonly Row[]): void {
  for (const { length } of rows) {
    if (length !== columns.length)
      throw new Error(`a row for ${name} has ${length} values, not ${columns.length}`);
  }
}

/** From this number of rows on, it is faster to check that none of them exists and to copy them than to upsert them. */
export const COPIED_FROM_ROWS = 100;

/**
 * Copies the rows of one organisation if all of them are new, which takes half the time of an upsert. Returns false and
 * stores nothing if one of the rows exists. Throws a RefusedCopy if one of them is stored by another call meanwhile.
 */
export async function copyIfNew(
  { run, copy }: Session,
  table: Table,
  organisation: OrganisationNumber,
  rows: readonly Row[],
): Promise<boolean> {
  const { name, key, columns } = table;
  const keyPosition = columns.findIndex((column) => column.name === key);
  checkWidths(table, rows);
  const known = await run({
    name: `any of ${name}`,
    text: `SELECT 1 FROM ${quoted(name)}
      WHERE "organisation" = $1 AND ${quoted(key)} = ANY ($2::${codecs.uuid.type}[]) LIMIT 1`,
    values: [organisation, await arrayOf(rows, keyPosition, 'uuid')],
  });
  if (known.length > 0) return false;
  // Sorts by key, as all writes do, so that two calls that copy the same rows cannot deadlock.
  const sorted = rows.toSorted((a, b) => (a[keyPosition]! < b[keyPosition]! ? -1 : 1));
  const names = quotedList(['organisation', ...columns.map((column) => column.name)]);
  const copied = await copyTextOf(table, organisation, sorted);
  await copy(`COPY ${quoted(name)} (${names}) FROM STDIN`, copied);
  return true;
}

const statements = new Map<Table, string>();

function upsertSql(table: Table): string {
  const known = statements.get(table) ?? buildUpsertSql(table);
  statements.set(table, known);
  return known;
}

/**
 * Returns the statement that upserts rows. It changes a stored row only if the incoming row differs and is not older,
 * and never in a table that is insert-only.
 * It does not return unchanged rows. In a returned row, `xmax` is 0 if the statement has inserted the row. Citus
 * supports all of this for distributed tables.
 */
function buildUpsertSql(table: Table): string {
  const { key, columns } = table;
  const names = columns.map((column) => column.name);
  const values = names.filter((column) => column !== key);
  const update = `UPDATE
      SET ${values.map((column) => `${quoted(column)} = excluded.${quoted(column)}`).join(', ')}
      WHERE ${isReplacedSql(table)}`;
  return `${insertSql(table)}
    ON CONFLICT ("organisation", ${quoted(key)}) DO ${table.isInsertOnly ? 'NOTHING' : update}
    RETURNING "organisation", ${quoted(key)}, xmax = 0`;
}

/** Returns the statement that inserts rows. Its first parameter is an array with their organisations. */
function insertSql(table: Table): string {
  const all = quotedList(['organisation', ...table.columns.map(({ name }) => name)]);
  return `INSERT INTO ${quoted(table.name)} AS stored (${all})
    SELECT ${all} FROM unnest($1::${ORGANISATION_TYPE}[], ${arraysSql(table)}) AS sent (${all})`;
}

/** Returns the SQL of the parameters from $2 on. Each parameter is an array with the values of one column. */
function arraysSql({ columns }: Table): string {
  return columns.map(({ kind }, position) => `$${position + 2}::${codecs[kind].type}[]`).join(', ');
}

/** Returns the values of these parameters. */
async function arraysOf({ columns }: Table, rows: readonly Row[]): Promise<readonly unknown[]> {
  const arrays: unknown[] = [];
  for (const [position, { kind }] of columns.entries()) arrays.push(await arrayOf(rows, position, kind));
  return arrays;
}

/** Returns SQL that is true if the incoming row, `excluded`, replaces the stored one. */
function isReplacedSql({ key, columns, isInsertOnly }: Table): string {
  if (isInsertOnly) return 'false';
  const values = columns.map(({ name }) => name).filter((name) => name !== key);
  const stored = (column: string): string => `stored.${quoted(column)}`;
  const incoming = (column: string): string => `excluded.${quoted(column)}`;
  const isNotOlder = values.includes('updated')
    ? `(${stored('updated')} IS NULL OR ${incoming('updated')} IS NULL
        OR ${incoming('updated')} >= ${stored('updated')}) AND`
    : '';
  return `${isNotOlder} (${values.map(stored).join(', ')}) IS DISTINCT FROM (${values.map(incoming).join(', ')})`;
}

/** Returns the outcomes that an upsert of the rows would have, in the same order, without writing anything. */
export async function outcomesOfUpsert(
  run: Run,
  table: Table,
  organisation: OrganisationNumber,
  rows: readonly Row[],
): Promise<readonly RowOutcome[]> {
  if (rows.length === 0) return [];
  const { name, key, columns } = table;
  checkWidths(table, rows);
  const stored = await run({
    name: `compare ${name}`,
    text: `SELECT stored.${quoted(key)}, ${isReplacedSql(table)}
      FROM unnest(${arraysSql(table)}) AS excluded (${quotedList(columns.map((column) => column.name))})
      JOIN ${quoted(name)} AS stored
        ON stored."organisation" = $1 AND stored.${quoted(key)} = excluded.${quoted(key)}`,
    values: [organisation, ...(await arraysOf(table, rows))],
  });
  const isReplaced = new Map(stored.map(([id, replaced]) => [id, replaced === 't']));
  const keyPosition = columns.findIndex((column) => column.name === key);
  return rows.map((row) => {
    const replaced = isReplaced.get(row[keyPosition] as string);
    if (replaced === undefined) return 'created';
    return replaced ? 'updated' : 'unchanged';
  });
}
