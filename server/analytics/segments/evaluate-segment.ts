// Evaluates a segment: compares the customers for whom its condition holds with its members in the store, and stores who
// entered and who left.

import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../../failure.ts';
import type { OrganisationNumber } from '../../store/rows.ts';
import {
  type EvaluationKey,
  KEPT_MEMBER_CHANGES,
  MEMBERSHIPS_AT_ONCE,
  type MemberChange,
  type Segment,
  type SegmentEvaluation,
  type SegmentStore,
} from '../../store/segments.ts';
import type { EvaluationOrder, EvaluationOutcome, OrderRefusal } from '../analytics-orders.ts';
import { type Reading, type ReplicaService, readReplica } from '../replica-use.ts';
import { membersSql } from './compile-condition.ts';
import { readConditions } from './segment-conditions.ts';
import type { Statement } from './sql-params.ts';

const TRY_AGAIN_MS = 100;
/** How often a running evaluation renews its token, and so notices that it has been ended. */
const RENEW_EVERY_MS = 1000;

/** Evaluates a segment, and stores the result or the failure. */
export async function evaluateSegment(
  service: ReplicaService,
  store: SegmentStore,
  order: EvaluationOrder,
  signal: AbortSignal,
): Promise<EvaluationOutcome> {
  const { organisation, token } = order;
  const { segments } = await store.segments(organisation);
  const found = segments.find(({ name }) => name === order.segment);
  if (found === undefined) return { isRunning: false };
  const key = { organisation, segment: found.segment, token };
  const begun = await begin(store, key, order.patienceMs, signal);
  if (typeof begun === 'string') return { isRunning: begun === 'running' };
  const renewal = renewToken(store, key);
  const options = { signal: AbortSignal.any([signal, renewal.lost]), subject: 'The evaluation' };
  const reading = readReplica(service, order, options, async (read) => {
    await expireChanges(store, key, begun);
    return evaluate(read, store, key, begun);
  });
  // The evaluation can be ended while the replica waits for the store.
  const evaluated = await Promise.race([reading, whenAborted(renewal.lost)]).finally(renewal.stop);
  if (evaluated !== null) {
    if ('kind' in evaluated) await store.failEvaluation(key, Date.now(), evaluated.message);
    else await store.finishEvaluation(key, evaluated);
  }
  return { isRunning: false };
}

async function begin(
  store: SegmentStore,
  key: EvaluationKey,
  patienceMs: number,
  signal: AbortSignal,
): Promise<Segment | 'running' | 'deleted'> {
  const deadlineMs = performance.now() + patienceMs;
  for (;;) {
    const begun = await store.beginEvaluation(key, Date.now());
    if (begun !== null) return begun;
    const { segments } = await store.segments(key.organisation);
    if (!segments.some(({ segment }) => segment === key.segment)) return 'deleted';
    if (performance.now() >= deadlineMs || signal.aborted) return 'running';
    await sleep(TRY_AGAIN_MS);
  }
}

interface Renewal {
  /** Aborted if the evaluation has been ended, because the segment was saved or deleted. */
  readonly lost: AbortSignal;
  stop(): void;
}

/** Renews the token until it is stopped, so that no other process regards the evaluation as abandoned. */
function renewToken(store: SegmentStore, key: EvaluationKey): Renewal {
  const lost = new AbortController();
  const stopped = new AbortController();
  const { signal } = stopped;
  const renew = async (): Promise<void> => {
    if (!(await store.writeMemberChanges(key, 0, [], Date.now()))) lost.abort();
  };
  const repeat = async (): Promise<void> => {
    for (;;) {
      await sleep(RENEW_EVERY_MS, undefined, { signal });
      // If the store fails, the evaluation's next write reports it.
      await renew().catch(() => {});
    }
  };
  // Stopping rejects the sleep.
  repeat().catch(() => {});
  return { lost: lost.signal, stop: () => stopped.abort() };
}

/** Resolves to null when the signal is aborted. */
function whenAborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
}

