// The store of the textbook service. It uses Drizzle, with one upsert per record and one transaction per request.

import type { Columns, Load, Queries, Row } from './drizzle.ts';
import {
  createPostgresTables,
  createSqliteTables,
  idColumns,
  type TableName,
  type Tables,
  tablesOf,
} from './tables.ts';

export interface Store {
  knownShops(shopIds: readonly string[]): Promise<ReadonlySet<string>>;
  upsert(table: TableName, rows: readonly Row[]): Promise<void>;
  close(): Promise<void>;
}

const POOL_CONNECTIONS = 10;

function upsertOf(queries: Queries, columns: Columns, idColumn: string, row: Row) {
  const { [idColumn]: _, ...others } = row;
  return queries.insert(columns).values(row).onConflictDoUpdate({ target: columns[idColumn]!, set: others });
}

async function askKnownShops(
  load: Load,
  queries: Queries,
  { shops }: Tables,
  shopIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { inArray } = load('drizzle-orm');
  const idColumn = shops.shop_id!;
  const found = await queries.select({ id: idColumn }).from(shops).where(inArray(idColumn, shopIds));
  return new Set(found.map(({ id }) => id as string));
}

export function openSqlite(load: Load, path: string): Store {
  const { sqliteTable, text, real, integer } = load('drizzle-orm/sqlite-core');
  const Database = load('better-sqlite3');
  const driver = new Database(path);
  driver.pragma('journal_mode = WAL');
  driver.pragma('synchronous = FULL');
  driver.pragma('foreign_keys = ON');
  driver.exec(createSqliteTables);
  const db = load('drizzle-orm/better-sqlite3').drizzle(driver);
  const boolean = () => integer({ mode: 'boolean' });
  const tables = tablesOf(sqliteTable, { id: text, text, number: real, boolean, time: text });
  return {
    knownShops: (shopIds) => askKnownShops(load, db, tables, shopIds),
    async upsert(table, rows) {
      db.transaction((queries) => {
        for (const row of rows) upsertOf(queries, tables[table], idColumns[table], row).run();
      });
    },
    async close() {
      driver.close();
    },
  };
}

export async function openPostgres(load: Load, url: string): Promise<Store> {
  const { pgTable, uuid, text, doublePrecision, boolean, timestamp } = load('drizzle-orm/pg-core');
  const { Pool } = load('pg');
  const pool = new Pool({ connectionString: url, max: POOL_CONNECTIONS });
  await pool.query(createPostgresTables);
  const db = load('drizzle-orm/node-postgres').drizzle(pool);
  const time = () => timestamp({ withTimezone: true, mode: 'string' });
  const tables = tablesOf(pgTable, { id: uuid, text, number: doublePrecision, boolean, time });
  return {
    knownShops: (shopIds) => askKnownShops(load, db, tables, shopIds),
    async upsert(table, rows) {
      await db.transaction(async (queries) => {
        for (const row of rows) await upsertOf(queries, tables[table], idColumns[table], row);
      });
    },
    close: () => pool.end(),
  };
}
