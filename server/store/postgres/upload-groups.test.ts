import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailable } from '../store.ts';
import { GivenUp } from './errors.ts';
import { groupUploads } from './upload-groups.ts';

const SLOW_AFTER_MS = 100;

interface TestUpload {
  readonly organisation: number;
  readonly keys: readonly string[];
}

/** Returns a slow writer that records its groups, and fails for the keys `bad` and `gone`. */
function recorder() {
  const groups: string[][] = [];
  let running = 0;
  let mostRunning = 0;
  const add = groupUploads<TestUpload, string>(
    {
      organisationOf: ({ organisation }) => organisation,
      keysOf: ({ keys }) => keys,
      async write(organisation, group) {
        groups.push(group.map(({ keys }) => keys.join(' ')));
        mostRunning = Math.max(mostRunning, ++running);
        const keys = group.flatMap((upload) => upload.keys);
        await sleep(keys.includes('slow') ? SLOW_AFTER_MS * 5 : 5);
        running--;
        if (keys.includes('locked')) throw new GivenUp({ cause: null });
        if (keys.includes('bad')) throw new Error('a bad upload');
        if (keys.includes('gone')) throw new StoreUnavailable('gone');
        return group.map((upload) => `${organisation}: ${upload.keys.join(' ')}`);
      },
    },
    SLOW_AFTER_MS,
  );
  return { groups, add, mostRunning: () => mostRunning };
}

function uploadOf(...keys: string[]): TestUpload {
  return { organisation: 1, keys };
}

describe('small uploads of an organisation', () => {
  test('that arrive together are written together, and each gets its own result', async () => {
    const { groups, add } = recorder();
    const results = await Promise.all([add(uploadOf('a')), add(uploadOf('b', 'c')), add(uploadOf('d'))]);
    assert.deepEqual(results, ['1: a', '1: b c', '1: d']);
    assert.deepEqual(groups, [['a', 'b c', 'd']]);
  });

  test('that arrive during a write form the next group', async () => {
    const { groups, add, mostRunning } = recorder();
    const first = add(uploadOf('a'));
    await sleep(2);
    await Promise.all([first, add(uploadOf('b')), add(uploadOf('c'))]);
    await add(uploadOf('d'));
    assert.deepEqual(groups, [['a'], ['b', 'c'], ['d']]);
    assert.equal(mostRunning(), 1);
  });

  test('with the same key are written one after the other, in order', async () => {
    const { groups, add } = recorder();
    await Promise.all([add(uploadOf('a')), add(uploadOf('a', 'b')), add(uploadOf('b')), add(uploadOf('c'))]);
    assert.deepEqual(groups, [['a', 'b', 'c'], ['a b']]);
  });

  test('do not fail because of a faulty one', async () => {
    const { add } = recorder();
    const outcomes = await Promise.allSettled([add(uploadOf('a')), add(uploadOf('bad')), add(uploadOf('b'))]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
  });

  test('all fail if the store is unavailable, and later ones are written', async () => {
    const { groups, add } = recorder();
    const outcomes = await Promise.allSettled([add(uploadOf('a')), add(uploadOf('gone'))]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await add(uploadOf('b')), '1: b');
    assert.equal(groups.length, 2);
  });

  test('are written one by one if another transaction keeps them from being written together', async () => {
    const { groups, add } = recorder();
    const outcomes = await Promise.allSettled([
      add(uploadOf('a')),
      add(uploadOf('locked')),
      add(uploadOf('b')),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(groups, [['a', 'locked', 'b'], ['a'], ['locked'], ['b']]);
  });

  test('do not wait long for a group that hangs', async () => {
    const { groups, add } = recorder();
    const hanging = add(uploadOf('slow'));
    await sleep(2);
    assert.equal(await add(uploadOf('b')), '1: b');
    assert.deepEqual(groups, [['slow'], ['b']]);
    assert.equal(await hanging, '1: slow');
  });

  test('do not wait for those of another organisation', async () => {
    const { groups, add, mostRunning } = recorder();
    await Promise.all([add(uploadOf('a')), add({ organisation: 2, keys: ['a'] })]);
    assert.deepEqual(groups, [['a'], ['a']]);
    assert.equal(mostRunning(), 2);
  });
});
