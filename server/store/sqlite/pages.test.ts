import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { InteractionPage } from '../interactions.ts';
import { behind, interactionListing, type Listing, recordListing, upTo } from '../listing.ts';
import { catalogueTables, tableOf } from '../tables.ts';
import { prepareDatabase } from './migrations.ts';
import { type Query, rowsQuery, stepEndQuery } from './pages.ts';
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
  { page: { ...page, equal: { source: 'SERVICE' } }, index: 'interactions_by_time' },
  { page: { ...page, equal: { item_type: 'SHOP', item_id: 'a' } }, index: 'interactions_by_item' },
];

/** Makes one organisation so large that reading the whole table costs less than reading it by an index. */
function fill(database: DatabaseSync): void {
  database.exec(`WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 20000)
    INSERT INTO tags (organisation, tag_id, is_deleted) SELECT 1, n, 0 FROM n;
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 20000)
    INSERT INTO interactions (organisation, interaction_id, occurred_at, student_id, user_id, item_id, source)
      SELECT 1, n, '${moment}', 'a', 'a', 'a', 'SERVICE' FROM n;
    ANALYZE;`);
}

for (const hasStatistics of [false, true]) {
  test(`every step of a list is read from its index, within its bounds and without sorting, ${hasStatistics ? 'with' : 'without'} statistics`, (t) => {
    const database = new DatabaseSync(join(testFolder(t), 'headgate.db'));
    t.after(() => database.close());
    prepareDatabase(database, 'headgate.db', catalogueTables);
    if (hasStatistics) fill(database);
    const plansOf = ({ sql, parameters }: Query): string => {
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
      assert.equal(plan.length, 1, JSON.stringify(plan));
      return String(plan[0]!.detail);
    };
    const ways: [Listing, string, string][] = expectations.map(({ page, index }) => [
      interactionListing(catalogueTables.interactions, page),
      `interactions USING INDEX ${index} `,
      '(?:occurred_at|interaction_id)',
    ]);
    const tags = tableOf(catalogueTables, 'tags');
    for (const includeDeleted of [true, false]) {
      const listing = recordListing(tags, { afterId: null, limit: 100, includeDeleted });
      ways.push([listing, 'tags USING INDEX sqlite_autoindex_tags_1 ', 'tag_id']);
    }
    for (const [listing, using, column] of ways) {
      const position = listing.order.map(() => moment);
      for (const begun of [listing, behind(listing, position)]) {
        const stepEnd = plansOf(stepEndQuery(1, begun));
        assert.match(stepEnd, new RegExp(`^SEARCH ${using.replace('INDEX', 'COVERING INDEX')}`));
        const rows = plansOf(rowsQuery(1, upTo(begun, position), 100));
        assert.match(rows, new RegExp(`^SEARCH ${using}`));
        const bounds = begun.begin === null ? [] : ['<', '>'];
        for (const bound of bounds) assert.match(rows, new RegExp(`${column}\\)?${bound}`));
      }
    }
  });
}

test('a filter by an unknown field throws', () => {
  assert.throws(
    () => interactionListing(catalogueTables.interactions, { ...page, equal: { colour: 'red' } }),
    /interactions have no field colour/,
  );
});
