// Decides whether the service is ready for requests. It is, unless the store is broken; a busy store is not broken.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailable } from '../store/store.ts';
import type { Service } from './service.ts';

/** A healthy store responds at once, so one that takes longer than this counts as broken. */
const PING_TIMEOUT_MS = 2000;
const late = `the store did not respond to a ping within ${PING_TIMEOUT_MS / 1000} s`;

/** Returns a function that resolves to whether the store can serve. It logs every change once, with the reason. */
export function readinessOf({
  store,
  observer,
  log,
}: Pick<Service, 'store' | 'observer' | 'log'>): () => Promise<boolean> {
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

/** Resolves to why the store cannot serve, or to null. */
async function causeOf(store: Service['store']): Promise<string | null> {
  const timer = new AbortController();
  const timeout = sleep(PING_TIMEOUT_MS, null, { signal: timer.signal })
    // If this thread itself was blocked, the store's response has already arrived and is handled before the next turn.
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
