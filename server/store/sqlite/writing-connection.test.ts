import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { StoreUnusable } from '../store.ts';
import { testFolder } from './test-folder.ts';
import { openForWriting } from './writing-connection.ts';

const MIB = 1024 * 1024;
const MORE_THAN_IS_CACHED_MIB = 64;
const MORE_THAN_IS_HELD_MIB = 112;

test('changes of a transaction are held in memory beyond the page cache, up to a limit', (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const database = openForWriting(path);
  t.after(() => database.close());
  const walBytes = (): number => statSync(`${path}-wal`).size;
  const cachedKib = -Number(database.prepare('PRAGMA cache_size').get()?.cache_size);
  assert.ok(cachedKib > 0 && cachedKib < MORE_THAN_IS_CACHED_MIB * 1024, `${cachedKib} KiB`);
  database.exec('CREATE TABLE filling (bytes BLOB)');
  const insert = database.prepare(`INSERT INTO filling VALUES (zeroblob(${MIB}))`);
  const beforeBytes = walBytes();

  database.exec('BEGIN IMMEDIATE');
  for (let written = 0; written < MORE_THAN_IS_CACHED_MIB; written++) insert.run();
  assert.equal(walBytes(), beforeBytes);
  for (let written = MORE_THAN_IS_CACHED_MIB; written < MORE_THAN_IS_HELD_MIB; written++) insert.run();
  assert.ok(walBytes() > beforeBytes);
  database.exec('ROLLBACK');
});

test('with an unsafe version of SQLite no file is created', (t) => {
  const path = join(testFolder(t), 'headgate.db');
  assert.throws(() => openForWriting(path, '3.51.2'), StoreUnusable);
  assert.equal(existsSync(path), false);
});
