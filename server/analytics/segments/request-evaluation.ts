// Asks the analytics process to evaluate a segment for a request.

import type { SegmentStore } from '../../store/segments.ts';
import type { AnalyticsLink } from '../analytics-link.ts';
import type { EvaluationOrder, EvaluationOutcome, OrderRefusal } from '../analytics-orders.ts';

/**
 * Asks for an evaluation. If it is refused, stores the reason as the segment's failure, so that the segment says why it was
 * not evaluated. Returns the refusal if that is not possible.
 */
export async function requestEvaluation(
  store: Pick<SegmentStore, 'segments' | 'beginEvaluation' | 'failEvaluation'>,
  analytics: Pick<AnalyticsLink, 'evaluate' | 'hasEndedEvaluations'>,
  order: EvaluationOrder,
): Promise<EvaluationOutcome | OrderRefusal> {
  const outcome = await analytics.evaluate(order);
  if (!('kind' in outcome) || analytics.hasEndedEvaluations) return outcome;
  const { organisation, token } = order;
  const { segments } = await store.segments(organisation);
  const found = segments.find(({ name }) => name === order.segment);
  if (found === undefined) return outcome;
  const key = { organisation, segment: found.segment, token };
  const nowMs = Date.now();
  if ((await store.beginEvaluation(key, nowMs)) === null) return outcome;
  await store.failEvaluation(key, nowMs, outcome.message);
  return { isRunning: false };
}
