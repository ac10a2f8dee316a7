// Decides whether the service is ready for requests. It is not ready if the store is broken. A store that is only busy
// is not broken.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailable } from '../store/store.ts';
import type { AppDependencies } from './app-dependencies.ts';

/** A store that takes longer than this to respond to a ping counts as broken. A healthy one responds at once. */
const PING_TIMEOUT_MS = 2000;
const late = `the store did not respond to a ping within ${PING_TIMEOUT_MS / 1000} s`;

/** Returns a function that resolves to whether the store can serve requests, and logs each change with its reason. */
export function readinessOf({
  store,
  observer,
  log,
}: Pick<AppDependencies, 'store' | 'observer' | 'log'>): () => Promise<boolean> {
  let knownCause: string | null = null;
  return async () => {
    const cause = await causeOf(store);
    if (cause !== null) observer.metrics?.storeFailed('readiness');
    if (cause !== knownCause) {
      if (cause !== null) log('error', { cause }, 'not ready: the store cannot serve');
      else log('info', {}, 'ready again: the store can serve');
      knownCause = cause;
    }
    return cause === null;
  };
}

/** Resolves to the reason why the store cannot serve requests, or to null if it can. */
async function causeOf(store: AppDependencies['store']): Promise<string | null> {
  const timer = new AbortController();
  const timeout = sleep(PING_TIMEOUT_MS, null, { signal: timer.signal })
    // Waits one event-loop turn before it reports a timeout. If this thread itself was blocked, the store's response
    // has already arrived and is handled in that turn.
    .then(() => nextTurn(late))
    .catch(() => late);
  try {
    return await Promise.race([store.ping().then(() => null), timeout]);
  } catch (error) {
    if (error instanceof StoreUnavailable) return error.message;
    throw error;
  } finally {
    timer.abort();
  }
}
