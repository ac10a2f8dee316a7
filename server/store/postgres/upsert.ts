// Rows into a table: copied where all of them are new, otherwise merged in one statement, and what became of each.

import type { OrganisationNumber, Row, Tally } from '../rows.ts';
import { quoted, quotedList, type Table } from '../tables.ts';
import { codecs } from './codecs.ts';
import type { Run, Session } from './connections.ts';
import { arrayOf, copyTextOf } from './row-text.ts';
import { ORGANISATION_TYPE } from './schema.ts';

export interface OwnedRow {
  readonly organisation: OrganisationNumber;
  readonly row: Row;
}

/** What became of a row. Identical to what is stored, or older than it: `unchanged`. */
export type RowOutcome = keyof Tally;

export function tallyOf(outcomes: readonly RowOutcome[]): Tally {
  const tally = { created: 0, updated: 0, unchanged: 0 };
  for (const outcome of outcomes) tally[outcome]++;
  return tally;
}

/** In the order of the rows. No id may occur twice in one organisation. */
export async function upsert(
  run: Run,
  table: Table,
  owned: readonly OwnedRow[],
): Promise<readonly RowOutcome[]> {
  if (owned.length === 0) return [];
  const keyPosition = table.columns.findIndex(({ name }) => name === table.key);
  // Rows are locked in the order of the statement: where all lock in one order, none waits in a circle.
  const sorted = owned.toSorted(
    (a, b) => a.organisation - b.organisation || (a.row[keyPosition]! < b.row[keyPosition]! ? -1 : 1),
  );
  const rows = sorted.map(({ row }) => row);
  checkWidths(table, rows);
  const returned = await run({
    name: `upsert ${table.name}`,
    text: upsertSql(table),
    values: [
      `{${sorted.map(({ organisation }) => organisation).join(',')}}`,
      ...table.columns.map(({ kind }, position) => arrayOf(rows, position, kind)),
    ],
  });
  const outcomes = new Map<string, RowOutcome>();
  for (const [organisation, key, isNew] of returned) {
    outcomes.set(`${organisation} ${key}`, isNew === 't' ? 'created' : 'updated');
  }
  return owned.map(
    ({ organisation, row }) => outcomes.get(`${organisation} ${row[keyPosition]}`) ?? 'unchanged',
  );
}

function checkWidths({ name, columns }: Table, rows: readonly Row[]): void {
  for (const { length } of rows) {
    if (length !== columns.length)
      throw new Error(`a row for ${name} has ${length} values, not ${columns.length}`);
  }
}

/** From so many rows on, asking whether one is there and copying takes less time than being ready to merge. */
const COPIED_FROM_ROWS = 100;

export function areWorthCopying(rows: readonly Row[]): boolean {
  return rows.length >= COPIED_FROM_ROWS;
}

/**
 * Rows of one organisation that are all new, copied in half the time of an upsert. False, and nothing is stored,
 * where one is there already. Within a transaction that has to be undone: the copy may have failed.
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
    values: [organisation, arrayOf(rows, keyPosition, 'uuid')],
  });
  if (known.length > 0) return false;
  // In the order of their keys, as everywhere: two that copy the same rows wait for each other, not in a circle.
  const sorted = rows.toSorted((a, b) => (a[keyPosition]! < b[keyPosition]! ? -1 : 1));
  return copy({
    text: `COPY ${quoted(name)} (${quotedList(['organisation', ...columns.map((column) => column.name)])}) FROM STDIN`,
    rows: Buffer.from(copyTextOf(table, organisation, sorted)),
  });
}

const statements = new Map<Table, string>();

function upsertSql(table: Table): string {
  const known = statements.get(table) ?? buildUpsertSql(table);
  statements.set(table, known);
  return known;
}

/**
 * Changes a row only where it differs and the incoming one is not older; what is left alone is not returned.
 * A row that this statement has made has no `xmax`. Nothing here is beyond what Citus can do with a
 * distributed table.
 */
function buildUpsertSql({ name, key, columns }: Table): string {
  const names = columns.map((column) => column.name);
  const values = names.filter((column) => column !== key);
  const stored = (column: string): string => `stored.${quoted(column)}`;
  const incoming = (column: string): string => `excluded.${quoted(column)}`;
  const isNotOlder = names.includes('updated')
    ? `(${stored('updated')} IS NULL OR ${incoming('updated')} IS NULL
        OR ${incoming('updated')} >= ${stored('updated')}) AND`
    : '';
  const arrays = columns.map(({ kind }, position) => `$${position + 2}::${codecs[kind].type}[]`);
  const all = quotedList(['organisation', ...names]);
  return `INSERT INTO ${quoted(name)} AS stored (${all})
    SELECT ${all} FROM unnest($1::${ORGANISATION_TYPE}[], ${arrays.join(', ')}) AS sent (${all})
    ON CONFLICT ("organisation", ${quoted(key)}) DO UPDATE
      SET ${values.map((column) => `${quoted(column)} = ${incoming(column)}`).join(', ')}
      WHERE ${isNotOlder} (${values.map(stored).join(', ')}) IS DISTINCT FROM (${values.map(incoming).join(', ')})
    RETURNING "organisation", ${quoted(key)}, xmax = 0`;
}
