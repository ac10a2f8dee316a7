import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { SupervisedWorker, type Supervision, startWorker } from './supervised-worker.ts';

/** A worker that posts its `workerData`, and ends, throws or finishes when a test asks for it. */
const script = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, workerData } from 'node:worker_threads';
    if (workerData === 'ends') process.exit(3);
    parentPort.postMessage(workerData);
    parentPort.on('message', (order) => {
      if (order === 'throw') throw new Error('as told');
      if (order === 'finish') { parentPort.postMessage('finished'); parentPort.close(); }
    });`)}`,
);

function supervised(t: TestContext, supervision: Supervision): SupervisedWorker {
  const worker = new SupervisedWorker(supervision);
  t.after(() => worker.close());
  return worker;
}

test('a worker that ends unexpectedly is restarted, and its end is reported with the reason', async (t) => {
  let starts = 0;
  const lost: string[] = [];
  const again = Promise.withResolvers<void>();
  const worker = supervised(t, {
    start: () => startWorker(script, { workerData: ++starts }),
    onReady: () => starts === 2 && again.resolve(),
    onLost: ({ message }, what) => lost.push(`${what}: ${message}`),
  });
  await worker.open();
  worker.running!.postMessage('throw');
  await again.promise;
  assert.deepEqual(lost, ['ended: as told']);
  assert.deepEqual(await once(worker.running!, 'message'), [2]);
});

test('a worker that does not become ready at its first start is not restarted', async (t) => {
  let starts = 0;
  const worker = supervised(t, {
    start: () => startWorker(script, { workerData: `start ${++starts}` }),
    whenReady: () => Promise.reject(new Error('not ready')),
    onLost: assert.fail,
  });
  await assert.rejects(worker.open(), /not ready/);
  await worker.close();
  assert.equal(starts, 1);
});

test('a restart that fails is retried until it succeeds', async (t) => {
  let starts = 0;
  const lost: string[] = [];
  const again = Promise.withResolvers<void>();
  const worker = supervised(t, {
    start: () => startWorker(script, { workerData: ++starts === 2 ? 'ends' : 'runs' }),
    whenReady: async ({ worker, ended }) => {
      const told = await Promise.race([once(worker, 'message'), ended]);
      if (told instanceof Error) throw told;
    },
    onReady: () => starts === 3 && again.resolve(),
    onLost: (_, what) => lost.push(what),
  });
  await worker.open();
  worker.running!.postMessage('throw');
  await again.promise;
  assert.deepEqual(lost, ['ended', 'not started']);
});

test('a closed worker is asked to finish, and is not restarted', async (t) => {
  let starts = 0;
  const worker = supervised(t, {
    start: () => startWorker(script, { workerData: ++starts }),
    onLost: assert.fail,
  });
  await worker.open();
  const { running } = worker;
  const said: unknown[] = [];
  running!.on('message', (message) => said.push(message));
  await worker.close((open) => open.postMessage('finish'));
  assert.deepEqual([said.at(-1), worker.running, starts], ['finished', null, 1]);
});
