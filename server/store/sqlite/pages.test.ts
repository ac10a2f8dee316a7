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
    /** Returns the plan of the query, in which positions are looked up only by the key. */
    const planOf = ({ sql, parameters }: Query): string => {
      const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
      const [plan, ...lookUps] = rows.map(({ detail }) => String(detail));
      const lookUp =
        /^(SCALAR SUBQUERY|REUSE SUBQUERY|SEARCH interactions USING COVERING INDEX sqlite_autoindex_interactions_1 )/;
      for (const detail of lookUps) assert.match(detail, lookUp);
      return plan!;
    };
    const ways: [Listing, string, string][] = expectations.map(({ page, index }) => [
      interactionListing(catalogueTables.interactions, page),
      `interactions USING INDEX ${index} `,
      '(occurred_at,rowid)',
    ]);
    const tags = tableOf(catalogueTables, 'tags');
    for (const includeDeleted of [true, false]) {
      const listing = recordListing(tags, { afterId: null, limit: 100, includeDeleted });
      ways.push([listing, 'tags USING INDEX sqlite_autoindex_tags_1 ', 'tag_id']);
    }
    for (const [listing, using, column] of ways) {
      const position = listing.order.map(() => moment);
      for (const begun of [listing, behind(listing, position)]) {
        const stepEnd = planOf(stepEndQuery(1, begun));
        assert.match(stepEnd, new RegExp(`^SEARCH ${using.replace('INDEX', '(COVERING )?INDEX')}`));
        const rows = planOf(rowsQuery(1, upTo(begun, position), 100));
        assert.match(rows, new RegExp(`^SEARCH ${using}`));
        const bounds = begun === listing ? [] : ['<', '>'];
        for (const bound of bounds) assert.ok(rows.includes(`${column}${bound}`), rows);
      }
    }
  });
}

test('a list goes on from an interaction that was deleted without leaving out others of its time', (t) => {
  const database = new DatabaseSync(join(testFolder(t), 'headgate.db'));
  t.after(() => database.close());
  prepareDatabase(database, 'headgate.db', catalogueTables);
  const earlier = '2024-05-01T09:29:00.000000Z';
  const later = '2024-05-01T09:31:00.000000Z';
  const insert = database.prepare(
    'INSERT INTO interactions (organisation, interaction_id, occurred_at) VALUES (1, ?, ?)',
  );
  for (const [id, at] of [
    ['a', moment],
    ['c', earlier],
    ['b', moment],
    ['d', later],
  ] as const) {
    insert.run(id, at);
  }
  const idsAfter = (interactionId: string): readonly unknown[] => {
    const before = { occurredAt: moment, interactionId };
    const { sql, parameters } = rowsQuery(
      1,
      interactionListing(catalogueTables.interactions, { ...page, before }),
      9,
    );
    return database
      .prepare(sql)
      .all(...parameters)
      .map((row) => row.interaction_id);
  };
  assert.deepEqual(idsAfter('b'), ['a', 'c']);
  assert.deepEqual(idsAfter('deleted'), ['b', 'a', 'c']);
});

test('a filter by an unknown field throws', () => {
  assert.throws(
    () => interactionListing(catalogueTables.interactions, { ...page, equal: { colour: 'red' } }),
    /interactions have no field colour/,
  );
});

test('an index entry of the longest text does not take a page of its own', (t) => {
  const database = new DatabaseSync(join(testFolder(t), 'headgate.db'));
  t.after(() => database.close());
  prepareDatabase(database, 'headgate.db', catalogueTables);
  const rows = 1000;
  const insert =
    database.prepare(`INSERT INTO interactions (organisation, interaction_id, occurred_at, user_id)
    VALUES (1, ?, '${moment}', ?)`);
  database.exec('BEGIN');
  for (let row = 0; row < rows; row++) insert.run(String(row), `${row}${'😀'.repeat(9990)}`);
  database.exec('DROP INDEX interactions_by_user');
  const freed = database.prepare('PRAGMA freelist_count').get()!.freelist_count;
  assert.ok(Number(freed) < rows / 5, `the index had ${freed} pages`);
});
