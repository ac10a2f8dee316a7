import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { testFolder } from './test-folder.ts';
import { openForWriting } from './writing-connection.ts';

const MIB = 1024 * 1024;
/** More than the page cache holds. */
const WRITTEN_MIB = 96;

test('what a transaction changes is written to the log once, at its commit, however much it is', (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const database = openForWriting(path);
  t.after(() => database.close());
  const walBytes = (): number => statSync(`${path}-wal`).size;
  database.exec('CREATE TABLE filling (bytes BLOB)');
  const insert = database.prepare(`INSERT INTO filling VALUES (zeroblob(${MIB}))`);
  const beforeBytes = walBytes();

  database.exec('BEGIN IMMEDIATE');
  for (let count = 0; count < WRITTEN_MIB; count++) insert.run();
  assert.equal(walBytes(), beforeBytes);

  database.exec('COMMIT');
  const writtenMib = (walBytes() - beforeBytes) / MIB;
  assert.ok(
    writtenMib > WRITTEN_MIB && writtenMib < WRITTEN_MIB * 1.05,
    `${writtenMib} MiB for ${WRITTEN_MIB}`,
  );
});
