// Has a segment evaluated by the analytics process, on behalf of a server.

import type { SegmentStore } from '../../store/segments.ts';
import type { AnalyticsLink } from '../analytics-link.ts';
import type { EvaluationOrder, EvaluationOutcome, OrderRefusal } from '../analytics-orders.ts';

/** Has a segment evaluated. If that is refused, stores the reason as its failure. */
export async function requestEvaluation(
  store: Pick<SegmentStore, 'segments' | 'beginEvaluation' | 'failEvaluation'>,
  analytics: Pick<AnalyticsLink, 'evaluate'>,
  order: EvaluationOrder,
  signal?: AbortSignal,
): Promise<EvaluationOutcome | OrderRefusal> {
  const outcome = await analytics.evaluate(order, signal);
  if (!('kind' in outcome) || signal?.aborted) return outcome;
  const { organisation, token } = order;
  const { segments } = await store.segments(organisation);
  const found = segments.find(({ name }) => name === order.segment);
  if (found === undefined) return outcome;
  const key = { organisation, segment: found.segment, token };
  const nowMs = Date.now();
  if ((await store.beginEvaluation(key, nowMs)) !== null) {
    await store.failEvaluation(key, nowMs, outcome.message);
  }
  return outcome;
}
