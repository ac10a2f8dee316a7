// Parses queries in a database of DuckDB that has no data, so that a mistake is found without a replica.

import { DuckDBInstance, type DuckDBPreparedStatement } from '@duckdb/node-api';

const settings = {
  threads: '1',
  memory_limit: '256MB',
  errors_as_json: 'true',
  enable_external_access: 'false',
  lock_configuration: 'true',
};

/** Opens a database in memory that has access to nothing else. */
export function openWithoutData(): Promise<DuckDBInstance> {
  return DuckDBInstance.create(':memory:', settings);
}

export class QueryParser {
  #instance: Promise<DuckDBInstance> | null = null;
  /** Each has a connection of its own. To prepare a statement takes as long as to parse a query. */
  #unused: DuckDBPreparedStatement[] = [];

  /** Returns the syntax tree of a query as JSON, which also describes a syntax error. */
  async syntaxTree(sql: string): Promise<string> {
    try {
      const statement = this.#unused.pop() ?? (await this.#prepare());
      statement.bindVarchar(1, sql);
      const rows = await (await statement.run()).getRowsJS();
      this.#unused.push(statement);
      return String(rows[0]![0]);
    } catch (error) {
      // After an internal error, the database refuses everything.
      this.#instance = null;
      this.#unused = [];
      throw error;
    }
  }

  async #prepare(): Promise<DuckDBPreparedStatement> {
    this.#instance ??= openWithoutData();
    const connection = await (await this.#instance).connect();
    return connection.prepare('SELECT json_serialize_sql(?::VARCHAR)');
  }
}
