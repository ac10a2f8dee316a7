// The threads that read for the serving thread, so that reads do not wait behind a large write. The reader looks up
// keys and single records. The lister reads lists in steps, because a list may go through many rows.

import { StoreUnavailable } from '../store.ts';
import { asStoreError } from './errors.ts';
import type { Steps } from './pages.ts';
import { ReadingConnection } from './reading-connection.ts';
import { type CallResult, done, failed, type ThreadCall } from './thread-calls.ts';
import { noteProgress, withHealth } from './thread-health.ts';
import { runThread, type ThreadService, type ThreadSetup } from './thread-loop.ts';
import { createLists, createLookUps } from './thread-operations.ts';

/**
 * The size of each thread's page cache. The reader's is enough for the inner pages of the indexes. The lister's is
 * larger, because a page of changes looks up thousands of records.
 */
const cacheKib = { reader: 8 * 1024, lister: 32 * 1024 };
/**
 * How many rows one transaction reads: enough for many calls to share the cost of the transaction, and few enough not
 * to delay the restart of the log for long.
 */
const GROUP_ROWS = 2000;

type Operation = (...args: readonly unknown[]) => unknown;

function openReader({ name, tuning, files, health }: ThreadSetup): ThreadService {
  const isLister = name === 'lister';
  const connection = new ReadingConnection(files, cacheKib[isLister ? 'lister' : 'reader']);
  const operations = (isLister ? createLists : createLookUps)(connection.database) as unknown as Readonly<
    Record<string, Operation>
  >;
  /** Lists that have started and need another turn. */
  const begun = new WeakMap<ThreadCall, Steps<unknown>>();

  const outcomeOf = (call: ThreadCall): CallResult | null => {
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

  const service: ThreadService = {
    groupRows: GROUP_ROWS,
    patienceMs: tuning.readPatienceMs,
    mayBeginLarge: () => true,
    run(calls) {
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

runThread(openReader);
