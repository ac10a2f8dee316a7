import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { AnalyticsPaused, CrashSuspects, SUSPECTED_MS } from './crash-suspects.ts';

let folder: string;
let nowMs: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-suspects-'));
  nowMs = 1_000_000;
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Starts a process, whose queries run until it ends. */
function processWith(...orgIds: readonly string[]): CrashSuspects {
  const suspects = new CrashSuspects(
    join(folder, 'socket'),
    () => {},
    () => nowMs,
  );
  for (const orgId of orgIds) suspects.mark(orgId);
  return suspects;
}

/** Returns for how many seconds an organisation is paused. */
function pauseOf(suspects: CrashSuspects, orgId: string): number {
  try {
    suspects.refusePaused(orgId);
    return 0;
  } catch (error) {
    assert.ok(error instanceof AnalyticsPaused);
    return error.retryAfterS;
  }
}

const suspected = (suspects: CrashSuspects): string[] =>
  ['a', 'b', 'c'].filter((orgId) => suspects.isSuspect(orgId));

test('whoever was running is suspected, and paused if the process ends again during its query', () => {
  processWith('a', 'b');
  const second = processWith('b');
  assert.deepEqual(suspected(second), ['a', 'b']);
  second.unmark('b');
  second.mark('a');
  second.mark('c');
  const third = processWith();
  assert.deepEqual([pauseOf(third, 'a'), pauseOf(third, 'b'), pauseOf(third, 'c')], [30, 0, 0]);
  // The others are no longer suspected, because it is known whose query it was.
  assert.deepEqual(suspected(third), ['a']);
});

test('nobody is suspected if the process has ended as it should, or if no query was running', () => {
  const first = processWith('a', 'b');
  first.unmark('a');
  first.removeMarks();
  assert.deepEqual(suspected(processWith()), []);
});

test('a pause doubles with every crash up to ten minutes, and all is forgotten after a while without one', () => {
  processWith('a');
  const pauses: number[] = [];
  for (let crash = 0; crash < 7; crash++) {
    processWith('a');
    const pauseS = pauseOf(processWith(), 'a');
    pauses.push(pauseS);
    nowMs += pauseS * 1000;
    assert.equal(pauseOf(processWith(), 'a'), 0);
  }
  assert.deepEqual(pauses, [30, 60, 120, 240, 480, 600, 600]);
  assert.deepEqual(suspected(processWith()), ['a']);
  nowMs += SUSPECTED_MS;
  processWith('a');
  processWith('a');
  assert.equal(pauseOf(processWith(), 'a'), 30);
});

test('an organisation whose query could not be stopped is paused at once', () => {
  const first = processWith('a', 'b');
  first.accuse(new Set(['a']));
  first.mark('b');
  assert.equal(pauseOf(first, 'a'), 30);
  const second = processWith();
  assert.equal(pauseOf(second, 'a'), 30);
  assert.deepEqual(suspected(second), ['a']);
});

test('if the reason can be one of several, the others are not suspected', () => {
  const first = processWith('a', 'b', 'c');
  first.accuse(new Set(['a', 'c']));
  const second = processWith('a', 'b', 'c');
  assert.deepEqual([suspected(second), pauseOf(second, 'a')], [['a', 'c'], 0]);
  second.accuse(new Set());
  const third = processWith();
  assert.deepEqual([suspected(third), pauseOf(third, 'a'), pauseOf(third, 'c')], [['a', 'b', 'c'], 0, 0]);
  third.mark('a');
  const fourth = processWith();
  assert.deepEqual([suspected(fourth), pauseOf(fourth, 'a')], [['a'], 30]);
});

test('a damaged file and a deleted folder do no harm', () => {
  processWith('a');
  const second = processWith();
  rmSync(folder, { recursive: true });
  second.mark('a');
  second.unmark('a');
  second.accuse(new Set(['a']));
  assert.deepEqual(suspected(processWith('a')), []);
  writeFileSync(join(folder, 'socket.suspects'), '{"b":');
  assert.deepEqual(suspected(processWith()), ['a']);
});
