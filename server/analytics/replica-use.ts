// How queries, reports and segments use a replica: what they wait for, and what happens if it cannot be used.

import type { DuckDBConnection } from '@duckdb/node-api';
import { StoreUnavailable } from '../store/store.ts';
import type { Order, OrderRefusal } from './analytics-orders.ts';
import { AnalyticsPaused } from './crash-suspects.ts';
import { type AsOf, isFullDisk, type Replica, ReplicaClosed } from './replica.ts';
import { type Replicas, ReplicasBusy } from './replicas.ts';
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

/** Calls `use` with the organisation's replica. If the replica cannot be used, returns a refusal that says why. */
export async function withReplica<Result>(
  replicas: Replicas,
  { organisation, orgId }: Order,
  left: AbortSignal,
  use: (replica: Replica, wanted: AbortSignal) => Promise<Result>,
): Promise<Result | OrderRefusal> {
  try {
    return await replicas.with(organisation, orgId, left, async (replica, wanted) => {
      try {
        return await use(replica, wanted);
      } catch (error) {
        // After an internal error of DuckDB, the open database refuses everything.
        if (!(error instanceof DamagedReplica) && !isDamage(readQueryError(error, '').message)) throw error;
        await replica.discard(readQueryError(error, '').message);
        return unavailable("The copy of the organisation's data was damaged and is made again; try again.");
      }
    });
  } catch (error) {
    if (error instanceof AnalyticsPaused)
      return { ...unavailable(error.message), retryAfterS: error.retryAfterS };
    if (error instanceof StoreUnavailable) return storeUnresponsive;
    if (error instanceof ReplicasBusy) return unavailable(error.message);
    if (error instanceof ReplicaClosed) return unavailable('Analytics is being stopped; try again shortly.');
    const { type, message } = readQueryError(error, '');
    replicas.reportRefusal(orgId, message);
    if (type === 'Out of Memory') return memoryInUse;
    const shown = replicas.withoutFolder(message);
    return unavailable(`The copy of the organisation's data cannot be used at the moment: ${shown}`);
  }
}

export interface ReplicaService {
  readonly replicas: Replicas;
  /** Called if DuckDB does not stop a query. Only the end of the process will. */
  onStuck(): void;
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
  { replicas, onStuck }: ReplicaService,
  order: Order,
  /** `subject` begins the sentence for the client if it fails, for example `The report`. */
  { signal, subject }: { readonly signal: AbortSignal; readonly subject: string },
  use: (reading: Reading) => Promise<Result | OrderRefusal>,
): Promise<Result | OrderRefusal> {
  const { timeoutMs } = order;
  return withReplica(replicas, order, signal, async (replica) => {
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
