// The SQL that creates the tables of records and interactions in PostgreSQL.

import { type Column, isNotNull, quoted, type Table } from '../tables.ts';
import { codecs } from './codecs.ts';

export const ORGANISATION_TYPE = 'integer';

export function createTableSql(table: Table): string {
  const definitions = [
    `"organisation" ${ORGANISATION_TYPE} NOT NULL`,
    ...table.columns.map(
      ({ name, kind }) => `${quoted(name)} ${codecs[kind].type}${isNotNull(table, name) ? ' NOT NULL' : ''}`,
    ),
    `PRIMARY KEY ("organisation", ${quoted(table.key)})`,
  ];
  return `CREATE TABLE ${quoted(table.name)} (\n  ${definitions.join(',\n  ')}\n)`;
}

/**
 * Returns the statement that adds a field that was declared later. Rows that are already stored get the value that an
 * omitted field has.
 */
export function addColumnSql(table: Table, { name, kind, omitted }: Column): string {
  const whenOmitted = omitted === null ? '' : ` DEFAULT ${omitted}`;
  return `ALTER TABLE ${quoted(table.name)} ADD COLUMN ${quoted(name)} ${codecs[kind].type}${whenOmitted}`;
}

/**
 * How much of a text an index contains. Long entries make inserts slow, and PostgreSQL refuses one of more than 2704 bytes.
 */
const INDEXED_CHARACTERS = 256;

/** Returns the SQL of what an index contains of a text. */
export function indexedPart(sql: string): string {
  return `left(${sql}, ${INDEXED_CHARACTERS})`;
}

/**
 * Returns the statement that drops the NOT NULL constraints of the columns. The statement changes only PostgreSQL's own
 * catalog, and reads and writes no rows.
 */
export function dropNotNullSql(table: Table, columns: readonly string[]): string {
  const drops = columns.map((name) => `ALTER COLUMN ${quoted(name)} DROP NOT NULL`);
  return `ALTER TABLE ${quoted(table.name)} ${drops.join(', ')}`;
}
