// How queries, reports and segments use a replica: what they wait for, and what happens if it cannot be used.

import type { DuckDBConnection } from '@duckdb/node-api';
import type { OrganisationNumber } from '../store/rows.ts';
import type { SqlRefusal } from './analytics-orders.ts';
import type { AsOf, Replica } from './replica.ts';
import { type Replicas, ReplicasBusy } from './replicas.ts';
import { readQueryError } from './sql/query-errors.ts';

/** How long a query waits for the replica to catch up. After that, it runs on what is there. */
export const CATCH_UP_MS = 10_000;

/** Thrown if a query finds that the file is damaged. */
export class DamagedReplica extends Error {}

/** Returns whether DuckDB's message says that the file is damaged, or that the database can no longer be used. */
export function isDamage(message: string): boolean {
  return /corrupt|checksum|database has been invalidated/i.test(message);
}

/** Calls `use` with the organisation's replica. If the replica cannot be used, returns a refusal that says why. */
export async function withReplica<Result>(
  replicas: Replicas,
  { organisation, orgId }: { readonly organisation: OrganisationNumber; readonly orgId: string },
  use: (replica: Replica, wanted: AbortSignal) => Promise<Result>,
): Promise<Result | SqlRefusal> {
  const unavailable = (message: string): SqlRefusal => ({ kind: 'unavailable', message, position: null });
  try {
    return await replicas.with(organisation, orgId, async (replica, wanted) => {
      try {
        return await use(replica, wanted);
      } catch (error) {
        if (!(error instanceof DamagedReplica)) throw error;
        await replica.discard();
        return unavailable("The copy of the organisation's data was damaged and is made again; try again.");
      }
    });
  } catch (error) {
    if (error instanceof ReplicasBusy) return unavailable(error.message);
    const { message } = readQueryError(error, '');
    return unavailable(`The copy of the organisation's data cannot be used at the moment: ${message}`);
  }
}

export interface ReadLimits {
  readonly timeoutMs: number;
  /** Ends the work, for example because the client has left. */
  readonly signal: AbortSignal;
  /** What takes too long in the message to the client, such as `The report`. */
  readonly subject: string;
}

/** Brings the replica up to date, and calls `use` in a transaction that sees everything as of the same moment. */
export async function readReplica<Result>(
  replica: Replica,
  { timeoutMs, signal, subject }: ReadLimits,
  use: (connection: DuckDBConnection, asOf: AsOf) => Promise<Result>,
): Promise<Result | SqlRefusal> {
  const wanted = await replica.catchUp(CATCH_UP_MS);
  const connection = await replica.connect();
  const stopped = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const stop = (): void => connection.interrupt();
  stopped.addEventListener('abort', stop);
  try {
    await connection.run('BEGIN TRANSACTION READ ONLY');
    return await use(connection, await replica.asOf(connection, wanted));
  } catch (error) {
    if (stopped.aborted) {
      const message = `${subject} took longer than ${timeoutMs / 1000} s.`;
      return { kind: 'too_slow', message, position: null };
    }
    const { type, message } = readQueryError(error, '');
    if (isDamage(message)) throw new DamagedReplica(message);
    if (type !== 'Out of Memory') throw error;
    return { kind: 'too_large', message: `${subject} needs too much memory.`, position: null };
  } finally {
    stopped.removeEventListener('abort', stop);
    connection.disconnectSync();
  }
}
