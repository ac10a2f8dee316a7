// The threads that read for the serving thread, so that nothing that is read waits behind a large write. The reader looks
// up keys and single records; the lister reads lists, which may go through many rows, in steps.

import { STEP_ENTRIES } from '../page-bounds.ts';
import { type InteractionPage, type RecordPage, StoreUnavailable } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { type Call, done, failed, type Outcome } from './calls.ts';
import { asStoreError } from './database.ts';
import { createLists, createLookUps, type Steps } from './read-operations.ts';
import { ReadingConnection } from './reading-connection.ts';
import { runThread, type Service, type ThreadSetup } from './thread.ts';
import { noteProgress, withHealth } from './thread-health.ts';

/** For inner pages, and for lists, which go from one place to the next. */
const CACHE_KIB = 8 * 1024;
/** Rows read in one transaction: enough to share its cost, few enough not to hold up the log for long. */
const GROUP_ROWS = 2000;

type Operation = (...args: readonly unknown[]) => unknown;

function openReader({ name, tuning, files, health }: ThreadSetup): Service {
  const isLister = name === 'lister';
  const connection = new ReadingConnection(files, CACHE_KIB);
  const operations = (isLister ? createLists : createLookUps)(
    connection.database,
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
      try {
        return connection.read(() => calls.map(outcomeOf));
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        return calls.map(() => failed(error));
      }
    },
    betweenGroups() {},
    async close() {
      connection.close();
    },
  };
  return withHealth(service, health);
}

/** About how many rows the call looks up. */
function weightOfLookUp([, operation, args]: Call): number {
  return operation === 'existing' ? (args[2] as readonly string[]).length : 1;
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
