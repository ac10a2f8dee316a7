// Declares the part of Drizzle and of its drivers that the textbook service uses, and loads the packages. They are
// installed outside the checkout, so neither the packages nor their types can be imported by name.

import { createRequire } from 'node:module';
import { join } from 'node:path';

export type Row = Readonly<Record<string, string | number | boolean | null>>;

export interface Column {
  primaryKey(): Column;
  notNull(): Column;
  default(value: boolean): Column;
  references(column: () => Column): Column;
}

export type Columns = Readonly<Record<string, Column>>;

interface Condition {
  readonly isCondition: never;
}

interface Statement extends PromiseLike<unknown> {
  /** Runs the statement synchronously. Exists only on SQLite. */
  run(): void;
}

export interface Queries {
  insert(table: Columns): {
    values(row: Row): { onConflictDoUpdate(conflict: { target: Column; set: Row }): Statement };
  };
  select(columns: Columns): {
    from(table: Columns): { where(condition: Condition): PromiseLike<readonly Row[]> };
  };
}

interface SqliteDriver {
  pragma(setting: string): void;
  exec(sql: string): void;
  close(): void;
}

interface PostgresDriver {
  query(sql: string): Promise<void>;
  end(): Promise<void>;
}

type MakeColumn<Options = never> = (options?: Options) => Column;
type MakeTable = (name: string, columns: Columns) => Columns;

interface Modules {
  'drizzle-orm': { inArray(column: Column, values: readonly string[]): Condition };
  'drizzle-orm/sqlite-core': {
    sqliteTable: MakeTable;
    text: MakeColumn;
    real: MakeColumn;
    integer: MakeColumn<{ mode: 'boolean' }>;
  };
  'drizzle-orm/pg-core': {
    pgTable: MakeTable;
    uuid: MakeColumn;
    text: MakeColumn;
    doublePrecision: MakeColumn;
    boolean: MakeColumn;
    timestamp: MakeColumn<{ withTimezone: true; mode: 'string' }>;
  };
  'drizzle-orm/better-sqlite3': {
    drizzle(driver: SqliteDriver): Queries & { transaction(work: (queries: Queries) => void): void };
  };
  'drizzle-orm/node-postgres': {
    drizzle(
      driver: PostgresDriver,
    ): Queries & { transaction(work: (queries: Queries) => Promise<void>): Promise<void> };
  };
  'better-sqlite3': new (path: string) => SqliteDriver;
  pg: { Pool: new (options: { connectionString: string; max: number }) => PostgresDriver };
}

export type Load = <Name extends keyof Modules>(name: Name) => Modules[Name];

export function loaderFrom(folder: string): Load {
  return createRequire(join(folder, 'package.json')) as Load;
}
