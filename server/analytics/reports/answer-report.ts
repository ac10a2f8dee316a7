// Computes a report for a server: brings the replica up to date first, and stops when the client has left.

import type { ReportOrder, SqlRefusal } from '../analytics-orders.ts';
import { CATCH_UP_MS, DamagedReplica, isDamage, withReplica } from '../replica-use.ts';
import type { Replicas } from '../replicas.ts';
import { QueryClock } from '../sql/query-clock.ts';
import { QueryFailed, type QueryFailure } from '../sql/query-errors.ts';
import { type RecommendationsReport, recommendationsReport } from './recommendations.ts';

/** `onStuck` is called if DuckDB does not stop a report. Only the end of the process will. */
export function answerReport(
  { replicas, onStuck }: { readonly replicas: Replicas; onStuck(): void },
  order: ReportOrder,
  signal: AbortSignal,
): Promise<RecommendationsReport | SqlRefusal> {
  const { from, to, by, timeoutMs } = order;
  return withReplica(replicas, order, async (replica) => {
    const wantedSeq = await replica.catchUp(CATCH_UP_MS);
    const connection = await replica.connect();
    const clock = new QueryClock(connection, '', { withinMs: timeoutMs, signal });
    try {
      await connection.run('BEGIN TRANSACTION READ ONLY');
      const asOf = await replica.asOf(connection, wantedSeq);
      return await clock.wait(() => recommendationsReport(connection, { from, to, by, holdout: null }, asOf));
    } catch (error) {
      if (!(error instanceof QueryFailed)) throw error;
      if (clock.isStuck) onStuck();
      return refusalOf(error.failure, timeoutMs);
    } finally {
      // While DuckDB runs a query, this would block the whole process.
      if (!clock.isStuck) connection.disconnectSync();
    }
  });
}

function refusalOf({ kind, message }: QueryFailure, timeoutMs: number): SqlRefusal {
  if (kind === 'invalid' && isDamage(message)) throw new DamagedReplica(message);
  if (kind === 'too_large') return { kind, message, position: null };
  if (kind !== 'too_slow') return { kind: 'unavailable', message, position: null };
  const slow = `The report took longer than ${timeoutMs / 1000} s. Choose a shorter period.`;
  return { kind, message: slow, position: null };
}
