// How queries, reports and segments use a replica: what they wait for, and what happens if it cannot be used.

import type { DuckDBConnection } from '@duckdb/node-api';
import { StoreUnavailable } from '../store/store.ts';
import type { Order, OrderRefusal } from './analytics-orders.ts';
import { type AsOf, isFullDisk, type Replica, ReplicaClosed } from './replica.ts';
import { QueryClock } from './sql/query-clock.ts';
import { QueryFailed, type QueryFailure, readQueryError } from './sql/query-errors.ts';

/** How long a query waits for the replica to catch up. After that, it runs on what is there. */
export const CATCH_UP_MS = 10_000;

/** Thrown if a query finds that the file is damaged. */
export class DamagedReplica extends Error {}

/**
 * Returns whether DuckDB's message says that the file is damaged, or that the database can no longer be used. After a full
 * disk, the file is still good.
 */
export function isDamage(message: string): boolean {
  if (isFullDisk(message)) return false;
  return /corrupt|checksum|could not read enough bytes|database has been invalidated/i.test(message);
}

function unavailable(message: string): OrderRefusal {
  return { kind: 'unavailable', message, position: null };
}

/** The message has no reason, because that could contain the address of the database. */
export const storeUnresponsive = unavailable(
  "The copy of the organisation's data cannot be brought up to date, because the store does not respond at the moment; try again shortly.",
);

const memoryInUse = unavailable(
  "There is not enough memory left to use the copy of the organisation's data. Its other queries may be using it; try again when they have ended.",
);

/** What an order needs to use the replica of its organisation. */
export interface ReplicaService {
  readonly replica: Replica;
  /** Says that another organisation waits for the place of the replica. */
  readonly placeWanted: AbortSignal;
  /** The folder of the replicas, which clients must not see. */
  readonly folder: string;
  /** Called when an order begins to use the replica, with a promise that settles when it no longer does. */
  onUse(use: Promise<unknown>): void;
  /** Called if DuckDB does not stop a query. Only the end of the process will. */
  onStuck(): void;
  /** Called with the reason if the replica cannot be used. */
  onUnusable(reason: string): void;
}

type UsedReplica = Pick<ReplicaService, 'replica' | 'folder' | 'onUse' | 'onUnusable'>;

/** Calls `use`, which uses the replica. If the replica cannot be used, returns a refusal that says why. */
export function withReplica<Result>(
  service: UsedReplica,
  use: () => Promise<Result>,
): Promise<Result | OrderRefusal> {
  const used = tryToUse(service, use);
  service.onUse(used);
  return used;
}

async function tryToUse<Result>(
  { replica, folder, onUnusable }: UsedReplica,
  use: () => Promise<Result>,
): Promise<Result | OrderRefusal> {
  try {
    return await use();
  } catch (error) {
    if (error instanceof StoreUnavailable) return storeUnresponsive;
    if (error instanceof ReplicaClosed) return unavailable('Analytics is being stopped; try again shortly.');
    const { type, message } = readQueryError(error, '');
    // After an internal error of DuckDB, the open database refuses everything.
    if (error instanceof DamagedReplica || isDamage(message)) {
      await replica.discard(message);
      return unavailable("The copy of the organisation's data was damaged and is made again; try again.");
    }
    onUnusable(message);
    if (type === 'Out of Memory') return memoryInUse;
    const shown = message.replaceAll(folder, 'HEADGATE_ANALYTICS_DIR');
    return unavailable(`The copy of the organisation's data cannot be used at the moment: ${shown}`);
  }
}

/** What is read from a replica, in a transaction that sees everything as of the same moment. */
export interface Reading {
  readonly replica: Replica;
  readonly connection: DuckDBConnection;
  readonly asOf: AsOf;
  /** Waits for a call of DuckDB. All calls together may take as long as the order allows. */
  wait<Value>(call: () => Promise<Value>): Promise<Value>;
}

/** Brings the organisation's replica up to date, and calls `use`, which must wait for DuckDB with `wait`. */
export function readReplica<Result>(
  service: ReplicaService,
  order: Order,
  /** `subject` begins the sentence for the client if it fails, for example `The report`. */
  { signal, subject }: { readonly signal: AbortSignal; readonly subject: string },
  use: (reading: Reading) => Promise<Result | OrderRefusal>,
): Promise<Result | OrderRefusal> {
  const { timeoutMs } = order;
  const { replica, onStuck } = service;
  return withReplica(service, async () => {
    const wanted = await replica.wanted();
    await replica.catchUp(wanted, CATCH_UP_MS);
    const { connection, asOf } = await replica.begin(wanted);
    const clock = new QueryClock(connection, '', { withinMs: timeoutMs, signal });
    try {
      return await use({ replica, connection, asOf, wait: (call) => clock.wait(call) });
    } catch (error) {
      if (!(error instanceof QueryFailed)) throw error;
      if (clock.isStuck) onStuck();
      return refusalOf(error.failure, subject, timeoutMs);
    } finally {
      // While DuckDB runs a query, this would block the whole process.
      if (!clock.isStuck) replica.disconnect(connection);
    }
  });
}

/** The messages of `failure` advise on the SQL, which the client did not write. */
function refusalOf({ kind, message }: QueryFailure, subject: string, timeoutMs: number): OrderRefusal {
  const position = null;
  switch (kind) {
    case 'too_slow':
      return { kind, message: `${subject} took longer than ${timeoutMs / 1000} s.`, position };
    case 'too_large':
      return { kind, message: `${subject} needs more memory than it may use.`, position };
    case 'cancelled':
      return { kind: 'unavailable', message: `${subject} was cancelled.`, position };
    case 'invalid':
      if (isDamage(message)) throw new DamagedReplica(message);
      return { kind: 'unavailable', message, position };
  }
}
