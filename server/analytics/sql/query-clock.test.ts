import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { QueryClock } from './query-clock.ts';
import { QueryFailed } from './query-errors.ts';
import { openTestReplica, type TestReplica } from './test-replica.ts';

let replica: TestReplica;
before(async () => {
  replica = await openTestReplica();
});
after(() => replica.close());

const never = () => new Promise<never>(() => {});

test('a call that does not stop when it is told to is stuck', async () => {
  const late = new QueryClock(replica.connection, '', { withinMs: 50, stopWithinMs: 1000 });
  const unwanted = new QueryClock(replica.connection, '', {
    withinMs: 60_000,
    signal: AbortSignal.timeout(50),
    stopWithinMs: 1000,
  });
  const started = performance.now();
  const kinds = await Promise.all(
    [late, unwanted].map((clock) => clock.wait(never).catch((error: QueryFailed) => error.failure)),
  );
  assert.ok(performance.now() - started < 4000);
  assert.deepEqual(kinds, [
    {
      kind: 'too_slow',
      message: 'The query took longer than 0.05 s. Read fewer rows, or aggregate earlier.',
      isStuck: true,
    },
    { kind: 'cancelled', message: 'The query was cancelled.', isStuck: true },
  ]);
  assert.ok(late.isStuck && unwanted.isStuck);
});

test('a call that has stopped is not stuck, even if another query kept the process busy meanwhile', async () => {
  const connection = await replica.instance.connect();
  const unwanted = new AbortController();
  const limits = { withinMs: 60_000, signal: unwanted.signal, stopWithinMs: 2000 };
  const clock = new QueryClock(connection, '', limits);
  const waiting = clock.wait(() => connection.run('SELECT sum(sqrt(range)) FROM range(100000000000)'));
  const beBusy = (): void => {
    unwanted.abort();
    for (const untilMs = performance.now() + 2500; performance.now() < untilMs; );
  };
  setTimeout(() => setImmediate(beBusy), 100);
  await assert.rejects(
    waiting,
    (error) => error instanceof QueryFailed && error.failure.kind === 'cancelled' && !error.failure.isStuck,
  );
  assert.ok(!clock.isStuck);
  connection.disconnectSync();
});

test('the time of all calls is limited together', async () => {
  const clock = new QueryClock(replica.connection, '', { withinMs: 150 });
  const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 100));
  await clock.wait(pause);
  await assert.rejects(
    clock.wait(pause),
    (error) => error instanceof QueryFailed && error.failure.kind === 'too_slow' && !error.failure.isStuck,
  );
});

test('an error that is not the fault of the query is thrown as it is', async () => {
  const clock = new QueryClock(replica.connection, '', { withinMs: 1000 });
  await assert.rejects(
    clock.wait(() => Promise.reject(new Error('a bug'))),
    /^Error: a bug$/,
  );
});
