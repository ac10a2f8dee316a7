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
    pass(99);
    assert.ok(long.isSuspended);
    pass(1);
    assert.ok(!long.isSuspended);
    pass(99);
    assert.ok(!long.isSuspended);
    pass(1);
    assert.equal(long.isSuspended, true);
  }
  pass(1000);
  assert.ok(!long.isSuspended && !other.isSuspended);
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
  assert.ok(!one.isSuspended);
});

test('one whose orders have ended is resumed, and is not suspended any more', (t) => {
  const { giving, pass } = ground(t);
  const [long, small] = [new StandIn(), new StandIn()];
  giving.begin(long);
  pass(100);
  giving.begin(small);
  giving.end(long);
  assert.ok(!long.isSuspended);
  giving.end(small);
  pass(100);
  giving.begin(small);
  assert.ok(!long.isSuspended);
});

test('nobody gives way to a second order of the same process', (t) => {
  const { giving, pass } = ground(t);
  const [one, other] = [new StandIn(), new StandIn()];
  giving.begin(one);
  giving.begin(other);
  pass(100);
  giving.begin(other);
  assert.ok(!one.isSuspended);
});
