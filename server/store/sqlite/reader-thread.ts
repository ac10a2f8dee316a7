// The threads that only read, so that nothing that is read waits behind a large write. The reader looks up keys,
// references and single records; the lister reads lists, which may go through many rows, in steps.

import { DatabaseSync } from 'node:sqlite';
import { STEP_ENTRIES } from '../page-bounds.ts';
import { type InteractionPage, type RecordPage, StoreUnavailable } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { type Call, done, failed, type Outcome } from './calls.ts';
import { asStoreError } from './database.ts';
import { FileWatch } from './file-identity.ts';
import { createLists, createLookUps, type Steps } from './read-operations.ts';
import { runThread, type Service, type ThreadSetup } from './thread.ts';
import { noteProgress, withHealth } from './thread-health.ts';

/** Reference checks go to random places of the key indexes; their inner pages and warm leaves fit in this. */
const READER_CACHE_KIB = 32 * 1024;
/** Lists go from one place to the next. */
const LISTER_CACHE_KIB = 8 * 1024;
/** Readers wait only for the rare moments when SQLite rebuilds or removes the log. */
const LOCK_PATIENCE_MS = 5000;
/** Rows read in one transaction: enough to share its cost, few enough not to hold up the log for long. */
const GROUP_ROWS = 2000;

type Operation = (...args: readonly unknown[]) => unknown;

function openReader({ name, path, tuning, files, health }: ThreadSetup): Service {
  const isLister = name === 'lister';
  const watch = new FileWatch(files);
  watch.assertInPlace();
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: LOCK_PATIENCE_MS });
  const cacheKib = isLister ? LISTER_CACHE_KIB : READER_CACHE_KIB;
  database.exec(`PRAGMA query_only = 1; PRAGMA cache_size = -${cacheKib};`);
  const operations = (isLister ? createLists : createLookUps)(
    database,
    catalogueTables,
  ) as unknown as Readonly<Record<string, Operation>>;
  /** Lists that have been begun and need another turn. */
  const begun = new WeakMap<Call, Steps<unknown>>();

  const outcomeOf = (call: Call): Outcome | null => {
    const [, operation, args] = call;
    noteProgress(health);
    try {
      const result = begun.get(call) ?? operations[operation]!(...args);
      if (!isLister) return done(result);
      const steps = result as Steps<unknown>;
      const { done: isDone, value } = steps.next();
      if (isDone === true) return done(value);
      begun.set(call, steps);
      return null;
    } catch (error) {
      return failed(asStoreError(error));
    }
  };

  const service: Service = {
    groupWeight: GROUP_ROWS,
    patienceMs: tuning.readPatienceMs,
    mayBeginLarge: () => true,
    weightOf: isLister ? weightOfStep : weightOfLookUp,
    answer(calls) {
      const loss = watch.loss();
      // What a file holds that is no longer at its path is out of date, keys included.
      if (loss !== null) return calls.map(() => failed(new StoreUnavailable(loss.message)));
      database.exec('BEGIN');
      const outcomes = calls.map(outcomeOf);
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
function weightOfLookUp([, operation, args]: Call): number {
  return operation === 'existing' ? Math.ceil((args[2] as string).length / ID_BYTES_IN_JSON) : 1;
}

/** About how many rows one step of the call reads. Only a page of everything is known to need no more than its rows. */
function weightOfStep([, operation, args]: Call): number {
  if (operation === 'records') {
    const { includeDeleted, limit } = args[2] as RecordPage;
    return includeDeleted ? limit : STEP_ENTRIES;
  }
  if (operation !== 'interactions') return STEP_ENTRIES;
  const { equal, limit } = args[1] as InteractionPage;
  return Object.keys(equal).length === 0 ? limit : STEP_ENTRIES;
}

runThread(openReader);
