import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FairQueue } from './fair-queue.ts';

function drain(queue: FairQueue<string>, cost: (item: string) => [number, number]): string[] {
  const served: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
    served.push(item);
    queue.charge(...cost(item));
  }
  return served;
}

describe('FairQueue', () => {
  test('returns the items of one organisation in order', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a', 'b', 'c']) queue.push(1, item);
    assert.equal(queue.size, 3);
    assert.deepEqual(
      drain(queue, () => [1, 1]),
      ['a', 'b', 'c'],
    );
    assert.equal(queue.size, 0);
  });

  test('serves an organisation that was not waiting next, however many items of others wait', () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 100; n++) queue.push(1, `greedy ${n}`);
    for (let n = 0; n < 10; n++) {
      queue.shift();
      queue.charge(1, 1000);
    }
    queue.push(2, 'modest');
    assert.equal(queue.shift(), 'modest');
  });

  test('shares turns by cost, not by number of items', () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 3; n++) queue.push(1, `large ${n}`);
    for (let n = 0; n < 6; n++) queue.push(2, `small ${n}`);
    const served = drain(queue, (item) => (item.startsWith('large') ? [1, 300] : [2, 100]));
    assert.deepEqual(served.slice(0, 6), ['large 0', 'small 0', 'small 1', 'small 2', 'large 1', 'small 3']);
  });

  test('gives an organisation no credit for the time when it had no items', () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 10; n++) {
      queue.push(1, `early ${n}`);
      queue.shift();
      queue.charge(1, 100);
    }
    for (let n = 0; n < 3; n++) {
      queue.push(1, `first ${n}`);
      queue.push(2, `second ${n}`);
    }
    const served = drain(queue, (item) => [item.startsWith('first') ? 1 : 2, 100]);
    assert.deepEqual(served, ['second 0', 'first 0', 'second 1', 'first 1', 'second 2', 'first 2']);
  });

  test('skips an organisation that may not be served now', () => {
    const queue = new FairQueue<string>();
    queue.push(1, 'held');
    queue.push(2, 'free');
    assert.equal(
      queue.shift((organisation) => organisation !== 1),
      'free',
    );
    assert.equal(
      queue.shift((organisation) => organisation !== 1),
      undefined,
    );
    assert.equal(queue.shift(), 'held');
  });
});
