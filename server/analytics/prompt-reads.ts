// Limits how long a query waits for the store. The store's own limit for a call is longer, because uploads may need it.

import { settledWithin } from '../settled-within.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';

/** The small reads that are needed before a query can run. */
const limited = ['latestEntry', 'entries', 'segments', 'segmentConditions'] as const;

type LimitedReads = Pick<Store, (typeof limited)[number]>;

/** Returns the store, except that its small reads reject with a StoreUnavailable after the time. */
export function withPromptReads<Reads extends LimitedReads>(store: Reads, withinMs: number): Reads {
  const reads = limited.map((name) => {
    const read = store[name] as (...given: unknown[]) => Promise<unknown>;
    return [name, (...given: unknown[]) => promptly(read(...given), withinMs)];
  });
  return { ...store, ...(Object.fromEntries(reads) as LimitedReads) };
}

async function promptly<Value>(read: Promise<Value>, withinMs: number): Promise<Value> {
  if (await settledWithin(read, withinMs)) return read;
  throw new StoreUnavailable(`the store has not responded for ${withinMs / 1000} s`);
}
