// How queries and reports use a replica: what they wait for, and what happens if it cannot be used.

import type { OrganisationNumber } from '../store/rows.ts';
import type { SqlRefusal } from './analytics-orders.ts';
import type { Replica } from './replica.ts';
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
