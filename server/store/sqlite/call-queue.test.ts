import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CallQueue, type Weighed } from './call-queue.ts';

interface Item extends Weighed {
  readonly name: string;
}

function item(name: string, organisation: number | null, weight = 1): Item {
  return { name, organisation, weight };
}

function items(count: number, name: string, organisation: number | null, weight = 1): Item[] {
  return Array.from({ length: count }, (_, n) => item(`${name}${n + 1}`, organisation, weight));
}

function queueOf(groupWeight: number, waiting: readonly Item[]): CallQueue<Item> {
  const queue = new CallQueue<Item>(groupWeight);
  for (const one of waiting) queue.push(one);
  return queue;
}

function namesIn(group: readonly Item[]): string {
  return group.map(({ name }) => name).join(' ');
}

test('the calls of a single organisation are taken in order, group by group', () => {
  const queue = queueOf(100, items(5, 'a', 1, 50));
  assert.equal(namesIn(queue.takeGroup()), 'a1 a2');
  assert.equal(namesIn(queue.takeGroup()), 'a3 a4');
  assert.equal(namesIn(queue.takeGroup()), 'a5');
  assert.equal(queue.size, 0);
  assert.deepEqual(queue.takeGroup(), []);
});

test('a call that is heavier than a group is taken alone', () => {
  const queue = queueOf(100, items(2, 'a', 1, 5000));
  assert.equal(namesIn(queue.takeGroup()), 'a1');
  assert.equal(namesIn(queue.takeGroup()), 'a2');
});

test('light calls of other organisations form the next group, without heavy ones', () => {
  const queue = queueOf(5000, items(16, 'a', 1, 5000));
  queue.takeGroup();
  for (const light of [...items(3, 'b', 2), item('c', 3, 100)]) queue.push(light);
  assert.deepEqual(namesIn(queue.takeGroup()).split(' ').toSorted(), ['b1', 'b2', 'b3', 'c']);
  assert.equal(namesIn(queue.takeGroup()), 'a2');
  queue.push(item('b4', 2));
  assert.equal(namesIn(queue.takeGroup()), 'b4');
});

test('calls that are put back keep their order, and waiting organisations come first', () => {
  const queue = queueOf(1000, items(4, 'a', 1, 300));
  const group = queue.takeGroup();
  assert.equal(namesIn(group), 'a1 a2');
  queue.push(item('b1', 2));
  queue.putBack(group.slice(1));
  assert.equal(queue.size, 4);
  assert.equal(namesIn(queue.takeGroup()), 'b1');
  assert.equal(namesIn(queue.takeGroup()), 'a2 a3');
});

test('a group is awaited if a small call of another organisation waits', () => {
  const queue = queueOf(5000, items(3, 'a', 1, 5000));
  const group = queue.takeGroup();
  queue.push(item('a4', 1));
  queue.push(item('b1', 2, 5000));
  assert.equal(queue.isAwaited(group), false);
  queue.push(item('c1', 3));
  assert.equal(queue.isAwaited(group), true);
});

test('a group never mixes small and large calls, however many small ones wait', () => {
  const queue = queueOf(20_000, [...items(5, 'b', 2, 100), ...items(4, 'a', 1, 5000)]);
  queue.push(item('a5', 1));
  const groups = [queue.takeGroup(), queue.takeGroup(), queue.takeGroup()].map(namesIn);
  for (const names of groups) assert.ok(!(names.includes('b') && names.includes('a1')), groups.join(' | '));
  assert.equal(groups[0], 'b1 b2 b3 b4 b5');
});

test('calls without an organisation are taken first', () => {
  const queue = queueOf(100, [...items(3, 'a', 1), ...items(2, 'key', null)]);
  assert.equal(namesIn(queue.takeGroup()), 'key1 key2 a1 a2 a3');
});

test('a heavy call is taken even if small calls keep arriving', () => {
  for (const small of [item('key', null), item('b', 2)]) {
    const queue = queueOf(5000, [item('a', 1, 5000)]);
    const groups = Array.from({ length: 3 }, () => {
      queue.push(small);
      return namesIn(queue.takeGroup());
    });
    assert.ok(groups.join(' ').split(' ').includes('a'), groups.join(', '));
  }
});

test('while heavy calls may not be taken, light calls of other organisations are', () => {
  const queue = queueOf(5000, [item('a1', 1, 5000), item('a2', 1), item('key', null), ...items(2, 'b', 2)]);
  assert.equal(namesIn(queue.takeGroup(() => false)), 'key b1 b2');
  assert.equal(namesIn(queue.takeGroup(() => false)), '');
  assert.equal(queue.size, 2);
  assert.equal(namesIn(queue.takeGroup()), 'a1');
});

test('heavy calls of two organisations take turns', () => {
  const queue = queueOf(100, [...items(3, 'a', 1, 100), ...items(3, 'b', 2, 100)]);
  const groups = Array.from({ length: 6 }, () => namesIn(queue.takeGroup()));
  assert.deepEqual(groups, ['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
});

test('organisations that always have waiting calls get equal shares of the weight', () => {
  const weights = [1, 30, 100, 500, 2500];
  const queue = new CallQueue<Item>(5000);
  const refill = (organisation: number): void =>
    queue.push(item(`o${organisation}`, organisation, weights[organisation]!));
  weights.forEach((weight, organisation) => {
    for (let waiting = 0; waiting < 20_000; waiting += weight) refill(organisation);
  });
  const shares = weights.map(() => 0);
  for (let group = 0; group < 100; group++) {
    for (const { organisation, weight } of queue.takeGroup()) {
      shares[organisation!]! += weight;
      refill(organisation!);
    }
  }
  const [least, most] = [Math.min(...shares), Math.max(...shares)];
  assert.ok(most - least <= 2 * Math.max(...weights), String(shares));
});

test('every call is taken once, in order within its organisation, in groups of limited weight', () => {
  const anyItems = fc.array(
    fc.record({
      organisation: fc.option(fc.integer({ min: 1, max: 5 })),
      weight: fc.integer({ min: 1, max: 300 }),
    }),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(anyItems, (drawn) => {
      const waiting = drawn.map(({ organisation, weight }, at) => item(String(at), organisation, weight));
      const queue = queueOf(100, waiting);
      const taken: Item[] = [];
      while (queue.size > 0) {
        const group = queue.takeGroup();
        assert.ok(group.length > 0);
        const owned = group.filter(({ organisation }) => organisation !== null);
        const weight = owned.reduce((sum, one) => sum + one.weight, 0);
        assert.ok(weight < 100 + Math.max(0, ...owned.map((one) => one.weight)), `a group of ${weight}`);
        taken.push(...group);
      }
      for (const organisation of [null, 1, 2, 3, 4, 5]) {
        const ofIt = (all: readonly Item[]) => all.filter((one) => one.organisation === organisation);
        assert.deepEqual(ofIt(taken), ofIt(waiting));
      }
    }),
  );
});

test('small calls of several organisations that take long do not wait for each other', () => {
  const shared = queueOf(1000, [item('a', 1, 100), item('b', 2)]);
  const group = shared.takeGroup();
  assert.equal(shared.isAwaited(group, 10), false);
  assert.equal(shared.isAwaited(group, 100), true);
  const ofOne = queueOf(1000, items(2, 'a', 1, 100));
  assert.equal(ofOne.isAwaited(ofOne.takeGroup(), 100), false);
  const large = queueOf(1000, [item('a', 1, 300), item('b', 2, 300)]);
  assert.equal(large.isAwaited(large.takeGroup(), 100), false);
});
