// Caches the prepared statements of a connection, and reads their rows.

import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';

/** The cache is cleared at this size, because filters have too many combinations to keep a statement for each. */
const MOST_PREPARED_STATEMENTS = 500;

export type Prepare = (sql: string) => StatementSync;

export function preparer(database: DatabaseSync): Prepare {
  const prepared = new Map<string, StatementSync>();
  return (sql) => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    if (prepared.size >= MOST_PREPARED_STATEMENTS) prepared.clear();
    const fresh = database.prepare(sql);
    prepared.set(sql, fresh);
    return fresh;
  };
}

/** Returns the rows of a query as arrays. */
export function arraysOf(
  prepare: Prepare,
  sql: string,
  values: readonly SQLInputValue[],
): Iterable<SQLOutputValue[]> {
  const select = prepare(sql);
  select.setReturnArrays(true);
  return select.iterate(...values) as unknown as Iterable<SQLOutputValue[]>;
}
