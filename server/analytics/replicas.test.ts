import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Store } from '../store/store.ts';
import type { CrashSuspects } from './crash-suspects.ts';
import { MemoryTakers } from './memory-takers.ts';
import { MOST_OPEN_REPLICAS, Replicas, ReplicasBusy } from './replicas.ts';

const options = { memoryMb: 1, temporaryMb: 1, threads: 1, temporaryFolder: '', exportFolder: '' };

const memoryTakers = new MemoryTakers(() => 0);

function suspecting(...orgIds: readonly string[]): CrashSuspects {
  const isSuspect = (orgId: string): boolean => orgIds.includes(orgId);
  return { isSuspect, refusePaused() {}, mark() {}, unmark() {} } as unknown as CrashSuspects;
}

/** Uses replicas, without opening them, until told to end. */
function replicasInUse(suspects = suspecting()) {
  const replicas = new Replicas({} as Store, '/nowhere', options, suspects, memoryTakers, () => {});
  return {
    close: () => replicas.close(),
    async use(orgId: string, left: AbortSignal = new AbortController().signal) {
      const { promise, resolve: end } = Promise.withResolvers<void>();
      const used = { isRunning: false, wanted: new AbortController().signal, end, ended: promise };
      used.ended = replicas.with(1, orgId, left, (_replica, wanted) => {
        Object.assign(used, { isRunning: true, wanted });
        return promise;
      });
      await nextTurn();
      return used;
    },
  };
}

test('an organisation that waits gets the place that was taken first, before that one gets it again', async () => {
  const replicas = replicasInUse();
  const first = await replicas.use('0');
  const others = [];
  for (let n = 1; n < MOST_OPEN_REPLICAS; n++) others.push(await replicas.use(String(n)));
  assert.equal(first.wanted.aborted, false);
  const waiting = await replicas.use('new');
  const again = await replicas.use('0');
  assert.deepEqual([waiting.isRunning, again.isRunning, first.wanted.aborted], [false, false, true]);
  assert.ok(others.every(({ isRunning, wanted }) => isRunning && !wanted.aborted));
  first.end();
  await first.ended;
  await nextTurn();
  assert.deepEqual([waiting.isRunning, again.isRunning], [true, false]);
  for (const used of [waiting, ...others, again]) used.end();
  await again.ended;
  assert.equal(again.isRunning, true);
  await replicas.close();
});

test('an organisation has at most four queries at once, from all servers together', async () => {
  const replicas = replicasInUse();
  const uses = [];
  for (let n = 0; n < 5; n++) uses.push(await replicas.use('0'));
  assert.deepEqual(
    uses.map(({ isRunning }) => isRunning),
    [true, true, true, true, false],
  );
  const other = await replicas.use('1');
  assert.equal(other.isRunning, true);
  uses[0]!.end();
  await uses[0]!.ended;
  await nextTurn();
  assert.equal(uses[4]!.isRunning, true);
  for (const used of [...uses, other]) used.end();
  await Promise.all(uses.map(({ ended }) => ended));
  await replicas.close();
});

test('a query whose client leaves no longer waits for a place', async () => {
  const replicas = replicasInUse();
  const uses = [];
  for (let n = 0; n < 4; n++) uses.push(await replicas.use('0'));
  const left = new AbortController();
  const waiting = await replicas.use('0', left.signal);
  const leftAtMs = performance.now();
  left.abort();
  await assert.rejects(waiting.ended, ReplicasBusy);
  assert.ok(performance.now() - leftAtMs < 5000);
  for (const used of uses) used.end();
  await Promise.all(uses.map(({ ended }) => ended));
  await replicas.close();
});

test('the suspects of a crash take turns, and nobody else waits for them', async () => {
  const replicas = replicasInUse(suspecting('a', 'b'));
  const first = await replicas.use('a');
  const innocent = await replicas.use('c');
  const second = await replicas.use('b');
  const again = await replicas.use('a');
  assert.deepEqual(
    [first, innocent, second, again].map(({ isRunning }) => isRunning),
    [true, true, false, false],
  );
  first.end();
  await first.ended;
  await nextTurn();
  assert.deepEqual([second.isRunning, again.isRunning], [true, false]);
  for (const used of [second, innocent, again]) used.end();
  await again.ended;
  await replicas.close();
});

test('a suspect waits for another one for 5 s at most', async (t) => {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms;
    t.mock.timers.tick(ms);
    await nextTurn();
  };
  const replicas = replicasInUse(suspecting('a', 'b'));
  const culprit = await replicas.use('a');
  const other = await replicas.use('b');
  await pass(4999);
  assert.equal(other.isRunning, false);
  await pass(1);
  assert.equal(other.isRunning, true);
  for (const used of [culprit, other]) used.end();
  await Promise.all([culprit.ended, other.ended]);
  await replicas.close();
});

test('the reason of a refusal is reported once a minute for each organisation, in one line', async (t) => {
  const reports: string[] = [];
  const replicas = new Replicas({} as Store, '/nowhere', options, suspecting(), memoryTakers, (line) =>
    reports.push(line),
  );
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const refuse = (orgId: string, reason: string): void => replicas.reportRefusal(orgId, reason);
  const refused = 'a query was refused, because the replica cannot be used:';
  refuse('o', 'no space\nin file 7a');
  refuse('o', 'no space\nin file 10f');
  refuse('p', 'no space\nin file 7a');
  refuse('o', 'another reason');
  assert.deepEqual(reports.splice(0), [
    `organisation o: ${refused} no space in file 7a`,
    `organisation p: ${refused} no space in file 7a`,
    `organisation o: ${refused} another reason`,
  ]);
  nowMs += 59_999;
  refuse('o', 'another reason');
  assert.deepEqual(reports, []);
  nowMs += 1;
  refuse('o', 'another reason');
  assert.deepEqual(reports.splice(0), [`organisation o: ${refused} another reason`]);
  for (let reason = 0; reason < 1000; reason++) refuse('o', `${'x'.repeat(reason)} is in the way`);
  assert.equal(reports.length, 9);
  refuse('p', 'another reason');
  assert.equal(reports.length, 10);
  await replicas.close();
});

test('two organisations can write to the disk at once what does not fit into memory', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-replicas-'));
  const empty = { latestEntry: async () => 0, entries: async () => ({ entries: [], next: null }) };
  const spilling = {
    memoryMb: 60,
    temporaryMb: 1000,
    threads: 2,
    temporaryFolder: folder,
    exportFolder: folder,
  };
  const replicas = new Replicas(
    empty as unknown as Store,
    folder,
    spilling,
    suspecting(),
    memoryTakers,
    () => {},
  );
  const sorted = (orgId: string) =>
    replicas.with(1, orgId, new AbortController().signal, async (replica) => {
      const connection = await replica.connect();
      const numbers = `SELECT range AS n, md5(range::VARCHAR || '${orgId}') AS text FROM range(1000000)`;
      const sql = `SELECT count(*), count(*) FILTER (WHERE text = md5(n::VARCHAR || '${orgId}'))
        FROM (SELECT n, text, row_number() OVER (ORDER BY text) AS place FROM (${numbers})) WHERE place > 0`;
      const rows = (await connection.runAndReadAll(sql)).getRowsJS();
      replica.disconnect(connection);
      return rows;
    });
  try {
    const results = await Promise.all(['a', 'b', 'c'].map(sorted));
    assert.deepEqual(results, Array(3).fill([[1_000_000n, 1_000_000n]]));
  } finally {
    await replicas.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
