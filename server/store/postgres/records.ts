// Stores records of all types in PostgreSQL.

import { recordListing } from '../listing.ts';
import type { RecordStore, Upload } from '../records.ts';
import type { Tally } from '../rows.ts';
import { catalogueTables, quoted, tableOf } from '../tables.ts';
import { callsOf, listsOf } from './connection-slots.ts';
import type { Connections, Run, Session } from './connections.ts';
import { writeOnce } from './idempotency-records.ts';
import { countOf, pageOf, rowByKey } from './pages.ts';
import {
  COPIED_FROM_ROWS,
  copyIfNew,
  type OwnedRow,
  outcomesOfUpsert,
  type RowOutcome,
  tallyOf,
  upsert,
} from './upserts.ts';

export function recordStore(connections: Connections): RecordStore {
  return {
    async existing(organisation, type, ids) {
      if (ids.length === 0) return new Set();
      const { name, key } = tableOf(catalogueTables, type);
      const rows = await connections.for(callsOf(organisation)).run({
        name: `existing ${name}`,
        text: `SELECT ${quoted(key)} FROM ${quoted(name)}
          WHERE "organisation" = $1 AND ${quoted(key)} = ANY ($2::uuid[])`,
        values: [organisation, `{${ids.join(',')}}`],
      });
      return new Set(rows.map(([id]) => id!));
    },

    async write({ organisation, type, batches, idempotencyRecord }) {
      const table = tableOf(catalogueTables, type);
      const sessions = connections.for(callsOf(organisation));
      const rows = batches.flat();
      const mayCopy = rows.length >= COPIED_FROM_ROWS;
      const merge = async (run: Run): Promise<readonly Tally[]> => {
        const owned = rows.map((row): OwnedRow => ({ organisation, row }));
        return talliesOf(batches, await upsert(run, table, owned));
      };
      const allNew = batches.map(({ length }) => ({ created: length, updated: 0, unchanged: 0 }));
      if (idempotencyRecord === null) {
        const isCopied = mayCopy && (await copyIfNew(sessions, table, organisation, rows));
        return { kind: 'written', tallies: isCopied ? allNew : await merge(sessions.run) };
      }
      return sessions.transaction((session) =>
        writeOnce(session.run, idempotencyRecord, async () => {
          const isCopied =
            mayCopy && (await undoneIfNot(session, () => copyIfNew(session, table, organisation, rows)));
          return isCopied ? allNew : merge(session.run);
        }),
      );
    },

    async dryRun({ organisation, type, batches }) {
      const { run } = connections.for(callsOf(organisation));
      return talliesOf(
        batches,
        await outcomesOfUpsert(run, tableOf(catalogueTables, type), organisation, batches.flat()),
      );
    },

    record: (organisation, type, id) =>
      rowByKey(connections.for(callsOf(organisation)).run, tableOf(catalogueTables, type), organisation, id),

    async records(organisation, type, page) {
      const listing = recordListing(tableOf(catalogueTables, type), page);
      const sessions = connections.for(listsOf(organisation));
      const { rows, next } = await pageOf(sessions, organisation, listing, page.limit);
      return { rows, next: next === null ? null : next[0]! };
    },

    countRecords: (organisation, type) =>
      countOf(connections.for(listsOf(organisation)).run, tableOf(catalogueTables, type), organisation),
  };
}

/**
 * Runs `work`, and rolls its changes back if it returns false. Without the savepoint, a failed statement would make the
 * whole transaction fail.
 */
async function undoneIfNot({ run }: Session, work: () => Promise<boolean>): Promise<boolean> {
  await run({ text: 'SAVEPOINT trial', values: [] });
  const isDone = await work();
  await run({ text: isDone ? 'RELEASE SAVEPOINT trial' : 'ROLLBACK TO SAVEPOINT trial', values: [] });
  return isDone;
}

function talliesOf(batches: Upload['batches'], outcomes: readonly RowOutcome[]): readonly Tally[] {
  let next = 0;
  return batches.map((rows) => {
    const first = next;
    next += rows.length;
    return tallyOf(outcomes.slice(first, next));
  });
}
