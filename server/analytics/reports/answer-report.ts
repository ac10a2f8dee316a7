// Computes a report for a server: brings the replica up to date first, and stops when the client has left.

import type { RecommendationsReport } from '@headgate/client/recommendations.ts';
import type { ReportOrder, SqlRefusal } from '../analytics-orders.ts';
import { CATCH_UP_MS, withReplica } from '../replica-use.ts';
import type { Replicas } from '../replicas.ts';
import { recommendationsReport } from './recommendations.ts';

export function answerReport(
  replicas: Replicas,
  order: ReportOrder,
  signal: AbortSignal,
): Promise<RecommendationsReport | SqlRefusal> {
  const { from, to, by, timeoutMs } = order;
  return withReplica(replicas, order, async (replica) => {
    const wantedSeq = await replica.catchUp(CATCH_UP_MS);
    const connection = await replica.connect();
    const stopped = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const stop = (): void => connection.interrupt();
    stopped.addEventListener('abort', stop);
    try {
      await connection.run('BEGIN TRANSACTION READ ONLY');
      const asOf = await replica.asOf(connection, wantedSeq);
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
}
