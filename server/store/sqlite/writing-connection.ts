// A connection that writes, set up for durable commits of many rows with random keys.

import { DatabaseSync } from 'node:sqlite';
import { catalogueTables } from '../tables.ts';
import { loadedSqlite, refuseUnsafeSqlite } from './library.ts';
import { prepareDatabase } from './migrations.ts';

/** For pages that are used again: the key index of half a million rows, or the inner pages of those of many million. */
const PAGE_CACHE_KIB = 40 * 1024;
/**
 * What a transaction has changed stays in memory up to this. Random keys change a page of the key index each, so a full
 * group of rows needs most of it; pages written to the log before the commit are read back and written again.
 */
const CHANGED_PAGES_KIB = 96 * 1024;

/** The tables are there, and up to date. Its user has to keep the write-ahead log in bounds. */
export function openForWriting(path: string, sqliteVersion = loadedSqlite()): DatabaseSync {
  refuseUnsafeSqlite(sqliteVersion);
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: 0 });
  prepareDatabase(database, path, catalogueTables);
  database.exec(`PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -${PAGE_CACHE_KIB};
    PRAGMA cache_spill = -${CHANGED_PAGES_KIB};`);
  return database;
}
