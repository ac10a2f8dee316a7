// Evaluates the segments of all organisations regularly. Several servers may do so at once: the one that begins first
// evaluates a segment, which is then not due for the others.

import { setTimeout as sleep } from 'node:timers/promises';
import type { OrganisationStore } from '../store/organisations.ts';
import type { SegmentStore } from '../store/segments.ts';
import type { AnalyticsLink } from './analytics-link.ts';

/** How soon a failed evaluation is tried again. */
const TRY_AGAIN_MS = 60_000;
const LONGEST_PAUSE_MS = 60_000;

export interface SegmentSchedule {
  /** How often a segment is evaluated. */
  readonly segmentsEveryMs: number;
  /** How long one evaluation may take. */
  readonly sqlTimeoutMs: number;
}

type ScheduledStore = Pick<OrganisationStore, 'organisations'> & Pick<SegmentStore, 'dueSegments'>;
type Evaluator = Pick<AnalyticsLink, 'evaluate'>;

/** Returns a function that ends the schedule. */
export function evaluateRegularly(
  store: ScheduledStore,
  analytics: Evaluator,
  schedule: SegmentSchedule,
  onError: (error: unknown) => void,
): () => void {
  const ended = new AbortController();
  const pauseMs = Math.min(schedule.segmentsEveryMs / 2, LONGEST_PAUSE_MS);
  const repeat = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await evaluateDue(store, analytics, schedule, onError, ended.signal).catch(onError);
      await sleep(pauseMs, undefined, { signal: ended.signal, ref: false }).catch(() => {});
    }
  };
  void repeat();
  return () => ended.abort();
}

async function evaluateDue(
  store: ScheduledStore,
  analytics: Evaluator,
  { segmentsEveryMs, sqlTimeoutMs }: SegmentSchedule,
  onError: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  const nowMs = Date.now();
  const due = await store.dueSegments({
    evaluatedBeforeMs: nowMs - segmentsEveryMs,
    attemptedBeforeMs: nowMs - TRY_AGAIN_MS,
  });
  if (due.length === 0) return;
  const orgIds = new Map(
    (await store.organisations()).map(({ organisation, orgId }) => [organisation, orgId]),
  );
  for (const [organisation, ofOrganisation] of Map.groupBy(due, (segment) => segment.organisation)) {
    if (signal.aborted) return;
    const segments = ofOrganisation.map(({ name }) => name);
    const orgId = orgIds.get(organisation)!;
    const order = { organisation, orgId, segments, patienceMs: 0, timeoutMs: sqlTimeoutMs };
    const outcome = await analytics.evaluate(order, signal);
    // The other organisations are evaluated nevertheless.
    if ('kind' in outcome && !signal.aborted) onError(new Error(outcome.message));
  }
}
