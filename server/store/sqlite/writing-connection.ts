// Opens the connection that writes, tuned for durable commits of many rows with random keys.

import { DatabaseSync } from 'node:sqlite';
import { catalogueTables } from '../tables.ts';
import { loadedSqlite, refuseUnsafeSqlite } from './library-version.ts';
import { prepareDatabase } from './migrations.ts';

/**
 * The size of the page cache. It holds the key index of half a million rows, or the inner pages of the key indexes of
 * many million rows.
 */
const PAGE_CACHE_KIB = 40 * 1024;
/**
 * Changed pages stay in memory until the commit, up to this size. Each random key changes another page of the key
 * index, so a full group of rows needs most of this memory. Pages beyond this size are written to the log before the
 * commit, and have to be read back and written again.
 */
const CHANGED_PAGES_KIB = 96 * 1024;

/** Opens the database with its tables up to date. The caller has to keep the write-ahead log from growing. */
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
