// The SQL that creates the tables of records and interactions, with plain SQL types that any tool can read.

import { type Column, createIndexSql, type Index, isNotNull, quoted, type Table } from '../tables.ts';
import { codecs, toColumn } from './codecs.ts';

/** The definition of a column in a database file. */
export interface ColumnDefinition {
  readonly name: string;
  readonly type: string;
  /**
   * The SQL text of the column's default, or null if it has none. Rows that were stored before the column existed have
   * the default as their value.
   */
  readonly defaultSql: string | null;
}

/**
 * Returns the statement that creates an ordinary rowid table. With random keys, such a table takes rows nearly twice as
 * fast as a WITHOUT ROWID table, because only the narrow key index is written at random places. Long columns come last,
 * because SQLite reads all columns before the one that it needs. Comparing the times of two rows is ten times as fast if
 * no long texts come before them.
 */
export function createTableSql(table: Table): string {
  const organisation = { name: 'organisation', type: 'INTEGER', defaultSql: null };
  const definitions = (isLong: boolean): ColumnDefinition[] =>
    table.columns
      .filter(({ kind }) => codecs[kind].isLong === isLong)
      .map(({ name, kind }) => ({ name, type: codecs[kind].type, defaultSql: null }));
  return tableSql(table, [organisation, ...definitions(false), ...definitions(true)]);
}

function tableSql(table: Table, columns: readonly ColumnDefinition[]): string {
  const definitions = columns.map(({ name, type, defaultSql }) => {
    const constraint = isNotNull(table, name) ? ' NOT NULL' : '';
    return `${quoted(name)} ${type}${constraint}${defaultSql === null ? '' : ` DEFAULT ${defaultSql}`}`;
  });
  definitions.push(`PRIMARY KEY ("organisation", ${quoted(table.key)})`);
  return `CREATE TABLE ${quoted(table.name)} (\n  ${definitions.join(',\n  ')}\n) STRICT`;
}

/**
 * How much of a text an index contains. A character takes up to 4 bytes, and an entry of more than about 1000 bytes takes a
 * page of its own, which makes uploads slow. Fewer characters would not tell apart ids that begin with the same address.
 */
const INDEXED_CHARACTERS = 128;

/** Returns the SQL of what an index contains of a text. */
export function indexedPart(sql: string): string {
  return `substr(${sql}, 1, ${INDEXED_CHARACTERS})`;
}

/**
 * Returns the statement that creates the index without the key. SQLite ends every entry with the rowid, which sorts rows
 * of the same time as well, and inserts take a seventh less time if entries do not contain the key, too.
 */
export function createListIndexSql(table: Table, index: Index): string {
  const columns = index.columns.filter((column) => column !== table.key);
  return createIndexSql(table, { ...index, columns }, indexedPart);
}

/**
 * Returns the statement that adds a field that was declared later. Rows that are already stored get the value that an
 * omitted field has.
 */
export function addColumnSql(table: Table, { name, kind, omitted }: Column): string {
  const whenOmitted = omitted === null ? '' : ` DEFAULT ${toColumn(kind, omitted)}`;
  return `ALTER TABLE ${quoted(table.name)} ADD COLUMN ${quoted(name)} ${codecs[kind].type}${whenOmitted}`;
}

/**
 * Returns the statement that replaces the table's definition. The new definition has the existing columns, with the
 * constraints that they should have.
 */
export function redefineTableSql(table: Table, columns: readonly ColumnDefinition[]): string {
  const sql = tableSql(table, columns).replaceAll("'", "''");
  return `UPDATE sqlite_schema SET sql = '${sql}' WHERE type = 'table' AND name = '${table.name}'`;
}
