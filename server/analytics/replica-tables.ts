// The tables of a replica: one per type, as the catalogue declares it, with DuckDB's own types, the ledger's entries as
// `uploads`, and the members of the segments.

import type { KindName } from '@headgate/catalogue/kinds/kind.ts';
import { type UploadTypeName, uploadTypeNames } from '@headgate/catalogue/record-types.ts';
import { catalogueTables, tableOf } from '../store/tables.ts';

export interface ReplicaColumn {
  readonly name: string;
  /** A type of DuckDB. */
  readonly type: string;
}

export interface ReplicaTable {
  readonly name: string;
  /** The columns that identify a row. Records have one. */
  readonly key: readonly string[];
  readonly columns: readonly ReplicaColumn[];
}

/** DuckDB's type of each kind. */
export const columnTypes: Readonly<Record<KindName, string>> = {
  uuid: 'UUID',
  'date-time': 'TIMESTAMPTZ',
  date: 'DATE',
  region: 'VARCHAR',
  text: 'VARCHAR',
  number: 'DOUBLE',
  boolean: 'BOOLEAN',
  choice: 'VARCHAR',
  'event-timestamp': 'VARCHAR',
};

/** The table of each type that can be uploaded. */
export const recordTables: ReadonlyMap<UploadTypeName, ReplicaTable> = new Map(
  uploadTypeNames.map((type) => {
    const { name, key, columns } = tableOf(catalogueTables, type);
    const replicated = columns.map((column) => ({ name: column.name, type: columnTypes[column.kind] }));
    return [type, { name, key: [key], columns: replicated }];
  }),
);

/** The ledger's entries. */
export const uploadsTable: ReplicaTable = {
  name: 'uploads',
  key: ['seq'],
  columns: [
    { name: 'seq', type: 'BIGINT' },
    { name: 'request_id', type: 'UUID' },
    { name: 'type', type: 'VARCHAR' },
    { name: 'key_id', type: 'VARCHAR' },
    { name: 'received_at', type: 'TIMESTAMPTZ' },
    { name: 'status', type: 'VARCHAR' },
    { name: 'received', type: 'BIGINT' },
    { name: 'created', type: 'BIGINT' },
    { name: 'updated', type: 'BIGINT' },
    { name: 'unchanged', type: 'BIGINT' },
    { name: 'rejected', type: 'BIGINT' },
    { name: 'bytes', type: 'BIGINT' },
    { name: 'ms', type: 'BIGINT' },
  ],
};

/** The members of all segments, as of their last evaluation. */
export const segmentMembersTable: ReplicaTable = {
  name: 'segment_members',
  key: ['segment', 'customer_id'],
  columns: [
    { name: 'segment', type: 'VARCHAR' },
    { name: 'customer_id', type: 'UUID' },
    { name: 'since', type: 'TIMESTAMPTZ' },
  ],
};

/** Everything that a query can read. */
export const replicaTables: readonly ReplicaTable[] = [
  ...recordTables.values(),
  uploadsTable,
  segmentMembersTable,
];

export function createReplicaTableSql({ name, key, columns }: ReplicaTable): string {
  const definitions = columns.map((column) => {
    const definition = `"${column.name}" ${column.type}`;
    // A first build inserts the rows in the order of their ids. DuckDB would compress these a little, and then take 15
    // times as long to read them.
    return column.type === 'UUID' && key.includes(column.name)
      ? `${definition} USING COMPRESSION uncompressed`
      : definition;
  });
  return `CREATE TABLE "${name}" (${definitions.join(', ')})`;
}

/**
 * Returns a query for rows that are given column by column, each column as a JSON array. The values come from a table,
 * because DuckDB would compute an expression of constants with a slow interpreter first.
 */
export function rowsSql(columns: readonly { readonly type: string }[]): string {
  const values = columns.map(({ type }, at) => `unnest(from_json_strict(column${at}, '["${type}"]'))`);
  const names = columns.map((_, at) => `column${at}`);
  return `SELECT ${values.join(', ')} FROM (VALUES (${columns.map(() => '?').join(', ')})) AS given(${names.join(', ')})`;
}
