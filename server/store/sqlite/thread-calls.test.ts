import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { StoreBusy, StoreUnavailable } from '../store.ts';
import {
  createLink,
  done,
  failed,
  type Link,
  type SentResult,
  sentResultOf,
  type ThreadCall,
} from './thread-calls.ts';

const nobodys = { organisation: null };

type Echo = { echo(text: string): string };

/** Returns a link, and the port on which the test acts as the thread. */
function linkedPair(t: TestContext): { readonly link: Link<Echo>; readonly thread: MessagePort } {
  const { port1, port2 } = new MessageChannel();
  t.after(() => port2.close());
  const link = createLink<Echo>('echo');
  link.connect(port1);
  return { link, thread: port2 };
}

function received(thread: MessagePort): Promise<readonly ThreadCall[]> {
  return new Promise((resolve) => thread.once('message', resolve));
}

test('the calls of one turn are sent as one message, and each gets its own result', async (t) => {
  const { link, thread } = linkedPair(t);
  const answered = ['a', 'b', 'c'].map((text) => link.call('echo', [text], nobodys));
  const calls = await received(thread);
  assert.deepEqual(
    calls.map(([, operation, args]) => [operation, ...args]),
    [
      ['echo', 'a'],
      ['echo', 'b'],
      ['echo', 'c'],
    ],
  );
  const answers: SentResult[] = calls
    .toReversed()
    .map(([id, , [text]]) => sentResultOf(id, done(`${text}!`)));
  thread.postMessage(answers);
  assert.deepEqual(await Promise.all(answered), ['a!', 'b!', 'c!']);
});

test('a large call counts as several rows', async (t) => {
  const { link, thread } = linkedPair(t);
  const sizes = [{}, { rows: 7 }, { bytes: 1024 }, { bytes: 3000 }, { rows: 7, bytes: 3000 }];
  for (const size of sizes) link.call('echo', [''], { ...nobodys, ...size }).catch(() => {});
  assert.deepEqual(
    (await received(thread)).map((call) => call[4]),
    [1, 7, 1, 3, 7],
  );
});

test('a buffer is transferred to the thread, and is no longer usable here', async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.after(() => port2.close());
  const link = createLink<{ sum(bytes: Uint8Array): number }>('adding');
  link.connect(port1);
  const given = [new Uint8Array([1, 2]), new Uint8Array([3])];
  const answered = given.map((bytes) => link.call('sum', [bytes], { ...nobodys, handedOver: bytes.buffer }));
  const calls = await received(port2);
  assert.deepEqual(
    calls.map(([, , [bytes]]) => bytes),
    [new Uint8Array([1, 2]), new Uint8Array([3])],
  );
  assert.deepEqual(
    given.map(({ byteLength }) => byteLength),
    [0, 0],
  );
  port2.postMessage(calls.map(([id]) => sentResultOf(id, done(id))));
  assert.deepEqual(await Promise.all(answered), [1, 2]);
});

test('an error in the thread is received as an error of the same kind', async (t) => {
  const { link, thread } = linkedPair(t);
  const outcomes = [
    failed(new StoreUnavailable('disk full')),
    failed(new TypeError('broken')),
    failed(new StoreBusy('later')),
  ];
  const answered = Promise.allSettled(outcomes.map(() => link.call('echo', [''], nobodys)));
  const calls = await received(thread);
  thread.postMessage(calls.map(([id], position) => sentResultOf(id, outcomes[position]!)));
  const [outage, mistake, wait] = (await answered).map((result) => (result as PromiseRejectedResult).reason);
  assert.ok(outage instanceof StoreUnavailable);
  assert.equal(outage.message, 'disk full');
  assert.ok(!(mistake instanceof StoreUnavailable));
  assert.equal(mistake.message, 'broken');
  assert.match(mistake.stack, /calls\.test\.ts/);
  assert.ok(wait instanceof StoreBusy);
});

test('undefined and null are received as results, also next to an error', async (t) => {
  const { link, thread } = linkedPair(t);
  const outcomes = [done(undefined), failed(new StoreUnavailable('disk full')), done(null)];
  const answered = Promise.allSettled(outcomes.map(() => link.call('echo', [''], nobodys)));
  const calls = await received(thread);
  thread.postMessage(calls.map(([id], position) => sentResultOf(id, outcomes[position]!)));
  assert.deepEqual(await answered, [
    { status: 'fulfilled', value: undefined },
    { status: 'rejected', reason: new StoreUnavailable('disk full') },
    { status: 'fulfilled', value: null },
  ]);
});

test('the number of waiting calls is limited for each organisation', async (t) => {
  const { link } = linkedPair(t);
  const greedy = { organisation: 1 };
  const waiting = Array.from({ length: 20_000 }, () => link.call('echo', [''], greedy));
  await assert.rejects(link.call('echo', [''], greedy), {
    name: 'StoreBusy',
    message: /^too much is waiting for the store \(20000 calls, /,
  });
  for (const organisation of [2, null]) waiting.push(link.call('echo', [''], { organisation }));
  link.lose('gone');
  const results = await Promise.allSettled(waiting);
  assert.ok(results.every((result) => result.status === 'rejected' && result.reason.message === 'gone'));
});

test('the size of waiting calls is limited for each organisation, and freed by results', async (t) => {
  const { link, thread } = linkedPair(t);
  const half = { organisation: 1, bytes: 128 * 1024 * 1024 };
  const first = link.call('echo', ['first'], half);
  const second = link.call('echo', ['second'], half);
  await assert.rejects(link.call('echo', ['third'], { organisation: 1, bytes: 1 }), StoreBusy);
  const other = link.call('echo', ['other'], { ...half, organisation: 2 });
  const calls = await received(thread);
  thread.postMessage([sentResultOf(calls[0]![0], done(''))]);
  await first;
  const third = link.call('echo', ['third'], half);
  link.lose('gone');
  for (const lost of [second, third, other]) await assert.rejects(lost, new StoreUnavailable('gone'));
});

test('a lost link refuses calls with the reason until it is connected again', async (t) => {
  const { link, thread } = linkedPair(t);
  const waiting = link.call('echo', [''], nobodys);
  thread.close();
  await assert.rejects(waiting, new StoreUnavailable("the store's echo thread ended unexpectedly"));
  link.lose('it is being started again');
  await assert.rejects(link.call('echo', [''], nobodys), new StoreUnavailable('it is being started again'));
  const next = new MessageChannel();
  t.after(() => next.port2.close());
  link.connect(next.port1);
  const answered = link.call('echo', [''], nobodys);
  const [call] = await received(next.port2);
  next.port2.postMessage([sentResultOf(call![0], done('back'))]);
  assert.equal(await answered, 'back');
});

test('closing waits for the results of all calls', async (t) => {
  const { link, thread } = linkedPair(t);
  const answered = link.call('echo', [''], nobodys);
  let isClosed = false;
  const closing = link.close().then(() => {
    isClosed = true;
  });
  const [call] = await received(thread);
  assert.equal(isClosed, false);
  await assert.rejects(link.call('echo', [''], nobodys), new StoreUnavailable('the store is closed'));
  thread.postMessage([sentResultOf(call![0], done('last'))]);
  assert.equal(await answered, 'last');
  await closing;
});
