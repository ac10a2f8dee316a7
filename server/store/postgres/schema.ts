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

/** Adds a field that was declared later. Older rows get the value that omitting the field means. */
export function addColumnSql(table: Table, { name, kind, omitted }: Column): string {
  const whenOmitted = omitted === null ? '' : ` DEFAULT ${omitted}`;
  return `ALTER TABLE ${quoted(table.name)} ADD COLUMN ${quoted(name)} ${codecs[kind].type}${whenOmitted}`;
}

/** Drops the constraints. This changes only the database's catalog; no row is read or written. */
export function dropNotNullSql(table: Table, columns: readonly string[]): string {
  const drops = columns.map((name) => `ALTER COLUMN ${quoted(name)} DROP NOT NULL`);
  return `ALTER TABLE ${quoted(table.name)} ${drops.join(', ')}`;
}
