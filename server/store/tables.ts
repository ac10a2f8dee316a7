// Derives the tables of records and interactions from the catalogue: one table per record type, one column per declared
// field. Every store uses this layout, with its own column types.

import type { Catalogue, Fields } from '@headgate/catalogue/declaration.ts';
import type { ColumnValue, KindName } from '@headgate/catalogue/kinds/kind.ts';
import {
  INTERACTIONS,
  recordTypes,
  storedInteraction,
  type UploadTypeName,
} from '@headgate/catalogue/record-types.ts';

export interface Column {
  readonly name: string;
  readonly kind: KindName;
  /** The value that the column gets in rows that were stored before the column existed. */
  readonly omitted: boolean | null;
}

export interface Index {
  readonly name: string;
  readonly columns: readonly string[];
  /** The field by whose value the index groups rows. Null if the index groups rows only by organisation. */
  readonly filter: string | null;
  /** Rows without a value in this column are left out of the index. Null if the index holds all rows. */
  readonly onlyWith: string | null;
}

export interface Table {
  readonly name: string;
  /** The primary key consists of `organisation` and this column. */
  readonly key: string;
  /** The declared fields in the order of their declaration. Every table has the column `organisation` before them. */
  readonly columns: readonly Column[];
  /** Whether stored rows never change. A row whose key is stored is then skipped, even if it differs. */
  readonly isInsertOnly: boolean;
  readonly indexes: readonly Index[];
}

export interface Tables {
  readonly records: ReadonlyMap<string, Table>;
  readonly interactions: Table;
}

export function tablesOf(types: Catalogue, interaction: Fields): Tables {
  return {
    records: new Map(
      Object.entries(types).map(([type, { key, fields }]) => [
        type,
        {
          name: type.replaceAll('-', '_'),
          key,
          columns: columnsOf(fields),
          isInsertOnly: false,
          indexes: [],
        },
      ]),
    ),
    interactions: {
      name: 'interactions',
      key: 'interaction_id',
      columns: columnsOf(interaction),
      isInsertOnly: true,
      indexes: [
        interactionIndex('time', null),
        interactionIndex('student', 'student_id'),
        interactionIndex('user', 'user_id'),
        interactionIndex('item', 'item_id', null),
      ],
    },
  };
}

/**
 * Every index ends in the order in which interactions are listed, so that pages need no sorting. Fields with only a few
 * values have no index, because it would slow down every insert; a list with such a filter reads the rows step by step.
 */
function interactionIndex(by: string, filter: string | null, onlyWith = filter): Index {
  const columns = ['organisation', ...(filter === null ? [] : [filter]), 'occurred_at', 'interaction_id'];
  return { name: `interactions_by_${by}`, columns, filter, onlyWith };
}

/**
 * Returns the index for listing the rows that have the given values: an index that groups rows by one of the given
 * fields, or else the index that groups rows only by organisation.
 */
export function listingIndex({ name, indexes }: Table, equal: Readonly<Record<string, ColumnValue>>): Index {
  const index =
    indexes.find(({ filter }) => filter !== null && (equal[filter] ?? null) !== null) ??
    indexes.find(({ filter }) => filter === null);
  if (index === undefined) throw new Error(`the table ${name} has no index to list it by`);
  return index;
}

export const catalogueTables: Tables = tablesOf(recordTypes, storedInteraction);

export function tablesIn(tables: Tables): readonly Table[] {
  return [...tables.records.values(), tables.interactions];
}

export function tableOf(tables: Tables, type: UploadTypeName): Table {
  const table = type === INTERACTIONS ? tables.interactions : tables.records.get(type);
  if (table === undefined) throw new Error(`there is no record type ${type}`);
  return table;
}

function columnsOf(fields: Fields): readonly Column[] {
  return Object.entries(fields).map(([name, { kind, omitted }]) => ({ name, kind: kind.name, omitted }));
}

/**
 * Returns whether the column is NOT NULL. Only the columns of the primary key are. All other required values are a rule
 * for uploads, and the rule may change while stored records stay. A NOT NULL constraint would then differ between
 * databases created before and after the change.
 */
export function isNotNull({ key }: Table, column: string): boolean {
  return column === key || column === 'organisation';
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quotedList(names: readonly string[]): string {
  return names.map(quoted).join(', ');
}

/** Returns whether an index contains only the beginning of the column's texts. */
export function isIndexedInPart({ columns }: Table, column: string): boolean {
  return columns.some(({ name, kind }) => name === column && kind === 'text');
}

/** `indexedPart` returns the SQL of the beginning of a text. */
export function createIndexSql(
  table: Table,
  { name, columns, onlyWith }: Index,
  indexedPart: (sql: string) => string,
): string {
  const indexed = (column: string): string =>
    isIndexedInPart(table, column) ? `(${indexedPart(quoted(column))})` : quoted(column);
  const condition = onlyWith === null ? '' : ` WHERE ${indexed(onlyWith)} IS NOT NULL`;
  return `CREATE INDEX ${quoted(name)} ON ${quoted(table.name)} (${columns.map(indexed).join(', ')})${condition}`;
}
