import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { times } from '../server/store/test-thoroughness.ts';
import { SqliteDatabases } from './databases.ts';

test('a new database holds the requested number of transactions, each with a unique key', async () => {
  const databases = await SqliteDatabases.create();
  for (const rowsPresent of [0, 1000, 50_000, times(300_001, 100_001)]) {
    const { database, remove } = await databases.newDatabase(rowsPresent);
    const reader = new DatabaseSync(database, { readOnly: true });
    const counts = reader
      .prepare(
        `SELECT count(*) AS "rows", count(DISTINCT transaction_id) AS "keys", count(DISTINCT student_id) AS "students"
         FROM transactions`,
      )
      .get();
    const students = Math.min(rowsPresent, 50_000);
    assert.deepEqual({ ...counts }, { rows: rowsPresent, keys: rowsPresent, students });
    reader.close();
    await remove();
  }
});
