import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { GivingWay } from './giving-way.ts';

class StandIn {
  isSuspended = false;
  suspend(): void {
    this.isSuspended = true;
  }
  resume(): void {
    this.isSuspended = false;
  }
}

function ground({ mock }: TestContext) {
  mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  mock.method(performance, 'now', () => nowMs);
  return {
    giving: new GivingWay(),
    pass(ms: number): void {
      nowMs += ms;
      mock.timers.tick(ms);
    },
  };
}

test('a process that has been busy for a while is suspended until the order of another one ends', (t) => {
  const { giving, pass } = ground(t);
  const [long, small] = [new StandIn(), new StandIn()];
  giving.begin(long);
  pass(100);
  giving.begin(small);
  assert.ok(long.isSuspended && !small.isSuspended);
  pass(20);
  giving.end(small);
  assert.ok(!long.isSuspended);
});

test('while the other order goes on, it is suspended half of the time, for a second', (t) => {
  const { giving, pass } = ground(t);
  const [long, other] = [new StandIn(), new StandIn()];
  giving.begin(long);
  pass(100);
  giving.begin(other);
  for (let turn = 0; turn < 5; turn++) {
    assert.equal(long.isSuspended, true);
    pass(99);
    assert.equal(long.isSuspended, true);
    pass(1);
    assert.equal(long.isSuspended, false);
    pass(99);
    assert.equal(long.isSuspended, false);
    pass(1);
  }
  for (let waits = 0; waits < 20; waits++) {
    assert.equal(long.isSuspended, false);
    pass(50);
  }
});

test('it stays suspended while one of two other orders goes on', (t) => {
  const { giving, pass } = ground(t);
  const [long, one, other] = [new StandIn(), new StandIn(), new StandIn()];
  giving.begin(long);
  pass(100);
  giving.begin(one);
  giving.begin(other);
  giving.end(one);
  assert.equal(long.isSuspended, true);
  giving.end(other);
  assert.equal(long.isSuspended, false);
});

test('it runs for 100 ms before it is suspended again for another order', (t) => {
  const { giving, pass } = ground(t);
  const [long, ...others] = Array.from({ length: 3 }, () => new StandIn());
  giving.begin(long!);
  pass(100);
  giving.begin(others[0]!);
  giving.end(others[0]!);
  pass(10);
  giving.begin(others[1]!);
  assert.ok(!long!.isSuspended);
  pass(89);
  assert.ok(!long!.isSuspended);
  pass(1);
  assert.ok(long!.isSuspended);
});

test('one that has just become busy is not suspended', (t) => {
  const { giving, pass } = ground(t);
  const [one, other] = [new StandIn(), new StandIn()];
  giving.begin(one);
  pass(99);
  giving.begin(other);
  for (let waits = 0; waits < 5; waits++) {
    assert.ok(!one.isSuspended && !other.isSuspended);
    pass(50);
  }
});

for (const [when, afterMs] of [
  ['while it is suspended', 0],
  ['between two suspensions', 150],
] as const) {
  test(`one whose orders end ${when} runs, and is not suspended any more`, (t) => {
    const { giving, pass } = ground(t);
    const [long, other] = [new StandIn(), new StandIn()];
    giving.begin(long);
    pass(100);
    giving.begin(other);
    pass(afterMs);
    giving.end(long);
    for (let waits = 0; waits < 5; waits++) {
      assert.equal(long.isSuspended, false);
      pass(50);
    }
  });
}

test('nobody gives way to a second order of the same process', (t) => {
  const { giving, pass } = ground(t);
  const [one, other] = [new StandIn(), new StandIn()];
  giving.begin(one);
  giving.begin(other);
  pass(100);
  giving.begin(other);
  pass(1);
  assert.ok(!one.isSuspended);
});
