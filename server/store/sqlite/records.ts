// Stores records of all types in SQLite.

import type { RecordTypeName, UploadTypeName } from '@headgate/catalogue/record-types.ts';
import { FairQueue } from '../../fair-queue.ts';
import type { Written } from '../idempotency-records.ts';
import { recordListing } from '../listing.ts';
import { STEP_ENTRIES } from '../page-limits.ts';
import type { RecordPage, RecordStore, Upload } from '../records.ts';
import type { OrganisationNumber, Row, Tally } from '../rows.ts';
import { catalogueTables, quoted, tableOf } from '../tables.ts';
import { packIdempotencyRecord, responseBytes, writeOnce } from './idempotency-records.ts';
import type { LedgerWriter } from './ledger.ts';
import { type PackedRows, packedSlices, packRows } from './packed-rows.ts';
import { countOf, type PackedPage, pageOf, rowByKey, rowsOf, type Steps } from './pages.ts';
import type { Prepare } from './statements.ts';
import type { Callers } from './thread-operations.ts';
import { type Upserts, upsertTally } from './upserts.ts';

/** An upload in the form in which it is sent to the writer's thread. */
export interface PackedUpload extends Omit<Upload, 'batches'> {
  readonly rows: PackedRows;
}

const BYTES_PER_ID = 40;
/** Few, because reading a row with the longest texts takes half a millisecond. */
const DRY_RUN_STEP_ROWS = 20;

export function recordLookUps(prepare: Prepare) {
  return {
    existing(
      organisation: OrganisationNumber,
      type: RecordTypeName,
      ids: readonly string[],
    ): ReadonlySet<string> {
      const { name, key } = tableOf(catalogueTables, type);
      const find = prepare(`SELECT 1 FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} = ?`);
      return new Set(ids.filter((id) => find.get(organisation, id) !== undefined));
    },

    dryRun: (organisation: OrganisationNumber, type: UploadTypeName, rows: readonly Row[]): Tally =>
      upsertTally(prepare, tableOf(catalogueTables, type), organisation, rows),

    record: (organisation: OrganisationNumber, type: RecordTypeName, id: string): string =>
      rowByKey(prepare, tableOf(catalogueTables, type), organisation, id),
  };
}

export function recordLists(prepare: Prepare) {
  return {
    records: (organisation: OrganisationNumber, type: RecordTypeName, page: RecordPage): Steps<PackedPage> =>
      pageOf(prepare, organisation, recordListing(tableOf(catalogueTables, type), page), page.limit),

    countRecords: (organisation: OrganisationNumber, type: RecordTypeName): Steps<number> =>
      countOf(prepare, tableOf(catalogueTables, type), organisation),
  };
}

export function recordWrites(prepare: Prepare, upserts: Upserts, ledger: LedgerWriter) {
  return {
    write({ organisation, type, rows, idempotencyRecord, entry }: PackedUpload): Written {
      const table = tableOf(catalogueTables, type);
      const changed: string[] = [];
      const onChanged = (key: string): void => void changed.push(key);
      const upsertBatches = (): readonly Tally[] =>
        packedSlices(rows).map((slices) =>
          sumOf(slices.map((slice) => upserts.slice(table, organisation, slice, onChanged))),
        );
      const written = writeOnce(prepare, idempotencyRecord, upsertBatches);
      if (entry === null || written.kind !== 'written') return written;
      return {
        ...written,
        seq: ledger.addUpload(organisation, type, entry, sumOf(written.tallies), changed),
      };
    },
  };
}

export function recordStore(callers: Callers): RecordStore {
  const { reader, lister } = callers;
  return {
    async existing(organisation, type, ids) {
      if (ids.length === 0) return new Set();
      const options = { organisation, rows: ids.length, bytes: ids.length * BYTES_PER_ID };
      return reader.call('existing', [organisation, type, ids], options);
    },
    write: recordWriter(callers),
    dryRun: dryRunInSteps((organisation, type, rows) =>
      reader.call('dryRun', [organisation, type, rows], { organisation, rows: rows.length }),
    ),
    async record(organisation, type, id) {
      return rowsOf(await reader.call('record', [organisation, type, id], { organisation }))[0] ?? null;
    },
    async records(organisation, type, page) {
      // Estimates the rows that one step reads. If deleted records are included, a step reads only the rows of the
      // page.
      const options = { organisation, rows: page.includeDeleted ? page.limit : STEP_ENTRIES };
      const { rowsJson, next } = await lister.call('records', [organisation, type, page], options);
      return { rows: rowsOf(rowsJson), next: next === null ? null : next[0]! };
    },
    countRecords: (organisation, type) =>
      lister.call('countRecords', [organisation, type], { organisation, rows: STEP_ENTRIES }),
  };
}

export function recordWriter({ writer }: Pick<Callers, 'writer'>): RecordStore['write'] {
  return ({ batches, ...upload }) => {
    const idempotencyRecord = packIdempotencyRecord(upload.idempotencyRecord);
    const rows = packRows(batches);
    const { buffer, byteLength } = rows.bytes;
    return writer.call('write', [{ ...upload, rows, idempotencyRecord }], {
      organisation: upload.organisation,
      rows: Math.max(1, rows.rowCount),
      bytes: byteLength + responseBytes(idempotencyRecord),
      handedOver: buffer,
    });
  };
}

/**
 * Compares the rows in steps. Organisations take turns by time, with one step in each turn of the event loop, so that
 * the thread can do other work in between.
 */
export function dryRunInSteps(
  tallyOf: (organisation: OrganisationNumber, type: UploadTypeName, rows: readonly Row[]) => Promise<Tally>,
): RecordStore['dryRun'] {
  const waiting = new FairQueue<() => void>();
  let isPumpDue = false;
  const pump = (): void => {
    waiting.shift()?.();
    isPumpDue = waiting.size > 0;
    if (isPumpDue) setImmediate(pump);
  };
  const turnOf = (organisation: OrganisationNumber): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(organisation, resolve);
      if (isPumpDue) return;
      isPumpDue = true;
      setImmediate(pump);
    });
  return async ({ organisation, type, batches }) => {
    const tallies: Tally[] = [];
    for (const rows of batches) {
      const ofSteps: Tally[] = [];
      for (let first = 0; first < rows.length; first += DRY_RUN_STEP_ROWS) {
        await turnOf(organisation);
        const startedAtMs = performance.now();
        ofSteps.push(await tallyOf(organisation, type, rows.slice(first, first + DRY_RUN_STEP_ROWS)));
        waiting.charge(organisation, performance.now() - startedAtMs);
      }
      tallies.push(sumOf(ofSteps));
    }
    return tallies;
  };
}

function sumOf(tallies: readonly Tally[]): Tally {
  const sum = { created: 0, updated: 0, unchanged: 0 };
  for (const { created, updated, unchanged } of tallies) {
    sum.created += created;
    sum.updated += updated;
    sum.unchanged += unchanged;
  }
  return sum;
}
