import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { catalogueTables } from '../tables.ts';
import { prepareDatabase } from './migrations.ts';
import { keepStatistics } from './statistics.ts';
import { testFolder } from './test-folder.ts';

const MANY_ROWS = 100_000;

/** Returns a database with 20,000 transactions of one organisation. */
function filledDatabase(t: TestContext): DatabaseSync {
  const database = new DatabaseSync(join(testFolder(t), 'headgate.db'));
  t.after(() => database.close());
  prepareDatabase(database, 'headgate.db', catalogueTables);
  database.exec(`WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 20000)
    INSERT INTO transactions (organisation, transaction_id, student_id) SELECT 1, n * 7919 % 20011, n % 100 FROM n`);
  return database;
}

function planOfPurchases(database: DatabaseSync): string {
  const plan = database.prepare(`EXPLAIN QUERY PLAN
    SELECT sum(amount) FROM transactions WHERE organisation = 1 AND student_id = '7'`);
  return plan
    .all()
    .map(({ detail }) => detail)
    .join('; ');
}

function failOnTrouble(message: string): never {
  throw new Error(message);
}

describe('statistics', () => {
  test('are made after many rows, and SQLite then no longer reads a whole organisation by its keys', (t) => {
    const database = filledDatabase(t);
    const statistics = keepStatistics(database, failOnTrouble);
    assert.match(planOfPurchases(database), /SEARCH transactions USING INDEX/);
    statistics.keepUpToDate();
    assert.match(planOfPurchases(database), /SEARCH transactions USING INDEX/);
    statistics.noteCommitted(MANY_ROWS);
    statistics.keepUpToDate();
    assert.match(planOfPurchases(database), /SCAN transactions/);
  });

  test('that cannot be updated are reported, and the store works on', (t) => {
    const database = filledDatabase(t);
    const troubles: string[] = [];
    const statistics = keepStatistics(database, (message) => troubles.push(message));
    database.exec('PRAGMA query_only = 1');
    statistics.noteCommitted(MANY_ROWS);
    statistics.keepUpToDate();
    assert.equal(troubles.length, 1);
    assert.match(troubles[0]!, /statistics for SQL queries could not be updated.*readonly/);
  });
});