/** Deletes departures if the segment has more changes than are kept. */
async function expireChanges(
  store: SegmentStore,
  { organisation, segment }: EvaluationKey,
  { lastSeq, keptAfterSeq }: Segment,
): Promise<void> {
  if (lastSeq - keptAfterSeq > KEPT_MEMBER_CHANGES)
    await store.expireMembershipsUpTo(organisation, segment, lastSeq - KEPT_MEMBER_CHANGES);
}

/** Resolves to null if the evaluation has been ended. */
async function evaluate(
  reading: Reading,
  store: SegmentStore,
  key: EvaluationKey,
  begun: Segment,
): Promise<SegmentEvaluation | OrderRefusal | null> {
  const { replica, connection, asOf } = reading;
  const startedAtMs = performance.now();
  if ((await replica.membersSeq(connection, key.segment)) !== begun.lastSeq) return notBuilt;
  const members = await statementOf(store, key.organisation, begun.name, new Date(asOf.at));
  if (members instanceof Failure) return { kind: 'invalid', message: members.reason, position: null };
  const counts = await writeChanges(reading, store, key, begun, members);
  if (counts === null) return null;
  return { atMs: Date.parse(asOf.at), ms: Math.round(performance.now() - startedAtMs), ...counts };
}

const notBuilt: OrderRefusal = {
  kind: 'unavailable',
  message:
    "The copy of the organisation's data is still being made. The segment is evaluated again in a minute.",
  position: null,
};

/** Resolves to the statement that selects the customers for whom the condition of a segment holds. */
async function statementOf(
  store: SegmentStore,
  organisation: OrganisationNumber,
  name: string,
  asOf: Date,
): Promise<Statement | Failure> {
  const { segments } = await store.segments(organisation);
  const conditions = await readConditions(store, organisation, segments, [name]);
  const condition = conditions.get(name);
  if (condition === undefined)
    return new Failure('The condition is no longer valid: this version does not know one of its fields.');
  const statement = membersSql(condition, { asOf, conditionOf: (used) => conditions.get(used) ?? null });
  return statement instanceof Failure
    ? new Failure(`The segment cannot be evaluated: ${statement.reason}.`)
    : statement;
}

/** Writes who has entered and left, and returns how many. Returns null if the evaluation has been ended. */
async function writeChanges(
  { connection, wait }: Reading,
  store: SegmentStore,
  key: EvaluationKey,
  { name, lastSeq }: Segment,
  { sql, params }: Statement,
): Promise<Pick<SegmentEvaluation, 'entered' | 'left'> | null> {
  const changesSql = `SELECT coalesce(now.customer_id, before.customer_id)::VARCHAR, now.customer_id IS NOT NULL
      FROM (${sql}) AS now
      FULL JOIN (SELECT customer_id FROM segment_members WHERE segment = $${params.length + 1}) AS before
        ON now.customer_id = before.customer_id
      WHERE now.customer_id IS NULL OR before.customer_id IS NULL
      ORDER BY 1`;
  const changes = await wait(() => connection.stream(changesSql, [...params, name]));
  let entered = 0;
  let left = 0;
  const write = async (some: readonly MemberChange[]): Promise<boolean> => {
    const firstSeq = lastSeq + entered + left + 1;
    for (const { hasEntered } of some) {
      if (hasEntered) entered++;
      else left++;
    }
    return some.length === 0 || store.writeMemberChanges(key, firstSeq, some, Date.now());
  };
  let waiting: MemberChange[] = [];
  const chunks = changes.yieldRows() as AsyncIterator<[string, boolean][], undefined>;
  for (;;) {
    const { value: rows } = await wait(() => chunks.next());
    if (rows === undefined) break;
    for (const [customerId, hasEntered] of rows) waiting.push({ customerId, hasEntered });
    while (waiting.length >= MEMBERSHIPS_AT_ONCE) {
      if (!(await write(waiting.slice(0, MEMBERSHIPS_AT_ONCE)))) return null;
      waiting = waiting.slice(MEMBERSHIPS_AT_ONCE);
    }
  }
  return (await write(waiting)) ? { entered, left } : null;
}
