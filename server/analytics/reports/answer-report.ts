// Computes a report for a server.

import type { RecommendationsReport } from '@headgate/client/recommendations.ts';
import type { OrderRefusal, ReportOrder } from '../analytics-orders.ts';
import { type ReplicaService, readReplica } from '../replica-use.ts';
import { recommendationsReport } from './recommendations.ts';

export function answerReport(
  service: ReplicaService,
  order: ReportOrder,
  signal: AbortSignal,
): Promise<RecommendationsReport | OrderRefusal> {
  const { from, to, by, holdout } = order;
  return readReplica(service, order, { signal, subject: 'The report' }, ({ connection, asOf, wait }) =>
    wait(() => recommendationsReport(connection, { from, to, by, holdout }, asOf)),
  );
}
