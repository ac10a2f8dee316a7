import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  hasFailed,
  newThreadHealth,
  noteFailed,
  STALLED_AFTER_S,
  stalledForS,
  withHealth,
} from './thread-health.ts';
import type { ThreadService } from './thread-loop.ts';

const idle: ThreadService = {
  groupRows: 1,
  patienceMs: 1000,
  mayBeginLarge: () => true,
  run: () => [],
  betweenGroups() {},
  async close() {},
};

function nowS(): number {
  return process.hrtime()[0];
}

test('a thread that takes too long for one step is stalled, and an idle one is not', () => {
  const health = newThreadHealth();
  const service = withHealth(idle, health);
  assert.equal(stalledForS(health, nowS() + 1000), null);
  service.run([], () => false);
  assert.equal(stalledForS(health), null);
  assert.equal(stalledForS(health, nowS() + STALLED_AFTER_S - 1), null);
  assert.ok(stalledForS(health, nowS() + STALLED_AFTER_S + 2)! > STALLED_AFTER_S);
  service.betweenGroups();
  assert.equal(stalledForS(health, nowS() + 1000), null);
});

test('a step between groups can be stalled, too', () => {
  const health = newThreadHealth();
  const seen: (number | null)[] = [];
  const betweenGroups = (): void => {
    seen.push(stalledForS(health, nowS() + STALLED_AFTER_S + 2));
  };
  const service = withHealth({ ...idle, betweenGroups }, health);
  service.run([], () => false);
  service.betweenGroups();
  assert.notEqual(seen[0], null);
});

test('a restarted thread does not inherit the health of its predecessor', () => {
  const health = newThreadHealth();
  withHealth(idle, health).run([], () => false);
  noteFailed(health, true);
  withHealth(idle, health);
  assert.equal(hasFailed(health), false);
  assert.equal(stalledForS(health, nowS() + 1000), null);
});
