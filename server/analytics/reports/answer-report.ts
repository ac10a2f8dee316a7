// Computes a report for a server: brings the replica up to date first, and stops when the client has left.

import type { ReportOrder, SqlRefusal } from '../analytics-orders.ts';
import { type Replicas, ReplicasBusy } from '../replicas.ts';
import { type RecommendationsReport, recommendationsReport } from './recommendations.ts';

/** How long a report waits for the replica to catch up. After that, it is computed from what is there. */
const CATCH_UP_MS = 10_000;

export async function answerReport(
  replicas: Replicas,
  { organisation, orgId, from, to, by, timeoutMs }: ReportOrder,
  signal: AbortSignal,
): Promise<RecommendationsReport | SqlRefusal> {
  try {
    return await replicas.with(organisation, orgId, async (replica) => {
      const asOf = await replica.catchUp(CATCH_UP_MS);
      const connection = await replica.connect();
      const timedOut = AbortSignal.timeout(timeoutMs);
      const stop = (): void => connection.interrupt();
      const stopped = AbortSignal.any([signal, timedOut]);
      stopped.addEventListener('abort', stop);
      try {
        return await recommendationsReport(connection, { from, to, by, holdout: null }, asOf);
      } catch (error) {
        if (!stopped.aborted) throw error;
        const message = `The report took longer than ${timeoutMs / 1000} s. Choose a shorter period.`;
        return { kind: 'too_slow' as const, message, position: null };
      } finally {
        stopped.removeEventListener('abort', stop);
        connection.disconnectSync();
      }
    });
  } catch (error) {
    if (error instanceof ReplicasBusy) return { kind: 'unavailable', message: error.message, position: null };
    throw error;
  }
}
