// Tests evaluations that are ended, sent again or fail, and those of segments with many changes. tests/segments.test.ts
// tests the others.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OpenedStore, openStore } from '../../store/open-store.ts';
import { KEPT_MEMBER_CHANGES } from '../../store/segments.ts';
import type { EvaluationOrder } from '../analytics-orders.ts';
import { Replica } from '../replica.ts';
import type { ReplicaService } from '../replica-use.ts';
import { evaluateSegment } from './evaluate-segment.ts';

const PROMPT_MS = 3000;

async function segmentIn(t: TestContext): Promise<{
  store: OpenedStore;
  order: EvaluationOrder;
  /** Returns a service with a replica of the store, or of one that behaves differently. */
  serviceOf(store: OpenedStore, onUnusable?: (reason: string) => void): ReplicaService;
  /** Deletes the segment, and asserts that the evaluation then ends soon and without a result. */
  assertEndsWhenDeleted(evaluation: ReturnType<typeof evaluateSegment>): Promise<void>;
}> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-evaluation-'));
  const store = await openStore(join(folder, 'store.db'));
  const opened: Replica[] = [];
  t.after(async () => {
    // Replicas may still write to the folder, so it is removed last.
    for (const replica of opened) await replica.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const orgId = randomUUID();
  const { organisation } = (await store.createOrganisation('acme', orgId, 1))!;
  const conditionJson = '{"customer":"region","is":"DE"}';
  await store.saveSegment(organisation, 0, { name: 'a', note: null, conditionJson, uses: [] }, 1);
  return {
    store,
    serviceOf(of, onUnusable = assert.fail) {
      const replica = newReplica(of, organisation, folder);
      opened.push(replica);
      return { replica, placeWanted: signal, folder, onUse() {}, onStuck, onUnusable };
    },
    order: {
      organisation,
      orgId,
      segment: 'a',
      token: randomUUID(),
      patienceMs: 10_000,
      timeoutMs: 10_000,
    },
    async assertEndsWhenDeleted(evaluation) {
      const deletedAtMs = performance.now();
      assert.ok(await store.deleteSegment(organisation, 1, 'a'));
      assert.deepEqual(await evaluation, { isRunning: false });
      assert.ok(performance.now() - deletedAtMs < PROMPT_MS);
    },
  };
}

function newReplica(store: OpenedStore, organisation: number, folder: string): Replica {
  const options = {
    memoryMb: 200,
    temporaryMb: 500,
    threads: 1,
    temporaryFolder: join(folder, 'tmp'),
    exportFolder: join(folder, 'export'),
  };
  return new Replica(join(folder, 'replica.duckdb'), options, store, organisation, assert.fail);
}

const { signal } = new AbortController();
const onStuck = () => assert.fail('the query is stuck');

test('an evaluation that waits for another one ends when its segment is deleted', async (t) => {
  const { store, order, serviceOf, assertEndsWhenDeleted } = await segmentIn(t);
  const { segments } = await store.segments(order.organisation);
  const other = { ...order, segment: segments[0]!.segment, token: randomUUID() };
  assert.ok(await store.beginEvaluation(other, Date.now()));
  const service = serviceOf(store);
  await assertEndsWhenDeleted(evaluateSegment(service, store, order, signal));
});

test('an order that is sent again does not wait for the evaluation that ended with its process', async (t) => {
  const { store, order, serviceOf } = await segmentIn(t);
  const { segments } = await store.segments(order.organisation);
  const key = { ...order, segment: segments[0]!.segment };
  assert.ok(await store.beginEvaluation(key, Date.now()));
  const service = serviceOf(store);
  const impatient = { ...order, patienceMs: 0 };
  assert.deepEqual(await evaluateSegment(service, store, impatient, signal), { isRunning: false });
  const [evaluated] = (await store.segments(order.organisation)).segments;
  assert.notEqual(evaluated!.evaluation, null);
});

/** Returns a service whose replica waits for its store until it is released. */
function waitingService({ store, serviceOf }: Awaited<ReturnType<typeof segmentIn>>) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const slow = changed(store, {
    async latestEntry(organisation) {
      reached.resolve();
      await released.promise;
      return store.latestEntry(organisation);
    },
  });
  return { service: serviceOf(slow), reached, released };
}

