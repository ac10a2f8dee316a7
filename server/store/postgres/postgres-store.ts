// The PostgreSQL store as its callers use it. Each thread has its own connections.

import { type Store, StoreUnavailable } from '../store.ts';
import { readAddress } from './address.ts';
import { pings } from './connection-slots.ts';
import { openConnections, type Run } from './connections.ts';
import { idempotencyStore } from './idempotency-records.ts';
import { interactionStore } from './interactions.ts';
import { keyStore } from './keys.ts';
import { ledgerStore } from './ledger.ts';
import { organisationStore } from './organisations.ts';
import { recordStore } from './records.ts';
import { segmentStore } from './segments.ts';

/**
 * Returns the store of a database whose schema is up to date. The store connects at its first call. Each thread attaches
 * its own store.
 */
export function attachPostgresStore(url: string): Store {
  const connections = openConnections(readAddress(url));
  const running = new Set<Promise<unknown>>();
  let closing: Promise<void> | null = null;

  /** Rejects calls once the store is closed. Remembers the running calls, because closing waits for them. */
  const tracked =
    (call: (...args: never[]) => Promise<unknown>) =>
    async (...args: never[]): Promise<unknown> => {
      if (closing !== null) throw new StoreUnavailable('the store is closed');
      const result = call(...args);
      running.add(result);
      return result.finally(() => running.delete(result));
    };

  const close = async (): Promise<void> => {
    await Promise.allSettled(running);
    await connections.close();
  };

  const calls: Omit<Store, 'close'> = {
    ...organisationStore(connections),
    ...keyStore(connections),
    ...recordStore(connections),
    ...interactionStore(connections),
    ...idempotencyStore(connections),
    ...ledgerStore(connections, () => closing !== null),
    ...segmentStore(connections),
    ping: () => ping(connections.for(pings).run),
  };
  const trackedCalls = Object.entries(calls).map(([name, call]) => [name, tracked(call)]);
  return { ...(Object.fromEntries(trackedCalls) as typeof calls), close: () => (closing ??= close()) };
}

async function ping(run: Run): Promise<void> {
  const [row] = await run({
    name: 'ping',
    text: `SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'`,
    values: [],
  });
  const [isStandby, isReadOnly] = row!;
  if (isStandby === 't') throw new StoreUnavailable('PostgreSQL is a read-only standby at this moment');
  if (isReadOnly === 't') throw new StoreUnavailable('PostgreSQL is read-only at this moment');
}
