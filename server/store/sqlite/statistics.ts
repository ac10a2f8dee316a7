// Keeps SQLite's statistics about the tables up to date. SQLite uses them to plan the queries of analysts. Without them
// it assumes that a query by organisation finds few rows, and reads the rows of a large organisation in the random order
// of their keys.

import type { DatabaseSync } from 'node:sqlite';
import { commitTogether } from './group-commit.ts';
import { errorOf } from './thread-calls.ts';

const ROWS_BETWEEN_LOOKS = 100_000;
/** A database that is opened counts as newly written, with this many rows in a page. */
const ROWS_PER_PAGE = 10;
/**
 * Analyses every table (0x10000) whose number of rows has changed tenfold (0x2), from a sample of each index (0x10). This
 * takes a few milliseconds, whatever the size of the tables.
 */
const ANALYSE_SQL = 'PRAGMA optimize = 0x10012';

export interface Statistics {
  noteCommitted(rows: number): void;
  /** Updates the statistics if many rows were written since the last update. Call this outside of a transaction. */
  keepUpToDate(): void;
}

/** Calls `reportTrouble` if the statistics cannot be updated. */
export function keepStatistics(database: DatabaseSync, reportTrouble: (message: string) => void): Statistics {
  let rowsSinceLook = ROWS_PER_PAGE * Number(database.prepare('PRAGMA page_count').get()?.page_count);
  return {
    noteCommitted(rows) {
      rowsSinceLook += rows;
    },

    keepUpToDate() {
      if (rowsSinceLook < ROWS_BETWEEN_LOOKS) return;
      rowsSinceLook = 0;
      const [outcome] = commitTogether(database, [() => update(database)]);
      if (outcome!.kind === 'done') return;
      const { message } = errorOf(outcome!);
      reportTrouble(`the statistics for SQL queries could not be updated; Headgate will retry: ${message}`);
    },
  };
}

interface IndexStatistics {
  readonly rowid: number;
  /** The rows of the index, then how many of them have the same first column, the same first two columns, and so on. */
  readonly stat: string;
}

function update(database: DatabaseSync): void {
  database.exec(ANALYSE_SQL);
  // A sample shows at most its own size as the rows of an organisation. The real average is known.
  const organisations = Number(database.prepare('SELECT count(*) AS count FROM organisations').get()?.count);
  const ofIndexes = database.prepare(`SELECT sqlite_stat1.rowid, stat FROM sqlite_stat1
    JOIN pragma_index_info(idx) ON seqno = 0 AND name = 'organisation'`);
  const correct = database.prepare('UPDATE sqlite_stat1 SET stat = ? WHERE rowid = ?');
  for (const { rowid, stat } of ofIndexes.all() as unknown as IndexStatistics[]) {
    const [rows, ofOrganisation, ...rest] = stat.split(' ');
    const average = Math.ceil(Number(rows) / Math.max(1, organisations));
    if (average > Number(ofOrganisation)) correct.run([rows, average, ...rest].join(' '), rowid);
  }
  database.exec('ANALYZE sqlite_schema');
}