function changed(store: OpenedStore, methods: Partial<OpenedStore>): OpenedStore {
  return Object.assign(Object.create(store) as OpenedStore, methods);
}

test('an evaluation ends when its segment is deleted while it runs', async (t) => {
  const segment = await segmentIn(t);
  const { store, order, assertEndsWhenDeleted } = segment;
  const { service, reached, released } = waitingService(segment);
  const evaluation = evaluateSegment(service, store, order, signal);
  await reached.promise;
  await assertEndsWhenDeleted(evaluation).finally(released.resolve);
});

test('an evaluation renews its token again only when the store has answered', async (t) => {
  const segment = await segmentIn(t);
  const { store, order } = segment;
  const { service, released } = waitingService(segment);
  let renewals = 0;
  const slow = changed(store, {
    async writeMemberChanges(...args) {
      renewals++;
      await released.promise;
      return store.writeMemberChanges(...args);
    },
  });
  const evaluation = evaluateSegment(service, slow, order, signal);
  await sleep(3500);
  released.resolve();
  assert.equal(renewals, 1);
  assert.deepEqual(await evaluation, { isRunning: false });
});

/** Gives the segment more changes than are kept. The departures have the given numbers after its first change. */
async function addManyChanges(store: OpenedStore, organisation: number, leftAfter: readonly number[]) {
  const [known] = (await store.segments(organisation)).segments;
  const lastSeq = known!.lastSeq + KEPT_MEMBER_CHANGES + 100;
  const departures = leftAfter.map((seq) => ({
    customerId: randomUUID(),
    enteredSeq: known!.lastSeq + 1,
    sinceMs: 1,
    leftSeq: known!.lastSeq + seq,
    leftAtMs: Date.now(),
  }));
  assert.ok(await store.deleteSegment(organisation, 1, 'a'));
  await store.removeMemberships(organisation, known!.segment);
  await store.copyMemberships(organisation, known!.segment, departures);
  await store.copySegment(organisation, 1, { ...known!, lastSeq }, '{"customer":"region","is":"DE"}');
  return known!;
}

test('an evaluation deletes departures if a segment has too many changes', async (t) => {
  const { store, order, serviceOf } = await segmentIn(t);
  const { organisation } = order;
  const known = await addManyChanges(store, organisation, [20, 40, 100, 101, 500]);
  const service = serviceOf(store);
  assert.deepEqual(await evaluateSegment(service, store, order, signal), { isRunning: false });
  const [evaluated] = (await store.segments(organisation)).segments;
  assert.equal(evaluated!.failure, null);
  assert.equal(evaluated!.keptAfterSeq, known.lastSeq + 100);
  const kept = await store.memberships(organisation, known.segment, null, 10);
  assert.deepEqual(kept.map(({ leftSeq }) => leftSeq! - known.lastSeq).toSorted(), [101, 500]);
});

test('an evaluation that cannot delete departures ends, and says why', async (t) => {
  const { store, order, serviceOf } = await segmentIn(t);
  await addManyChanges(store, order.organisation, []);
  const failing = changed(store, {
    expireMembershipsUpTo: () => Promise.reject(new Error('the disk is full')),
  });
  const reports: string[] = [];
  const service = serviceOf(store, (reason) => reports.push(reason));
  assert.deepEqual(await evaluateSegment(service, failing, order, signal), { isRunning: false });
  const [failed] = (await store.segments(order.organisation)).segments;
  assert.match(failed!.failure!.reason, /the disk is full/);
  assert.deepEqual(reports, ['the disk is full']);
});
