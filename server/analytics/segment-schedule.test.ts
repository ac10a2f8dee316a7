import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Organisation } from '../store/organisations.ts';
import { evaluateRegularly } from './segment-schedule.ts';

const schedule = { segmentsEveryMs: 900_000, sqlTimeoutMs: 30_000 };

const organisations = async (): Promise<readonly Organisation[]> =>
  [1, 2].map((organisation) => ({ organisation, orgId: `o${organisation}` }) as Organisation);

test('due segments are evaluated, even if those of another organisation cannot be', async () => {
  const orders: unknown[] = [];
  const errors: unknown[] = [];
  const { promise: allSent, resolve } = Promise.withResolvers<void>();
  const store = {
    dueSegments: async () => [
      { organisation: 1, name: 'a' },
      { organisation: 2, name: 'b' },
      { organisation: 2, name: 'c' },
    ],
    organisations,
  };
  const analytics = {
    async evaluate({ orgId, segment }: { readonly orgId: string; readonly segment: string }) {
      orders.push([orgId, segment]);
      if (orders.length === 3) resolve();
      if (orgId === 'o2') return { isRunning: false };
      return { kind: 'unavailable' as const, message: 'It is not available.', position: null };
    },
  };
  const stop = evaluateRegularly(store, analytics, schedule, (error) => errors.push(error));
  await allSent;
  stop();
  assert.deepEqual(orders, [
    ['o1', 'a'],
    ['o2', 'b'],
    ['o2', 'c'],
  ]);
  assert.match(String(errors), /^Error: It is not available\.$/);
});

test('organisations take turns, also one whose segment becomes due later', async () => {
  const due = [1, 2, 3, 4].map((number) => ({ organisation: 1, name: `slow-${number}` }));
  due.push({ organisation: 2, name: 'first' });
  const evaluated: string[] = [];
  const { promise: allEvaluated, resolve } = Promise.withResolvers<void>();
  const store = {
    dueSegments: async () => [...due],
    organisations,
  };
  const analytics = {
    async evaluate({ segment: name }: { readonly segment: string }) {
      evaluated.push(name);
      const at = due.findIndex((segment) => segment.name === name);
      due.splice(at, 1);
      if (name === 'slow-2') due.push({ organisation: 2, name: 'second' });
      if (due.length === 0) resolve();
      return { isRunning: false };
    },
  };
  const stop = evaluateRegularly(store, analytics, schedule, assert.ifError);
  await allEvaluated;
  stop();
  assert.deepEqual(evaluated, ['slow-1', 'first', 'slow-2', 'slow-3', 'second', 'slow-4']);
});

test('a segment that stays due is not tried again at once, and does not delay the others', async () => {
  const tried: string[] = [];
  const due = ['elsewhere', 'a', 'b'].map((name) => ({ organisation: 1, name }));
  const paused = Promise.withResolvers<void>();
  let looks = 0;
  const store = {
    async dueSegments() {
      looks++;
      if (looks === 4) paused.resolve();
      return due;
    },
    organisations,
  };
  const analytics = {
    async evaluate({ segment }: { readonly segment: string }) {
      tried.push(segment);
      return { isRunning: true };
    },
  };
  const stop = evaluateRegularly(store, analytics, schedule, assert.ifError);
  await paused.promise;
  await sleep(50);
  stop();
  assert.equal(looks, 4);
  assert.deepEqual(tried, ['elsewhere', 'a', 'b']);
});

test('an organisation whose evaluation takes long does not delay others', async () => {
  const due = ['a', 'b', 'c'].map((name) => ({ organisation: 2, name }));
  const evaluated: string[] = [];
  const { promise: allEvaluated, resolve } = Promise.withResolvers<void>();
  const slow = Promise.withResolvers<{ isRunning: boolean }>();
  const store = {
    dueSegments: async () => [{ organisation: 1, name: 'slow' }, ...due],
    organisations,
  };
  const analytics = {
    async evaluate({ segment: name }: { readonly segment: string }) {
      evaluated.push(name);
      if (name === 'slow') return slow.promise;
      due.shift();
      if (due.length === 0) resolve();
      return { isRunning: false };
    },
  };
  const stop = evaluateRegularly(store, analytics, schedule, assert.ifError);
  await allEvaluated;
  stop();
  slow.resolve({ isRunning: false });
  assert.deepEqual(evaluated, ['slow', 'a', 'b', 'c']);
});
