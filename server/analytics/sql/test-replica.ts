// Opens a replica with a few records in a temporary folder, for tests.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { openReplicaDatabase } from '../duckdb.ts';
import { createReplicaTableSql, replicaTables } from '../replica-tables.ts';

export const tableNames: readonly string[] = replicaTables.map((table) => table.name);

export interface TestReplica {
  readonly folder: string;
  readonly exportFolder: string;
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
  close(): Promise<void>;
}

/** Opens a replica whose tables are those of every replica. */
export async function openTestReplica(memoryMb = 300): Promise<TestReplica> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-replica-'));
  const temporaryFolder = join(folder, 'temporary');
  const exportFolder = join(folder, "the exports' folder");
  await mkdir(temporaryFolder);
  await mkdir(exportFolder);
  const instance = await openReplicaDatabase(join(folder, 'replica.duckdb'), {
    memoryMb,
    threads: 2,
    temporaryFolder,
    temporaryMb: 50,
    exportFolder,
  });
  const connection = await instance.connect();
  for (const table of replicaTables) await connection.run(createReplicaTableSql(table));
  await connection.run(`
    INSERT INTO customers BY NAME
    SELECT uuid() AS customer_id, uuid() AS user_id, ['DE', 'AT', 'NL'][i % 3 + 1] AS region,
      DATE '2000-01-01' + i::INTEGER AS birthdate, now() - to_days(i::INTEGER) AS created, i % 10 = 0 AS is_deleted
    FROM range(300) t(i)`);
  await connection.run(`
    INSERT INTO shops BY NAME
    SELECT uuid() AS shop_id, 'Shop ' || i AS name, 'DE' AS region, now() AS created, false AS is_deleted
    FROM range(10) t(i)`);
  await connection.run(`
    INSERT INTO transactions BY NAME
    SELECT uuid() AS transaction_id, shop_id, customer_id AS student_id, 'DE' AS region, 1.5 AS savings,
      10.25 + row_number() OVER () % 7 AS amount, customers.created, false AS is_deleted
    FROM customers, shops`);
  return {
    folder,
    exportFolder,
    instance,
    connection,
    async close() {
      connection.disconnectSync();
      instance.closeSync();
      await rm(folder, { recursive: true });
    },
  };
}
