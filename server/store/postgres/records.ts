// Stores records of all types in PostgreSQL.

import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { Written } from '../idempotency-records.ts';
import { recordListing } from '../listing.ts';
import type { RecordStore, Upload } from '../records.ts';
import type { Tally } from '../rows.ts';
import { catalogueTables, quoted, tableOf } from '../tables.ts';
import { callsOf, listsOf } from './connection-slots.ts';
import type { Connections, Run } from './connections.ts';
import { RefusedCopy } from './errors.ts';
import { writeOnce } from './idempotency-records.ts';
import { type AppendedEntry, appendEntries } from './ledger.ts';
import { countOf, pageOf, rowByKey } from './pages.ts';
import { groupUploads } from './upload-groups.ts';
import {
  COPIED_FROM_ROWS,
  copyIfNew,
  type OwnedRow,
  outcomesOfUpsert,
  type RowOutcome,
  tallyOf,
  upsert,
} from './upserts.ts';

/** Uploads of up to this many rows are written in groups. */
const SMALL_UPLOAD_ROWS = 20;

export function recordStore(connections: Connections): RecordStore {
  /** Writes the uploads and adds their entries. Must run in a transaction. */
  const writeAll = async (run: Run, uploads: readonly Upload[]): Promise<readonly Written[]> => {
    const written: { upload: Upload; outcomes: readonly RowOutcome[] }[] = [];
    const byType = Map.groupBy(uploads, ({ type }) => type);
    // All transactions use the tables in the same order, so that they cannot deadlock.
    for (const [type, ofType] of [...byType].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const owned = ofType.flatMap(({ organisation, batches }) =>
        batches.flat().map((row): OwnedRow => ({ organisation, row })),
      );
      const outcomes = await upsert(run, tableOf(catalogueTables, type), owned);
      let next = 0;
      for (const upload of ofType) {
        const first = next;
        next += rowCount(upload);
        written.push({ upload, outcomes: outcomes.slice(first, next) });
      }
    }
    const seqs = await appendEntries(
      run,
      written.flatMap(({ upload, outcomes }) => entriesOf(upload, outcomes)),
    );
    const results = new Map<Upload, Written>();
    let taken = 0;
    for (const { upload, outcomes } of written) {
      const seq = upload.entry === null ? null : seqs[taken++]!;
      results.set(upload, { kind: 'written', tallies: talliesOf(upload.batches, outcomes), seq });
    }
    return uploads.map((upload) => results.get(upload)!);
  };

  const writeSmall = groupUploads<Upload, Written>({
    organisationOf: ({ organisation }) => organisation,
    keysOf: ({ type, batches }) => batches.flat().map((row) => `${type} ${row[keyPositionOf(type)]}`),
    write: (organisation, group) =>
      connections.for(callsOf(organisation)).transaction(({ run }) => writeAll(run, group)),
  });

  const writeAlone = (upload: Upload, mayCopy: boolean): Promise<Written> => {
    const { organisation, type, batches, idempotencyRecord } = upload;
    const table = tableOf(catalogueTables, type);
    const rows = batches.flat();
    return connections.for(callsOf(organisation)).transaction(async (session) => {
      let outcomes: readonly RowOutcome[] = [];
      const written = await writeOnce(session.run, idempotencyRecord, async () => {
        const isCopied = mayCopy && (await copyIfNew(session, table, organisation, rows));
        const owned = rows.map((row): OwnedRow => ({ organisation, row }));
        outcomes = isCopied ? rows.map(() => 'created') : await upsert(session.run, table, owned);
        return talliesOf(batches, outcomes);
      });
      if (written.kind !== 'written') return written;
      const [seq = null] = await appendEntries(session.run, entriesOf(upload, outcomes));
      return { ...written, seq };
    });
  };

  const writeLarge = async (upload: Upload): Promise<Written> => {
    try {
      return await writeAlone(upload, rowCount(upload) >= COPIED_FROM_ROWS);
    } catch (error) {
      if (error instanceof RefusedCopy) return writeAlone(upload, false);
      throw error;
    }
  };

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

    write: (upload) => (isSmall(upload) ? writeSmall(upload) : writeLarge(upload)),

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
      countOf(connections.for(listsOf(organisation)), tableOf(catalogueTables, type), organisation),
  };
}

function isSmall(upload: Upload): boolean {
  return upload.idempotencyRecord === null && rowCount(upload) <= SMALL_UPLOAD_ROWS;
}

function rowCount({ batches }: Upload): number {
  return batches.reduce((count, rows) => count + rows.length, 0);
}

function keyPositionOf(type: UploadTypeName): number {
  const { columns, key } = tableOf(catalogueTables, type);
  return columns.findIndex(({ name }) => name === key);
}

/** Returns the upload's entry, or nothing if it gets none. */
function entriesOf(upload: Upload, outcomes: readonly RowOutcome[]): readonly AppendedEntry[] {
  const { organisation, type, batches, entry } = upload;
  if (entry === null) return [];
  const keyPosition = keyPositionOf(type);
  const changed = batches.flat().filter((_, at) => outcomes[at] !== 'unchanged');
  const ids = changed.map((row) => row[keyPosition] as string);
  return [{ organisation, type, entry, tally: tallyOf(outcomes), ids }];
}

function talliesOf(batches: Upload['batches'], outcomes: readonly RowOutcome[]): readonly Tally[] {
  let next = 0;
  return batches.map((rows) => {
    const first = next;
    next += rows.length;
    return tallyOf(outcomes.slice(first, next));
  });
}
