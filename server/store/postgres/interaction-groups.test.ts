import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailable } from '../store.ts';
import { GivenUp } from './errors.ts';
import { groupWrites, type SentInteraction } from './interaction-groups.ts';
import type { RowOutcome } from './upserts.ts';

function numbered(count: number): readonly SentInteraction[] {
  return Array.from({ length: count }, (_, n) => ({ organisation: 1, row: [n], entry: null }));
}

/** Returns a slow writer that records the sizes of its groups, and fails for the rows `bad` and `gone`. */
function recorder(): {
  groups: number[];
  write(group: readonly SentInteraction[]): Promise<readonly RowOutcome[]>;
} {
  const groups: number[] = [];
  return {
    groups,
    async write(group) {
      groups.push(group.length);
      await sleep(5);
      if (group.some(({ row }) => row[0] === 'bad')) throw new Error('a bad row');
      if (group.some(({ row }) => row[0] === 'gone')) throw new StoreUnavailable('gone');
      return group.map(({ row }) => (Number(row[0]) % 2 === 0 ? 'created' : 'unchanged'));
    },
  };
}

describe('writes that arrive together', () => {
  test('are made in one group, and each gets its own result', async () => {
    const { groups, write } = recorder();
    const add = groupWrites(write);
    const fates = await Promise.all(numbered(100).map(add));
    assert.deepEqual(groups, [100]);
    assert.deepEqual(fates.slice(0, 3), ['created', 'unchanged', 'created']);
  });

  test('during another group wait for it, and form the next group', async () => {
    const { groups, write } = recorder();
    const add = groupWrites(write);
    const first = numbered(1).map(add);
    await sleep(2);
    const later = numbered(50).map(add);
    await Promise.all([...first, ...later]);
    assert.deepEqual(groups, [1, 50]);
  });

  test('form groups of limited size', async () => {
    const { groups, write } = recorder();
    const add = groupWrites(write);
    await Promise.all(numbered(1200).map(add));
    assert.deepEqual(groups, [500, 500, 200]);
  });

  test('do not fail because one of them fails', async () => {
    const { write } = recorder();
    const add = groupWrites(write);
    const rows = numbered(20).map((owned, n) => (n === 13 ? { ...owned, row: ['bad'] } : owned));
    const outcomes = await Promise.allSettled(rows.map(add));
    const failed = outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []));
    assert.deepEqual(failed, [13]);
  });

  test('all fail without a retry if the database is unavailable, and later ones are tried', async () => {
    const { groups, write } = recorder();
    const add = groupWrites(write);
    const rows = numbered(20).map((owned, n) => ({
      ...owned,
      organisation: n % 3,
      row: n === 13 ? ['gone'] : owned.row,
    }));
    const outcomes = await Promise.allSettled(rows.map(add));
    assert.ok(outcomes.every(({ status }) => status === 'rejected'));
    assert.deepEqual(groups, [20]);
    assert.equal(await add({ organisation: 1, row: [2], entry: null }), 'created');
  });
});

describe('writes of several organisations that arrive together', () => {
  const HANGS = 3;
  const rowsOf = (organisations: readonly number[]): SentInteraction[] =>
    organisations.map((organisation, n) => ({ organisation, row: [n], entry: null }));

  /** Returns a writer that fails for one organisation, as a Citus cluster does if a worker is down. */
  function withoutOne(): { groups: (number | null)[]; write: Parameters<typeof groupWrites>[0] } {
    const groups: (number | null)[] = [];
    return {
      groups,
      async write(group, owner) {
        groups.push(owner);
        await sleep(5);
        if (group.some(({ organisation }) => organisation === HANGS)) throw new GivenUp({});
        return group.map(() => 'created');
      },
    };
  }

  const failedOf = async (
    rows: readonly SentInteraction[],
    add: (owned: SentInteraction) => Promise<RowOutcome>,
  ) => {
    const outcomes = await Promise.allSettled(rows.map(add));
    return rows.flatMap(({ organisation }, n) => (outcomes[n]!.status === 'rejected' ? [organisation] : []));
  };

  test('fail only for the organisation that is not served, after one retry per organisation', async () => {
    const { groups, write } = withoutOne();
    const add = groupWrites(write);
    assert.deepEqual(await failedOf(rowsOf([1, 2, HANGS, 1, HANGS]), add), [HANGS, HANGS]);
    assert.deepEqual(groups, [null, 1, 2, HANGS]);
  });

  test('are grouped again later, without the organisation that was not served', async () => {
    const { groups, write } = withoutOne();
    const add = groupWrites(write);
    await failedOf(rowsOf([1, 2, HANGS]), add);
    groups.length = 0;
    for (let round = 0; round < 2; round++) {
      assert.deepEqual(await failedOf(rowsOf([1, 2, HANGS]), add), [HANGS]);
    }
    assert.deepEqual(groups, [null, HANGS, null, HANGS]);
  });

  test('wait only briefly for a group that hangs, and then form another group', async () => {
    const hanging = Promise.withResolvers<void>();
    const groups: (number | null)[] = [];
    const add = groupWrites(async (group, owner) => {
      groups.push(owner);
      if (group.some(({ organisation }) => organisation === HANGS)) await hanging.promise;
      return group.map(() => 'created');
    }, 20);
    const first = rowsOf([HANGS, 1]).map(add);
    await sleep(5);
    assert.deepEqual(await Promise.all(rowsOf([2, 4]).map(add)), ['created', 'created']);
    assert.equal(await add({ organisation: 1, row: [9], entry: null }), 'created');
    const behind = add({ organisation: HANGS, row: [9], entry: null });
    await sleep(5);
    assert.deepEqual(groups, [null, null, 1, HANGS]);
    hanging.resolve();
    await Promise.all([...first, behind]);
  });
});
