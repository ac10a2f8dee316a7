// Creates an empty replica in memory, with the restrictions of a real one, and inserts rows into it, for tests.

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { createReplicaTableSql, replicaTables } from '../replica-tables.ts';

export type TestRow = Readonly<Record<string, string | number | boolean | null>>;

export async function newTestReplica(): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '1',
    enable_external_access: 'false',
  });
  const connection = await instance.connect();
  // No result may depend on the time zone of the session.
  await connection.run(`SET TimeZone = 'Asia/Tokyo'`);
  await connection.run('SET lock_configuration = true');
  for (const table of replicaTables) await connection.run(createReplicaTableSql(table));
  return connection;
}

/** Replaces all rows of a table. Columns that no row has are null. */
export async function setRows(
  connection: DuckDBConnection,
  table: string,
  rows: readonly TestRow[],
): Promise<void> {
  await connection.run(`DELETE FROM "${table}"`);
  if (rows.length === 0) return;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const tuples = rows.map((row) => `(${names.map((name) => literal(row[name] ?? null)).join(', ')})`);
  const columns = names.map((name) => `"${name}"`).join(', ');
  await connection.run(`INSERT INTO "${table}" (${columns}) VALUES ${tuples.join(', ')}`);
}

function literal(value: TestRow[string]): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
}
