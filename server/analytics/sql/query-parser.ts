// Parses queries in a database of DuckDB that has no data, so that a mistake is found without a replica.

import { DuckDBInstance, type DuckDBPreparedStatement } from '@duckdb/node-api';

const settings = {
  threads: '1',
  memory_limit: '256MB',
  errors_as_json: 'true',
  enable_external_access: 'false',
  lock_configuration: 'true',
};

export class QueryParser {
  #statement: Promise<DuckDBPreparedStatement> | null = null;
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Returns the syntax tree of a query as JSON, which also describes a syntax error. Queries are parsed one after the
   * other, because a prepared statement has one set of parameters. Without it, each would take twice as long.
   */
  syntaxTree(sql: string): Promise<string> {
    const parsed = this.#last.then(() => this.#parse(sql));
    this.#last = parsed.catch(() => {});
    return parsed;
  }

  async #parse(sql: string): Promise<string> {
    this.#statement ??= prepareStatement();
    try {
      const statement = await this.#statement;
      statement.bindVarchar(1, sql);
      const rows = await (await statement.run()).getRowsJS();
      return String(rows[0]![0]);
    } catch (error) {
      // After an internal error, the database refuses everything.
      this.#statement = null;
      throw error;
    }
  }
}

async function prepareStatement(): Promise<DuckDBPreparedStatement> {
  const instance = await DuckDBInstance.create(':memory:', settings);
  return (await instance.connect()).prepare('SELECT json_serialize_sql(?::VARCHAR)');
}
