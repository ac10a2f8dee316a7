// Fills tables directly, for tests that need more rows than uploads could store in reasonable time.

import type { TestStore } from './for-each-store.ts';

const ROWS = (count: number): string =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`;

/** Returns the n-th id of a filling. Ids sort in the order of n. */
export function filledId(n: number): string {
  return `${String(n).padStart(8, '0')}-0000-4000-8000-000000000000`;
}

interface Dialect {
  readonly id: string;
  readonly moment: string;
  readonly deleted: string;
}

function dialectOf({ name }: TestStore): Dialect {
  const digits = `substr('0000000', 1, 8 - length(CAST(n AS TEXT))) || CAST(n AS TEXT)`;
  if (name === 'SQLite') {
    return {
      id: `printf('%08d-0000-4000-8000-000000000000', n)`,
      moment: `strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1714555800 + n, 'unixepoch')`,
      deleted: '1',
    };
  }
  return {
    id: `CAST(${digits} || '-0000-4000-8000-000000000000' AS uuid)`,
    moment: 'to_timestamp(1714555800 + n)',
    deleted: 'true',
  };
}

/** Inserts tags of an organisation that are all marked as deleted. */
export async function fillDeletedTags(
  store: TestStore,
  database: string,
  orgId: string,
  count: number,
): Promise<void> {
  const { id, deleted } = dialectOf(store);
  await store.ask(
    database,
    `INSERT INTO tags (organisation, tag_id, name, is_deleted)
      SELECT (SELECT organisation FROM organisations WHERE org_id = '${orgId}'), ${id}, 'gone', ${deleted}
      FROM (${ROWS(count)} SELECT n FROM numbers) AS filling`,
  );
}

/** Inserts page views of nonexistent tags, with timestamps one second apart. */
export async function fillPageViews(
  store: TestStore,
  database: string,
  orgId: string,
  count: number,
): Promise<void> {
  const { id, moment } = dialectOf(store);
  await store.ask(
    database,
    `INSERT INTO interactions
        (organisation, interaction_id, interaction_type, item_type, item_id, event_timestamp, occurred_at, created)
      SELECT (SELECT organisation FROM organisations WHERE org_id = '${orgId}'),
        ${id}, 'PAGE_VIEW', 'TAG', ${id}, '1714555800', ${moment}, ${moment}
      FROM (${ROWS(count)} SELECT n FROM numbers) AS filling`,
  );
}
