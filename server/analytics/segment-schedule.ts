// Evaluates the segments of all organisations regularly. Several servers may do so at once: a segment is evaluated by the
// one that begins first, and is then not due for the others.

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

type ScheduledStore = OrganisationStore & Pick<SegmentStore, 'dueSegments'>;

/** Returns a function that ends the schedule. */
export function evaluateRegularly(
  store: ScheduledStore,
  analytics: AnalyticsLink,
  schedule: SegmentSchedule,
  onError: (error: unknown) => void,
): () => void {
  const ended = new AbortController();
  const pauseMs = Math.min(schedule.segmentsEveryMs / 2, LONGEST_PAUSE_MS);
  const goOn = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await evaluateDue(store, analytics, schedule, ended.signal).catch(onError);
      await sleep(pauseMs, undefined, { signal: ended.signal, ref: false }).catch(() => {});
    }
  };
  void goOn();
  return () => ended.abort();
}

async function evaluateDue(
  store: ScheduledStore,
  analytics: AnalyticsLink,
  { segmentsEveryMs, sqlTimeoutMs }: SegmentSchedule,
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
    if ('kind' in outcome && !signal.aborted) throw new Error(outcome.message);
  }
}
