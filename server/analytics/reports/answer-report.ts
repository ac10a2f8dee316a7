// Computes a report for a server.

import type { RecommendationsReport } from '@headgate/client/recommendations.ts';
import type { ReportOrder, SqlRefusal } from '../analytics-orders.ts';
import { readReplica, withReplica } from '../replica-use.ts';
import type { Replicas } from '../replicas.ts';
import { recommendationsReport } from './recommendations.ts';

export function answerReport(
  replicas: Replicas,
  order: ReportOrder,
  signal: AbortSignal,
): Promise<RecommendationsReport | SqlRefusal> {
  const { from, to, by, holdout, timeoutMs } = order;
  return withReplica(replicas, order, (replica) =>
    readReplica(replica, { timeoutMs, signal, subject: 'The report' }, (connection, asOf) =>
      recommendationsReport(connection, { from, to, by, holdout }, asOf),
    ),
  );
}
