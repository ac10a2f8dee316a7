// Evaluates the segments of all organisations regularly. Several servers may do so at once: the one that begins first
// evaluates a segment, which is then not due for the others.

import { randomUUID } from 'node:crypto';
import type { OrganisationStore } from '../store/organisations.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { DueSegment, SegmentStore } from '../store/segments.ts';
import type { AnalyticsLink } from './analytics-link.ts';

/** How soon a failed evaluation is tried again, and a segment evaluated if the request that saved it has not done so. */
const LONGEST_PAUSE_MS = 60_000;
/** More than one, so that an organisation whose evaluation takes long, or waits for its own queries, delays no other. */
const ORGANISATIONS_AT_ONCE = 2;

export interface SegmentSchedule {
  /** How often a segment is evaluated. */
  readonly segmentsEveryMs: number;
  /** How long one evaluation may take. */
  readonly sqlTimeoutMs: number;
}

type ScheduledStore = Pick<OrganisationStore, 'organisations'> & Pick<SegmentStore, 'dueSegments'>;
type Evaluator = Pick<AnalyticsLink, 'evaluate'>;

/**
 * Evaluates one due segment of each organisation per turn, so that an organisation with many slow segments does not
 * delay the others. The next turn begins when an evaluation has ended. Returns a function that ends the schedule.
 */
export function evaluateRegularly(
  store: ScheduledStore,
  analytics: Evaluator,
  { segmentsEveryMs, sqlTimeoutMs }: SegmentSchedule,
  onError: (error: unknown) => void,
): () => void {
  const ended = new AbortController();
  const { signal } = ended;
  const pauseMs = Math.min(segmentsEveryMs / 2, LONGEST_PAUSE_MS);
  const evaluating = new Map<OrganisationNumber, Promise<void>>();
  /** Begins the next turn. */
  let look = (): void => {};
  /** The segments that were tried recently. Some stay due, for example because another server evaluates them. */
  const triedAtMs = new Map<string, number>();

  const dueSegments = async (): Promise<readonly DueSegment[]> => {
    for (const [key, atMs] of triedAtMs) if (performance.now() - atMs > pauseMs) triedAtMs.delete(key);
    const nowMs = Date.now();
    const due = await store.dueSegments({
      evaluatedBeforeMs: nowMs - segmentsEveryMs,
      attemptedBeforeMs: nowMs - pauseMs,
    });
    return due.filter((segment) => !triedAtMs.has(keyOf(segment)));
  };

  /** Evaluates the first of an organisation's due segments. */
  const evaluateFirst = async (due: readonly DueSegment[], orgId: string): Promise<void> => {
    const { organisation, name } = due[0]!;
    triedAtMs.set(keyOf(due[0]!), performance.now());
    const order = { organisation, orgId, segment: name, token: randomUUID(), patienceMs: 0 };
    const timed = { ...order, timeoutMs: sqlTimeoutMs };
    const outcome = await analytics.evaluate(timed, signal);
    const isRefused = 'kind' in outcome;
    if (isRefused && !signal.aborted) onError(new Error(outcome.message));
    // A refusal concerns all segments of the organisation.
    if (isRefused) for (const segment of due) triedAtMs.set(keyOf(segment), performance.now());
  };

  /** Evaluates one segment of each organisation that has due ones and is not being evaluated. */
  const takeTurn = async (): Promise<void> => {
    const due = (await dueSegments()).filter(({ organisation }) => !evaluating.has(organisation));
    if (due.length === 0) return;
    const organisations = await store.organisations();
    const orgIds = new Map(organisations.map(({ organisation, orgId }) => [organisation, orgId]));
    for (const [organisation, ofOrganisation] of Map.groupBy(due, (segment) => segment.organisation)) {
      while (evaluating.size >= ORGANISATIONS_AT_ONCE) await Promise.race(evaluating.values());
      if (signal.aborted) return;
      const evaluation = evaluateFirst(ofOrganisation, orgIds.get(organisation)!)
        .catch(onError)
        .finally(() => {
          evaluating.delete(organisation);
          look();
        });
      evaluating.set(organisation, evaluation);
    }
  };

  const repeat = async (): Promise<void> => {
    while (!signal.aborted) {
      const { promise: isTime, resolve } = Promise.withResolvers<void>();
      look = resolve;
      await takeTurn().catch(onError);
      const timer = setTimeout(look, pauseMs).unref();
      await isTime;
      clearTimeout(timer);
    }
  };
  void repeat();
  return () => {
    ended.abort();
    look();
  };
}

function keyOf({ organisation, name }: DueSegment): string {
  return `${organisation}/${name}`;
}
