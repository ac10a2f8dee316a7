import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { InteractionPage } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { prepareDatabase } from './migrations.ts';
import { interactionsQuery } from './read-operations.ts';
import { testFolder } from './test-folder.ts';

const page: InteractionPage = { equal: {}, from: null, to: null, before: null, limit: 100 };
const moment = '2024-05-01T09:30:00.000000Z';

const expectations: readonly { readonly page: InteractionPage; readonly index: string }[] = [
  { page, index: 'interactions_by_time' },
  { page: { ...page, from: moment, to: moment }, index: 'interactions_by_time' },
  { page: { ...page, equal: { item_type: 'SHOP' } }, index: 'interactions_by_time' },
  { page: { ...page, equal: { source: null } }, index: 'interactions_by_time' },
  { page: { ...page, equal: { student_id: 'a' } }, index: 'interactions_by_student' },
  { page: { ...page, equal: { user_id: 'a' }, from: moment }, index: 'interactions_by_user' },
  { page: { ...page, equal: { source: 'SERVICE' } }, index: 'interactions_by_source' },
  { page: { ...page, equal: { item_type: 'SHOP', item_id: 'a' } }, index: 'interactions_by_item' },
];

test('every page of interactions is read from an index in its order, and never sorted', (t) => {
  const database = new DatabaseSync(join(testFolder(t), 'headgate.db'));
  t.after(() => database.close());
  prepareDatabase(database, 'headgate.db', catalogueTables);
  const beginnings = [null, { occurredAt: moment, interactionId: 'a' }];
  for (const expectation of expectations) {
    for (const before of beginnings) {
      const { sql, parameters } = interactionsQuery(catalogueTables.interactions, 1, {
        ...expectation.page,
        before,
      });
      const plan = database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...parameters)
        .map(({ detail }) => String(detail));
      const where = `${JSON.stringify(expectation.page.equal)} ${before === null ? '' : 'from a cursor'}`;
      assert.equal(plan.length, 1, `${where}: ${plan.join('; ')}`);
      assert.match(plan[0]!, new RegExp(`^SEARCH interactions USING INDEX ${expectation.index} `), where);
      if (before !== null) assert.match(plan[0]!, /occurred_at/, where);
    }
  }
});

test('a filter by a field that interactions lack is a mistake', () => {
  assert.throws(
    () => interactionsQuery(catalogueTables.interactions, 1, { ...page, equal: { colour: 'red' } }),
    /interactions have no field colour/,
  );
});
