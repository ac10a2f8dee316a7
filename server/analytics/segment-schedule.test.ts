import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Organisation } from '../store/organisations.ts';
import { evaluateRegularly } from './segment-schedule.ts';

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
    organisations: async () =>
      [1, 2].map((organisation) => ({ organisation, orgId: `o${organisation}` }) as Organisation),
  };
  const analytics = {
    async evaluate({ orgId, segments }: { readonly orgId: string; readonly segments: readonly string[] }) {
      orders.push([orgId, segments]);
      if (orders.length === 2) resolve();
      if (orgId === 'o2') return { running: [] };
      return { kind: 'unavailable' as const, message: 'It is not available.', position: null };
    },
  };
  const schedule = { segmentsEveryMs: 900_000, sqlTimeoutMs: 30_000 };
  const stop = evaluateRegularly(store, analytics, schedule, (error) => errors.push(error));
  await allSent;
  stop();
  assert.deepEqual(orders, [
    ['o1', ['a']],
    ['o2', ['b', 'c']],
  ]);
  assert.match(String(errors), /^Error: It is not available\.$/);
});
