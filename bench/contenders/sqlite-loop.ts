// The upper bound on SQLite: a bare loop that runs a prepared upsert for rows that are already parsed. The loop uses
// Headgate's table, pragmas and checkpointing, and makes one durable commit per upload.

import type { SQLInputValue } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { newOpenedFiles } from '../../server/store/sqlite/file-identity.ts';
import { defaultTuning } from '../../server/store/sqlite/tuning.ts';
import { keepWal } from '../../server/store/sqlite/wal.ts';
import { openForWriting } from '../../server/store/sqlite/writing-connection.ts';
import { catalogueTables, tableOf } from '../../server/store/tables.ts';
import { prepareChild, takeOrder } from '../../tests/harness/prepared-child.ts';
import type { SqliteDatabases } from '../databases.ts';
import { keptRecords, makeRecordTexts, type RecordsOrder } from '../load/record-texts.ts';
import type { Timed } from '../load/uploads.ts';
import { bindable, rowsOf, upsertSql } from '../rows.ts';
import { workloads } from '../workloads.ts';
import type { Contender } from './contender.ts';

interface LoopOrder {
  readonly path: string;
  readonly records: RecordsOrder;
}

export function sqliteLoop(databases: SqliteDatabases): Contender {
  return {
    name: 'bare SQLite loop',
    async start(rowsPresent) {
      const { database: path, remove } = await databases.newDatabase(rowsPresent);
      return {
        async upload(records) {
          makeRecordTexts(records);
          const order: LoopOrder = { path, records };
          const loop = await prepareChild<LoopOrder, Timed>(new URL(import.meta.url), order);
          return loop.run();
        },
        stop: remove,
      };
    },
  };
}

if (import.meta.main) {
  takeOrder<LoopOrder, Timed>(async ({ path, records: order }) => {
    const { workload, uploads, recordsPerUpload } = order;
    const database = openForWriting(path);
    const wal = keepWal(database, newOpenedFiles(path), defaultTuning, (trouble) => {
      throw new Error(trouble);
    });
    const upsert = database.prepare(upsertSql(tableOf(catalogueTables, workloads[workload].type)));
    const batches = Array.from(keptRecords(order), (records) => rowsOf(workload, records).map(bindable));
    const write = (rows: readonly SQLInputValue[][], end: 'COMMIT' | 'ROLLBACK'): void => {
      database.exec('BEGIN IMMEDIATE');
      for (const row of rows) upsert.run(...row);
      database.exec(end);
    };
    // Warms up the JIT compiler before the measurement.
    write(batches[0]!, 'ROLLBACK');
    return async () => {
      const startedAtMs = performance.now();
      for (const rows of batches) {
        write(rows, 'COMMIT');
        wal.noteCommitted(rows.length);
        wal.keepInBounds();
        // Lets the event loop run, because a failure of the checkpointer is reported through it.
        await setImmediate();
      }
      const elapsedMs = performance.now() - startedAtMs;
      await wal.close();
      database.close();
      return { count: uploads * recordsPerUpload, elapsedMs };
    };
  });
}
