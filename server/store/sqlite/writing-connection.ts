// A connection that writes, set up for durable commits of many rows with random keys.

import { DatabaseSync } from 'node:sqlite';
import { catalogueTables } from '../tables.ts';
import { prepareDatabase } from './migrations.ts';

/**
 * Random keys touch a page of the key index each. 64 MiB hold the pages that a full group of rows dirties,
 * which would otherwise be written to the log before the commit and again at it, and the inner pages of the
 * indexes of many million rows.
 */
const PAGE_CACHE_KIB = 64 * 1024;

/** The tables are there, and up to date. Its user has to keep the write-ahead log in bounds. */
export function openForWriting(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: 0 });
  prepareDatabase(database, path, catalogueTables);
  database.exec(`PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -${PAGE_CACHE_KIB};`);
  return database;
}
