// Real replicas in memory for the tests.

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { Failure } from '../../../failure.ts';
import { createReplicaTableSql, recordTables } from '../../replica-tables.ts';
import type { Statement } from '../sql-params.ts';
import type { Records, Row } from './evaluation.ts';

export class TestReplica {
  readonly #connection: DuckDBConnection;

  private constructor(connection: DuckDBConnection) {
    this.#connection = connection;
  }

  /** Opens an empty replica with the restrictions that a replica has in production. */
  static async open(): Promise<TestReplica> {
    const instance = await DuckDBInstance.create(':memory:', {
      threads: '1',
      enable_external_access: 'false',
    });
    const connection = await instance.connect();
    // Results must not depend on the time zone of the server.
    await connection.run("SET TimeZone = 'Pacific/Auckland'");
    await connection.run('SET lock_configuration = true');
    for (const table of recordTables.values()) await connection.run(createReplicaTableSql(table));
    return new TestReplica(connection);
  }

  /** Replaces everything in the replica. Columns that a record does not have are null. */
  async load(records: Partial<Records>): Promise<void> {
    for (const [type, { name, columns }] of recordTables) {
      await this.#connection.run(`DELETE FROM "${name}"`);
      const rows: readonly Row[] = records[type] ?? [];
      if (rows.length === 0) continue;
      const shape = JSON.stringify([Object.fromEntries(columns.map((column) => [column.name, column.type]))]);
      await this.#connection.run(
        `INSERT INTO "${name}" BY NAME SELECT unnest(from_json($1, '${shape}'), max_depth := 2)`,
        [JSON.stringify(rows)],
      );
    }
  }

  async rows(statement: Statement | Failure): Promise<readonly (readonly unknown[])[]> {
    if (statement instanceof Failure) throw new Error(statement.reason);
    const result = await this.#connection.runAndReadAll(statement.sql, [...statement.params]);
    return result.getRowsJson();
  }

  close(): void {
    this.#connection.closeSync();
  }
}
