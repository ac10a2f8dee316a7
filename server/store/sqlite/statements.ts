// Statements that a connection prepares once.

import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** Filters come in so many combinations that not every statement can be kept. */
const MOST_PREPARED_STATEMENTS = 500;

/** Returns the prepared statement. */
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
