// The PostgreSQL store as its callers use it. Each thread has its own connections.

import { type Store, StoreUnavailable } from '../store.ts';
import { type Address, readAddress } from './address.ts';
import { vital } from './connection-slots.ts';
import { openConnections, type Run } from './connections.ts';
import { idempotencyStore } from './idempotency-records.ts';
import { interactionStore } from './interactions.ts';
import { keyStore } from './keys.ts';
import { organisationStore } from './organisations.ts';
import { recordStore } from './records.ts';

/** Returns the store of a database whose schema is up to date. The store connects at its first call. */
export function holdPostgresStore(address: Address): Store {
  const connections = openConnections(address);
  let isClosed = false;
  let underway = 0;
  let whenDrained: (() => void) | null = null;

  /** Rejects calls once the store is closed. Counts the running calls, because closing waits for them. */
  const counted =
    <Args extends readonly unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      if (isClosed) throw new StoreUnavailable('the store is closed');
      underway++;
      try {
        return await call(...args);
      } finally {
        underway--;
        if (underway === 0) whenDrained?.();
      }
    };

  const close = async (): Promise<void> => {
    isClosed = true;
    if (underway > 0) await new Promise<void>((resolve) => (whenDrained = resolve));
    await connections.close();
  };
  let closing: Promise<void> | null = null;

  const calls: Omit<Store, 'close'> = {
    ...organisationStore(connections),
    ...keyStore(connections),
    ...recordStore(connections),
    ...interactionStore(connections),
    ...idempotencyStore(connections),
    ping: () => ping(connections.for(vital).run),
  };
  const countedCalls = Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [
      name,
      counted(call as (...args: never[]) => Promise<unknown>),
    ]),
  ) as unknown as typeof calls;
  return { ...countedCalls, close: () => (closing ??= close()) };
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

/** Returns the store for a thread other than the one that opened it. The schema is not upgraded again. */
export function attachPostgresStore(url: string): Store {
  return holdPostgresStore(readAddress(url));
}
