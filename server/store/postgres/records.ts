// Stores records of all types in PostgreSQL.

import { recordListing } from '../listing.ts';
import type { RecordStore, Upload } from '../records.ts';
import type { Tally } from '../rows.ts';
import { catalogueTables, quoted, tableOf } from '../tables.ts';
import { callsOf, listsOf } from './connection-slots.ts';
import type { Connections, Session } from './connections.ts';
import { writeOnce } from './idempotency-records.ts';
import { appendEntries } from './ledger.ts';
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

    async write({ organisation, type, batches, idempotencyRecord, entry }) {
      const table = tableOf(catalogueTables, type);
      const keyPosition = table.columns.findIndex(({ name }) => name === table.key);
      const rows = batches.flat();
      const mayCopy = rows.length >= COPIED_FROM_ROWS;
      return connections.for(callsOf(organisation)).transaction(async (session) => {
        let outcomes: readonly RowOutcome[] = [];
        const written = await writeOnce(session.run, idempotencyRecord, async () => {
          const isCopied =
            mayCopy && (await undoneIfNot(session, () => copyIfNew(session, table, organisation, rows)));
          const owned = rows.map((row): OwnedRow => ({ organisation, row }));
          outcomes = isCopied ? rows.map(() => 'created') : await upsert(session.run, table, owned);
          return talliesOf(batches, outcomes);
        });
        if (entry === null || written.kind !== 'written') return written;
        const ids = rows
          .filter((_, at) => outcomes[at] !== 'unchanged')
          .map((row) => row[keyPosition] as string);
        const appended = { organisation, type, entry, tally: tallyOf(outcomes), ids };
        const [seq] = await appendEntries(session.run, [appended]);
        return { ...written, seq: seq! };
      });
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
