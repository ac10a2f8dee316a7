// The SQL that creates the tables of records and interactions, with plain SQL types that any tool can read.

import { type Column, isNotNull, quoted, type Table } from '../tables.ts';
import { codecs, toColumn } from './codecs.ts';

/** A column as a file defines it. */
export interface ColumnDefinition {
  readonly name: string;
  readonly type: string;
  /** The SQL text of its default. Rows that are older than the column have it as their value. */
  readonly defaultSql: string | null;
}

/**
 * Creates an ordinary rowid table. With random keys it takes rows nearly twice as fast as a WITHOUT ROWID table,
 * because only the narrow key index is written at random places.
 */
export function createTableSql(table: Table): string {
  const organisation = { name: 'organisation', type: 'INTEGER', defaultSql: null };
  const declared = table.columns.map(({ name, kind }) => ({
    name,
    type: codecs[kind].type,
    defaultSql: null,
  }));
  return tableSql(table, [organisation, ...declared]);
}

function tableSql(table: Table, columns: readonly ColumnDefinition[]): string {
  const definitions = columns.map(({ name, type, defaultSql }) => {
    const constraint = isNotNull(table, name) ? ' NOT NULL' : '';
    return `${quoted(name)} ${type}${constraint}${defaultSql === null ? '' : ` DEFAULT ${defaultSql}`}`;
  });
  definitions.push(`PRIMARY KEY ("organisation", ${quoted(table.key)})`);
  return `CREATE TABLE ${quoted(table.name)} (\n  ${definitions.join(',\n  ')}\n) STRICT`;
}

/** Adds a field that was declared later. Older rows get the value that omitting the field means. */
export function addColumnSql(table: Table, { name, kind, omitted }: Column): string {
  const whenOmitted = omitted === null ? '' : ` DEFAULT ${toColumn(kind, omitted)}`;
  return `ALTER TABLE ${quoted(table.name)} ADD COLUMN ${quoted(name)} ${codecs[kind].type}${whenOmitted}`;
}

/** Replaces the table's definition, with the columns that it has and the constraints that it should have. */
export function redefineTableSql(table: Table, columns: readonly ColumnDefinition[]): string {
  const sql = tableSql(table, columns).replaceAll("'", "''");
  return `UPDATE sqlite_schema SET sql = '${sql}' WHERE type = 'table' AND name = '${table.name}'`;
}
