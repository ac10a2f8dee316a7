// Tests who gets a place. The processes are stand-ins, because the order in which organisations take turns does not
// depend on what a process does. analytics-link.test.ts and tests/analytics-crashes.test.ts test real ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { OrderRefusal } from './analytics-orders.ts';
import { MOST_PLACES, Places } from './places.ts';
import { NotStarted, type StartedReplicaProcess } from './started-replica-process.ts';

class StandIn {
  readonly #ended = Promise.withResolvers<string>();
  readonly ended = this.#ended.promise;
  readonly ready: Promise<void>;
  hasStarted = true;
  hasEnded = false;
  isReusable = true;
  usedBytes = 100;
  quietLooks = 0;
  isWanted = false;
  isSuspended = false;
  closes = 0;

  constructor(reason: string | null) {
    this.hasStarted = reason === null;
    this.ready = reason === null ? Promise.resolve() : Promise.reject(new NotStarted(reason));
    if (reason !== null) this.end('exit code 1');
  }

  wantPlace(): void {
    this.isWanted = true;
  }

  async close(): Promise<void> {
    this.closes++;
  }

  countQuietLook(): number {
    return this.quietLooks++;
  }

  async endOnceSent(): Promise<void> {
    this.kill();
  }

  suspend(): void {
    this.isSuspended = true;
  }

  resume(): void {
    this.isSuspended = false;
  }

  kill(): void {
    this.end('SIGKILL');
  }

  end(reason: string): void {
    this.hasEnded = true;
    this.#ended.resolve(reason);
  }
}

function newPlaces() {
  const processes: StandIn[] = [];
  const reports: string[] = [];
  const given = { processes, reports, failure: null as string | null };
  const places = new Places({
    startProcess() {
      const process = new StandIn(given.failure);
      processes.push(process);
      return process as unknown as StartedReplicaProcess;
    },
    mostBytes: 1000,
    report: (line) => reports.push(line),
  });
  return Object.assign(given, {
    places,
    /** Uses a place until told to end, or until its process ends. */
    async use(orgId: string, left: AbortSignal = new AbortController().signal) {
      const { promise: told, resolve: end } = Promise.withResolvers<void>();
      const used = {
        process: null as StandIn | null,
        end,
        refusal: Promise.resolve<OrderRefusal | null>(null),
      };
      used.refusal = places.with(orgId, left, (process) => {
        used.process = process as unknown as StandIn;
        return Promise.race([told.then(() => true), process.ended.then(() => false)]);
      });
      await nextTurn();
      return used;
    },
  });
}

const isRunning = ({ process }: { readonly process: StandIn | null }): boolean => process !== null;

test('an organisation that waits gets the place that was taken first, before that one gets it again', async () => {
  const { use } = newPlaces();
  const first = await use('0');
  const others = [];
  for (let n = 1; n < MOST_PLACES; n++) others.push(await use(String(n)));
  assert.equal(first.process!.isWanted, false);
  const waiting = await use('new');
  const again = await use('0');
  assert.deepEqual([isRunning(waiting), isRunning(again), first.process!.isWanted], [false, false, true]);
  assert.ok(others.every(({ process }) => process !== null && !process.isWanted));
  first.end();
  await first.refusal;
  await nextTurn();
  assert.deepEqual([isRunning(waiting), isRunning(again)], [true, false]);
  // The process has closed the replica and can be used again.
  assert.equal(waiting.process, first.process);
  assert.equal(first.process!.closes, 1);
  for (const used of [waiting, ...others, again]) used.end();
  await again.refusal;
  assert.ok(isRunning(again));
});

test('an organisation has at most four queries at once, from all servers together', async () => {
  const { use } = newPlaces();
  const uses = [];
  for (let n = 0; n < 5; n++) uses.push(await use('0'));
  assert.deepEqual(uses.map(isRunning), [true, true, true, true, false]);
  assert.equal(new Set(uses.slice(0, 4).map(({ process }) => process)).size, 1);
  const other = await use('1');
  assert.notEqual(other.process, uses[0]!.process);
  uses[0]!.end();
  await uses[0]!.refusal;
  await nextTurn();
  assert.ok(isRunning(uses[4]!));
  for (const used of [...uses, other]) used.end();
  await Promise.all(uses.map(({ refusal }) => refusal));
});

test('a query whose client leaves no longer waits for a place', async () => {
  const { use } = newPlaces();
  const uses = [];
  for (let n = 0; n < 4; n++) uses.push(await use('0'));
  const left = new AbortController();
  const waiting = await use('0', left.signal);
  left.abort();
  assert.match((await waiting.refusal)!.message, /Too many queries/);
  for (const used of uses) used.end();
});

