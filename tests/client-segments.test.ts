// The client saves, reads and follows segments, through faults.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, type TestContext, test } from 'node:test';
import {
  type Condition,
  ForbiddenError,
  GoneError,
  HeadgateClient,
  RefusedError,
  type SentCustomer,
} from '@headgate/client/client.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from './harness/faulty-proxy.ts';
import { rejected } from './harness/rejected.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const quick = { firstPauseMs: 1, longestPauseMs: 10 };
const german: Condition = { customer: 'region', is: 'DE' };

function customers(...regions: readonly string[]): SentCustomer[] {
  return regions.map((region) => ({ customer_id: randomUUID(), user_id: randomUUID(), region }));
}

describe('the client has segments', () => {
  const running = runningHeadgate(testDatabases[0]!);
  let proxy: FaultyProxy;
  before(async () => {
    proxy = await startFaultyProxy(running.headgate.url);
  });
  after(() => proxy.close());

  async function newClient(t: TestContext, scopes?: readonly string[]): Promise<HeadgateClient> {
    const { key } = await running.headgate.newKey(undefined, scopes);
    proxy.fault = () => null;
    t.after(() => {
      proxy.fault = () => null;
    });
    return new HeadgateClient({ url: proxy.url, apiKey: key, retry: quick });
  }

  test('a segment is saved, read, listed, evaluated again and deleted', async (t) => {
    const client = await newClient(t);
    await client.upload('customers', customers('DE', 'GB'));
    assert.deepEqual(await client.segments(), []);
    const saved = await client.saveSegment('german', { condition: german, note: 'In Germany' });
    assert.deepEqual(
      [saved.name, saved.note, saved.count, saved.condition, saved.used_by],
      ['german', 'In Germany', 1, german, []],
    );
    assert.deepEqual(await client.getSegment('german'), saved);
    const { condition: _, used_by: __, ...listed } = saved;
    assert.deepEqual(await client.segments(), [listed]);
    await client.upload('customers', customers('DE'));
    const refreshed = await client.refreshSegment('german');
    assert.deepEqual([refreshed?.count, refreshed?.evaluation?.entered], [2, 1]);
    assert.equal((await client.saveSegment('german', { condition: german })).note, null);
    assert.equal(await client.deleteSegment('german'), true);
    assert.equal(await client.deleteSegment('german'), false);
    assert.equal(await client.getSegment('german'), null);
    assert.equal(await client.refreshSegment('german'), null);
  });

  test('a condition is tried', async (t) => {
    const client = await newClient(t);
    const [de] = customers('DE');
    await client.upload('customers', [de!, ...customers('GB', 'AT')]);
    const preview = await client.previewSegment({ all: [german, { not: { did: 'transactions' } }] });
    assert.deepEqual([preview.count, preview.sample, preview.as_of.complete], [1, [de!.customer_id], true]);
    assert.deepEqual(preview.nodes, [
      { path: '', count: 1 },
      { path: 'all[0]', count: 1 },
      { path: 'all[1]', count: 3 },
      { path: 'all[1].not', count: 0 },
    ]);
    assert.deepEqual(await client.segments(), []);
  });

  test('a condition that is not valid is refused, with the path of the problem', async (t) => {
    const client = await newClient(t);
    const wrong = { all: [german, { customer: 'regoin', is: 'DE' }] } as unknown as Condition;
    for (const call of [client.previewSegment(wrong), client.saveSegment('a', { condition: wrong })]) {
      const error = await rejected(call, RefusedError);
      assert.deepEqual([error.status, error.path], [400, 'all[1].customer']);
      assert.match(error.message, /did you mean "region"\?$/);
    }
    const whole = await rejected(client.previewSegment([] as unknown as Condition), RefusedError);
    assert.equal(whole.path, '');
    const misnamed = await rejected(client.saveSegment('A', { condition: german }), RefusedError);
    assert.equal(misnamed.path, null);
  });

  test('a segment that another one uses is not deleted', async (t) => {
    const client = await newClient(t);
    await client.saveSegment('german', { condition: german });
    await client.saveSegment('others', { condition: { not: { segment: 'german' } } });
    const error = await rejected(client.deleteSegment('german'), RefusedError);
    assert.deepEqual(
      [error.status, error.message],
      [409, 'The segment "german" cannot be deleted, because the segment "others" uses it.'],
    );
  });

  test('all members are iterated over, in pages', async (t) => {
    const client = await newClient(t);
    const input = customers('DE', 'DE', 'DE', 'DE', 'DE');
    await client.upload('customers', input);
    const { evaluation } = await client.saveSegment('german', { condition: german });
    const members = await Array.fromAsync(client.segmentMembers('german', { pageSize: 2 }));
    assert.deepEqual(
      members.map(({ customer_id }) => customer_id),
      input.map(({ customer_id }) => customer_id).sort(),
    );
    for (const { since } of members) assert.ok(since >= evaluation!.at);
    const error = await rejected(Array.fromAsync(client.segmentMembers('germans')), RefusedError);
    assert.deepEqual([error.status, /Did you mean german\?$/.test(error.message)], [404, true]);
  });

  test('a customer is explained', async (t) => {
    const client = await newClient(t);
    const [de, gb] = customers('DE', 'GB') as [SentCustomer, SentCustomer];
    await client.upload('customers', [de, gb]);
    await client.saveSegment('german', { condition: { any: [german, { did: 'transactions' }] } });
    const why = await client.explainMember('german', de.customer_id);
    assert.equal(why?.member, true);
    assert.notEqual(why?.since, null);
    assert.deepEqual(why?.nodes, [
      { path: '', holds: true, saw: null },
      { path: 'any[0]', holds: true, saw: 'DE' },
      { path: 'any[1]', holds: false, saw: 0 },
    ]);
    const whyNot = await client.explainMember('german', gb.customer_id);
    assert.deepEqual([whyNot?.member, whyNot?.since], [false, null]);
    assert.equal(await client.explainMember('german', randomUUID()), null);
    assert.equal(await client.explainMember('nobody', gb.customer_id), null);
  });

  test('a follower gets each change of the members once, from any position', async (t) => {
    const client = await newClient(t);
    const input = customers('DE', 'DE', 'DE', 'GB');
    await client.upload('customers', input);
    await client.saveSegment('german', { condition: german });
    const pages = await Array.fromAsync(client.memberChanges('german', { pageSize: 2 }));
    assert.deepEqual(
      pages.map(({ changes }) => changes.map(({ change }) => change)),
      [['entered', 'entered'], ['entered']],
    );
    const rest = await Array.fromAsync(client.memberChanges('german', { after: pages[0]!.next }));
    assert.deepEqual(rest, pages.slice(1));
    const position = pages.at(-1)!.next;
    assert.deepEqual(await Array.fromAsync(client.memberChanges('german', { after: position })), []);

    const [first, last] = [input[0]!, input[3]!];
    await client.upload('customers', [
      { ...first, region: 'GB' },
      { ...last, region: 'DE' },
    ]);
    await client.refreshSegment('german');
    const later = await Array.fromAsync(client.memberChanges('german', { after: position }));
    assert.deepEqual(
      new Map(later.flatMap(({ changes }) => changes.map((each) => [each.customer_id, each.change]))),
      new Map([
        [first.customer_id, 'left'],
        [last.customer_id, 'entered'],
      ]),
    );
    const { latest } = later.at(-1)!;
    const error = await rejected(
      Array.fromAsync(client.memberChanges('german', { after: latest + 1 })),
      GoneError,
    );
    assert.equal(error.latest, latest);
  });

  test('the position of a segment without changes is passed on', async (t) => {
    const client = await newClient(t);
    const { latest } = await client.saveSegment('german', { condition: german });
    assert.deepEqual(await Array.fromAsync(client.memberChanges('german')), [
      { changes: [], next: latest, latest },
    ]);
  });

  test('what cannot be a name or a position is refused before anything is sent', async (t) => {
    const client = await newClient(t);
    const from = proxy.requests.length;
    for (const after of [-1, 1.5, Number.NaN]) {
      assert.throws(() => client.memberChanges('german', { after }), TypeError);
    }
    for (const name of ['', '.', '..']) {
      await rejected(client.getSegment(name), TypeError);
      await rejected(client.deleteSegment(name), TypeError);
    }
    assert.equal(proxy.requests.length, from);
    assert.equal(await client.getSegment('a/../b?c#d'), null);
  });

  const passing: readonly [string, Fault][] = [
    ['a request that is lost', 'cut before'],
    ['a response that is lost', 'cut after'],
    ['503', { status: 503, headers: { 'Retry-After': '0' }, body: '<h1>Busy</h1>' }],
  ];
  for (const [name, fault] of passing) {
    test(`${name}: every call is repeated`, async (t) => {
      const client = await newClient(t);
      const input = customers('DE', 'DE', 'DE');
      await client.upload('customers', input);
      let requests = 0;
      proxy.fault = () => (requests++ % 2 === 0 ? fault : null);
      const saved = await client.saveSegment('german', { condition: german });
      assert.equal(saved.count, 3);
      assert.equal((await client.refreshSegment('german'))?.count, 3);
      assert.equal((await client.previewSegment(german)).count, 3);
      assert.equal((await Array.fromAsync(client.segmentMembers('german', { pageSize: 2 }))).length, 3);
      const pages = await Array.fromAsync(client.memberChanges('german', { pageSize: 2 }));
      assert.equal(pages.flatMap(({ changes }) => changes).length, 3);
      let retries = 0;
      const onRetry = (): void => {
        retries++;
      };
      assert.equal(await client.deleteSegment('german', { onRetry }), true);
      assert.equal(retries, 1);
      assert.deepEqual(await client.segments(), []);
    });
  }

  test('a key without the scope is refused', async (t) => {
    const client = await newClient(t, ['analytics:read']);
    const error = await rejected(client.saveSegment('german', { condition: german }), ForbiddenError);
    assert.match(error.message, /analytics:write/);
    assert.deepEqual(await client.segments(), []);
  });
});
