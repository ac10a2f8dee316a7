// A connection that writes, set up for durable commits of many rows with random keys.

import { DatabaseSync } from 'node:sqlite';
import { catalogueTables } from '../tables.ts';
import { prepareDatabase } from './migrations.ts';

/**
 * For the pages that are read again: the key index of half a million rows, or the inner pages of the indexes of many
 * million. What a group of rows has dirtied stays in memory beyond it until the commit, see cache_spill below.
 */
const PAGE_CACHE_KIB = 40 * 1024;

/** The tables are there, and up to date. Its user has to keep the write-ahead log in bounds. */
export function openForWriting(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: 0 });
  prepareDatabase(database, path, catalogueTables);
  // Random keys dirty a page of the key index each. Pages written to the log for want of room are read back and written
  // again: without cache_spill a group takes as many pages as it has rows, and no more, for as long as it is written.
  database.exec(`PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -${PAGE_CACHE_KIB};
    PRAGMA cache_spill = OFF;`);
  return database;
}