test('one process more than are in use is ready, up to the number of places', async () => {
  const { processes, use } = newPlaces();
  assert.equal(processes.length, 1);
  for (const [n, started] of [2, 3, 4, 4].entries()) {
    await use(String(n));
    assert.equal(processes.length, started);
  }
});

test('an organisation is paused if the process of its queries ends, and nobody else is', async () => {
  const { use, reports } = newPlaces();
  const [hostile, together, other] = [await use('a'), await use('a'), await use('b')];
  hostile.process!.end('SIGSEGV');
  for (const { refusal } of [hostile, together]) {
    assert.match((await refusal)!.message, /ended the process .* paused for this organisation for 30 s/);
  }
  assert.equal((await (await use('a')).refusal)!.retryAfterS, 30);
  const again = await use('b');
  assert.equal(again.process, other.process);
  for (const used of [other, again]) used.end();
  assert.equal(await other.refusal, null);
  assert.deepEqual(reports, [
    "organisation a: its queries' process ended unexpectedly (SIGSEGV); its analytics is paused for 30 s",
  ]);
});

test('if the processes use too much memory, the one that uses most is ended', async () => {
  const { places, processes, use, reports } = newPlaces();
  const [small, large] = [await use('a'), await use('b')];
  assert.equal(processes.length, 3);
  large.process!.usedBytes = 800;
  places.look();
  assert.deepEqual(reports, []);
  large.process!.usedBytes = 801;
  places.look();
  assert.match((await large.refusal)!.message, /needed too much memory/);
  assert.deepEqual(reports, [
    'organisation b: its queries needed too much memory; its analytics is paused for 30 s',
  ]);
  small.process!.usedBytes = 400;
  processes[2]!.usedBytes = 601;
  places.look();
  await processes[2]!.ended;
  assert.deepEqual([small.process!.hasEnded, processes[2]!.hasEnded, reports.length], [false, true, 1]);
  small.end();
  assert.equal(await small.refusal, null);
});

test('a process is ended if it hangs, also while it closes its replica', async (t) => {
  const { places, use, reports } = newPlaces();
  const [hanging, closing] = [await use('a'), await use('b')];
  hanging.process!.quietLooks = 300;
  places.look();
  assert.equal(hanging.process!.hasEnded, false);
  places.look();
  assert.match((await hanging.refusal)!.message, /paused/);
  t.mock.method(closing.process!, 'close', () => closing.process!.ended);
  for (const orgId of ['c', 'd', 'e']) await use(orgId);
  const waiting = await use('f');
  closing.end();
  assert.equal(await closing.refusal, null);
  closing.process!.quietLooks = 301;
  await nextTurn();
  assert.equal(isRunning(waiting), false);
  places.look();
  await closing.process!.ended;
  await nextTurn();
  assert.ok(isRunning(waiting));
  // The organisation of a replica that is being closed has done nothing.
  assert.equal(reports.length, 1);
  assert.match(reports[0]!, /^organisation a: its queries' process does not respond; /);
});

test('a process with much memory, or whose file is still open, is not used again', async () => {
  const left: readonly Partial<StandIn>[] = [
    { usedBytes: (1000 / MOST_PLACES) * 0.75 + 1 },
    { isReusable: false },
  ];
  for (const state of left) {
    const { use } = newPlaces();
    const first = await use('0');
    for (let n = 1; n < MOST_PLACES; n++) await use(String(n));
    const waiting = await use('new');
    Object.assign(first.process!, state);
    first.end();
    await first.refusal;
    await nextTurn();
    assert.ok(first.process!.hasEnded);
    assert.ok(isRunning(waiting));
    assert.notEqual(waiting.process, first.process);
  }
});

test('after a failed start, orders are refused for five seconds before the next start', async (t) => {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const given = newPlaces();
  const { use, processes } = given;
  const first = await use('a');
  given.failure = 'it is broken';
  first.process!.end('SIGKILL');
  await nextTurn();
  // The spare process was started before.
  const second = await use('b');
  second.end();
  assert.equal(await second.refusal, null);
  await nextTurn();
  const started = processes.length;
  const message = 'Analytics is not available: it is broken';
  for (let times = 0; times < 3; times++)
    assert.equal((await (await use(`c${times}`)).refusal)!.message, message);
  assert.equal(processes.length, started);
  nowMs += 5001;
  assert.equal((await (await use('d')).refusal)!.message, message);
  assert.equal(processes.length, started + 1);
  assert.equal(given.reports.at(-1), 'a process for queries could not be started: it is broken');
  nowMs += 5001;
  given.failure = null;
  const last = await use('e');
  assert.ok(isRunning(last));
  last.end();
});
