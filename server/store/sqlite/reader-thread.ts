// The thread that answers all reading, so that a lookup never waits behind a large write.

import { DatabaseSync } from 'node:sqlite';
import { type InteractionPage, type RecordPage, StoreUnavailable } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { type Call, done, failed, type Outcome } from './calls.ts';
import { asStoreError } from './database.ts';
import { FileWatch } from './file-identity.ts';
import { createReadOperations, type ReadOperations } from './read-operations.ts';
import { runThread, type Service, type ThreadSetup } from './thread.ts';
import { noteProgress, withHealth } from './thread-health.ts';

/** Reference checks go to random places of the key indexes; their inner pages and warm leaves fit in this. */
const PAGE_CACHE_KIB = 32 * 1024;
/** Readers wait only for the rare moments when SQLite rebuilds or removes the log. */
const LOCK_PATIENCE_MS = 5000;
/** Rows looked up in one transaction: enough to share its cost, few enough not to hold up the log for long. */
const GROUP_ROWS = 2000;

function openReader({ path, files, health }: ThreadSetup): Service {
  const watch = new FileWatch(files);
  watch.assertInPlace();
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: LOCK_PATIENCE_MS });
  database.exec(`PRAGMA query_only = 1; PRAGMA cache_size = -${PAGE_CACHE_KIB};`);
  const operations = createReadOperations(database, catalogueTables);

  const outcomeOf = (operation: string, args: readonly unknown[]): Outcome => {
    noteProgress(health);
    try {
      const read = operations[operation as keyof ReadOperations] as (...args: readonly unknown[]) => unknown;
      return done(read(...args));
    } catch (error) {
      return failed(asStoreError(error));
    }
  };

  const service: Service = {
    groupWeight: GROUP_ROWS,
    weightOf,
    answer(calls) {
      const loss = watch.loss();
      // What a file holds that is no longer at its path is out of date, keys included.
      if (loss !== null) return calls.map(() => failed(new StoreUnavailable(loss.message)));
      database.exec('BEGIN');
      const outcomes = calls.map(([, operation, args]) => outcomeOf(operation, args));
      if (database.isTransaction) database.exec('COMMIT');
      return outcomes;
    },
    betweenGroups() {},
    async close() {
      database.close();
    },
  };
  return withHealth(service, health);
}

const ID_BYTES_IN_JSON = '"00000000-0000-0000-0000-000000000000",'.length;

/** About how many rows the call looks up. */
function weightOf([, operation, args]: Call): number {
  if (operation === 'existing') return (args[2] as string).length / ID_BYTES_IN_JSON;
  if (operation === 'records') return (args[2] as RecordPage).limit;
  return operation === 'interactions' ? (args[1] as InteractionPage).limit : 1;
}

runThread(openReader);
