// The client reads the ledger: it follows changes through faults and restarts, and lists uploads.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, type TestContext, test } from 'node:test';
import {
  AbortedError,
  type Change,
  type ClientOptions,
  GoneError,
  HeadgateClient,
  type SentShop,
  UnreachableError,
} from '@headgate/client/client.ts';
import { Connection } from '@headgate/client/connection.ts';
import { openStore } from '../server/store/open-store.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from './harness/faulty-proxy.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { rejected } from './harness/rejected.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const quick = { firstPauseMs: 1, longestPauseMs: 10 };
/** How often the server is killed, and how many records it gets in between. */
const KILLS = times(2, 1);
const RECORDS_PER_LIFE = 300;
const noSuchId = '00000000-0000-0000-0000-000000000000';

function shops(count: number): SentShop[] {
  return Array.from({ length: count }, (_, at) => ({
    shop_id: randomUUID(),
    name: `Shop ${at}`,
    region: 'GB',
  }));
}

function idsOf(records: readonly SentShop[]): string[] {
  return records.map(({ shop_id }) => shop_id).sort();
}

/** Follows changes in the background, and collects the ids. */
function follower(client: HeadgateClient, start: string | number = 0) {
  const controller = new AbortController();
  const followed = { ids: [] as string[], position: String(start), retries: 0 };
  const ended = (async () => {
    const { signal } = controller;
    const onRetry = (): void => {
      followed.retries++;
    };
    for await (const { changes, next } of client.changes({ after: start, pageSize: 7, signal, onRetry })) {
      followed.ids.push(...changes.map(({ id }) => id));
      followed.position = next;
    }
  })();
  return {
    followed,
    async stop() {
      controller.abort();
      await rejected(ended, AbortedError);
    },
  };
}

describe('the client reads the ledger', () => {
  const running = runningHeadgate(testDatabases[0]!);
  let proxy: FaultyProxy;
  before(async () => {
    proxy = await startFaultyProxy(running.headgate.url);
  });
  after(() => proxy.close());

  async function newClient(
    t: TestContext,
    options: Partial<ClientOptions> = {},
    scopes?: readonly string[],
  ): Promise<HeadgateClient> {
    const { key } = await running.headgate.newKey(undefined, scopes);
    proxy.fault = () => null;
    t.after(() => {
      proxy.fault = () => null;
    });
    return new HeadgateClient({ url: proxy.url, apiKey: key, retry: quick, ...options });
  }

  test('changes come in pages, and the iteration continues from any of their positions', async (t) => {
    const client = await newClient(t);
    const input = shops(10);
    await client.upload('shops', input.slice(0, 6));
    await client.upload('shops', input.slice(6));
    const pages = await Array.fromAsync(client.changes({ pageSize: 4, follow: false }));
    assert.deepEqual(
      pages.map(({ changes, latest }) => [changes.length, latest]),
      [
        [4, 2],
        [4, 2],
        [2, 2],
      ],
    );
    assert.equal(pages.at(-1)!.next, '2');
    const all = pages.flatMap(({ changes }) => changes);
    assert.deepEqual(all.map(({ id }) => id).sort(), idsOf(input));
    for (const { type, id, record } of all) {
      assert.equal(type, 'shops');
      assert.deepEqual(record, await client.get('shops', id));
    }
    for (const [at, { next }] of pages.entries()) {
      const rest = await Array.fromAsync(client.changes({ after: next, pageSize: 4, follow: false }));
      assert.deepEqual(rest, pages.slice(at + 1));
    }
  });

  test('a type is followed alone, and its position passes the entries of other types', async (t) => {
    const client = await newClient(t);
    const [shop] = shops(1);
    await client.upload('shops', [shop!]);
    await client.upload('tags', [{ tag_id: randomUUID(), name: 'second-hand' }]);
    const view = { interaction_type: 'PAGE_VIEW', item_type: 'SHOP', event_timestamp: 1 } as const;
    const recorded = await client.record({ ...view, item_id: shop!.shop_id });
    await client.upload('tags', [{ tag_id: randomUUID(), name: 'new' }]);
    const pages = await Array.fromAsync(client.changes({ type: 'interactions', follow: false }));
    const changes: Change<'interactions'>[] = pages.flatMap((page) => page.changes);
    assert.deepEqual(
      changes.map(({ seq, record }) => [seq, record]),
      [[3, recorded]],
    );
    assert.equal(pages.at(-1)!.next, '4');
    const [quiet] = await Array.fromAsync(client.changes({ after: 3, type: 'shops', follow: false }));
    assert.deepEqual(quiet, { changes: [], next: '4', latest: 4 });
  });

  test('a key sees what it may read', async (t) => {
    const client = await newClient(t, {}, ['data:write', 'data:read:tags']);
    await client.upload('shops', shops(1));
    const tag = { tag_id: randomUUID(), name: 'second-hand' };
    await client.upload('tags', [tag]);
    const pages = await Array.fromAsync(client.changes({ follow: false }));
    assert.deepEqual(
      pages.flatMap(({ changes }) => changes.map(({ id }) => id)),
      [tag.tag_id],
    );
  });

  test('an invalid position is refused before anything is sent', async (t) => {
    const client = await newClient(t);
    const from = proxy.requests.length;
    for (const position of ['', 'yesterday', '1:', -1, 1.5, Number.NaN]) {
      assert.throws(() => client.changes({ after: position }), TypeError);
    }
    assert.equal(proxy.requests.length, from);
  });

  test('whoever follows gets an upload as soon as it is stored', async (t) => {
    const client = await newClient(t);
    const { followed, stop } = follower(client);
    for (let round = 0; round < 3; round++) {
      const startMs = performance.now();
      const { lastSeq } = await client.upload('shops', shops(2));
      await waitUntil('the follower has it', () => followed.position === String(lastSeq));
      assert.ok(performance.now() - startMs < 5000);
    }
    assert.equal(followed.ids.length, 6);
    await stop();
  });

  const passing: [string, Fault][] = [
    ['a request that is lost', 'cut before'],
    ['a response that is lost', 'cut after'],
    ['a response that is cut in its middle', 'cut in the answer'],
    ["a proxy's page of 502", { status: 502, body: '<h1>Bad Gateway</h1>' }],
    ['429', refusal(429, { 'Retry-After': '0' })],
    ['503', refusal(503, { 'Retry-After': '0' })],
  ];
  for (const [name, fault] of passing) {
    test(`${name}: following continues where it was, and no change is passed on twice`, async (t) => {
      const client = await newClient(t);
      const { followed, stop } = follower(client);
      const input = shops(40);
      let faults = 0;
      proxy.fault = ({ path }) => (path.startsWith('/v1/changes') && faults++ % 2 === 0 ? fault : null);
      await client.upload('shops', input.slice(0, 20), { concurrency: 1 });
      const { lastSeq } = await client.upload('shops', input.slice(20));
      await waitUntil('the follower has everything', () => followed.position === String(lastSeq));
      assert.deepEqual(followed.ids.toSorted(), idsOf(input));
      assert.ok(followed.retries >= 3, `${followed.retries} retries`);
      await stop();
    });
  }

  test('following ends if the option `retry` has an end', async (t) => {
    const client = await newClient(t, { retry: { ...quick, attempts: 3 } });
    proxy.fault = () => 'cut before';
    const { attempts } = await rejected(Array.fromAsync(client.changes()), UnreachableError);
    assert.equal(attempts, 3);
  });

  test('without such an option it is retried for ever, and other calls for two minutes', (t) => {
    const connection = new Connection({ url: proxy.url, apiKey: 'hg_x_y', retry: quick });
    const [endless, usual] = [connection.newEndlessPatience(), connection.newPatience()];
    for (const patience of [endless, usual]) assert.notEqual(patience.pauseMs(null), null);
    const laterMs = performance.now() + 24 * 60 * 60 * 1000;
    t.mock.method(performance, 'now', () => laterMs);
    assert.equal(usual.pauseMs(null), null);
    assert.ok(endless.pauseMs(null)! <= quick.longestPauseMs);
  });

  test('the timeout of a request does not end the wait for changes', async (t) => {
    const client = await newClient(t, { requestTimeoutMs: 1000 });
    const { followed, stop } = follower(client);
    await new Promise((resolve) => setTimeout(resolve, 2500));
    const { lastSeq } = await client.upload('shops', shops(1));
    await waitUntil('the follower has it', () => followed.position === String(lastSeq));
    assert.equal(followed.retries, 0);
    await stop();
  });

  test('a position beyond the end is gone, and the error has the number of the last entry', async (t) => {
    const client = await newClient(t);
    assert.equal(await client.latest(), 0);
    await client.upload('shops', shops(1));
    await client.upload('shops', shops(1));
    const error = await rejected(Array.fromAsync(client.changes({ after: 7 })), GoneError);
    assert.deepEqual([error.status, error.error, error.latest], [410, 'Gone', 2]);
    assert.equal(await client.latest(), 2);
  });

  test('the result of an upload has the number of its last entry', async (t) => {
    const client = await newClient(t, { maxRecordsPerRequest: 3 });
    const { lastSeq } = await client.upload('shops', shops(10));
    assert.equal(lastSeq, 4);
    const slices: (number | null)[] = [];
    const again = await client.upload('shops', shops(4), {
      concurrency: 1,
      onSlice: (slice) => void slices.push(slice.lastSeq),
    });
    assert.deepEqual([again.lastSeq, slices], [6, [5, 6]]);
    assert.equal((await client.upload('shops', shops(1), { dryRun: true })).lastSeq, null);
    assert.equal((await client.upload('shops', [])).lastSeq, null);
    assert.equal(await client.latest(), 6);
  });

  test('uploads are listed newest first, and filters narrow them', async (t) => {
    const client = await newClient(t);
    const [good, bad] = [shops(2), { ...shops(1)[0]!, region: 'Britain' }];
    const first = await client.upload('shops', good);
    const second = await client.upload('shops', [good[0]!, bad]);
    const third = await client.upload('tags', [{ tag_id: randomUUID(), name: '' }]);
    const all = await Array.fromAsync(client.uploads({ pageSize: 2 }));
    const requestIds = [third, second, first].map((result) => result.requestIds[0]);
    assert.deepEqual(
      all.map(({ request_id }) => request_id),
      requestIds,
    );
    assert.deepEqual(
      all.map(({ seq, type, status, counts }) => [seq, type, status, counts]),
      [
        [3, 'tags', 'error', third.counts],
        [2, 'shops', 'partial', second.counts],
        [1, 'shops', 'success', first.counts],
      ],
    );
    const seqsOf = async (filters: Parameters<typeof client.uploads>[0]): Promise<number[]> =>
      (await Array.fromAsync(client.uploads(filters))).map(({ seq }) => seq);
    assert.deepEqual(await seqsOf({ type: 'shops' }), [2, 1]);
    assert.deepEqual(await seqsOf({ status: 'error' }), [3]);
    assert.deepEqual(await seqsOf({ key_id: 'another' }), []);
    assert.deepEqual(await seqsOf({ key_id: all[0]!.key_id }), [3, 2, 1]);
    assert.deepEqual(await seqsOf({ from: all[1]!.received_at, to: new Date(8.64e12) }), [3, 2]);
    assert.deepEqual(await seqsOf({ to: all[1]!.received_at }), [1]);

    const upload = await client.getUpload(requestIds[1]!);
    const { causes, ...listed } = upload!;
    assert.deepEqual(listed, all[1]);
    assert.deepEqual(
      causes.map(({ code, field, count, examples }) => [
        code,
        field,
        count,
        examples[0]?.index,
        examples[0]?.id,
      ]),
      [['invalid_format', 'region', 1, 1, bad.shop_id]],
    );
    assert.equal(await client.getUpload(noSuchId), null);
  });
});

forEachStore((store) => {
  let created: Awaited<ReturnType<typeof store.newDatabase>>;
  let headgate: Headgate;
  before(async () => {
    created = await store.newDatabase();
    headgate = await startHeadgate(created.database);
  });
  after(async () => {
    await headgate?.kill();
    await created?.remove();
  });

  test('changes that are no longer kept are gone, and following the last entry works', async () => {
    const { key } = await headgate.newKey();
    const client = new HeadgateClient({ url: headgate.url, apiKey: key, retry: quick });
    await client.upload('shops', shops(1));
    const { lastSeq } = await client.upload('shops', shops(1));
    await expireChanges(created.database);
    const { latest } = await rejected(Array.fromAsync(client.changes({ follow: false })), GoneError);
    assert.equal(latest, lastSeq);
    assert.equal(await client.latest(), lastSeq);
    const { followed, stop } = follower(client, lastSeq!);
    const [shop] = shops(1);
    await client.upload('shops', [shop!]);
    await waitUntil('the follower has it', () => followed.ids.length > 0);
    assert.deepEqual(followed.ids, [shop!.shop_id]);
    await stop();
  });

  test('the server is killed and started again: the follower gets every acknowledged record', async () => {
    const { key } = await headgate.newKey();
    const { url } = headgate;
    const client = new HeadgateClient({
      url,
      apiKey: key,
      maxRecordsPerRequest: 20,
      retry: { firstPauseMs: 20, longestPauseMs: 200 },
    });
    const input = shops((1 + KILLS) * RECORDS_PER_LIFE);
    const { followed, stop } = follower(client);
    let lastSeq: number | null = null;
    for (let first = 0; first < input.length; first += RECORDS_PER_LIFE) {
      const uploading = client.upload('shops', input.slice(first, first + RECORDS_PER_LIFE));
      if (first > 0) {
        await headgate.kill();
        headgate = await startHeadgate(created.database, { HEADGATE_PORT: new URL(url).port });
      }
      ({ lastSeq } = await uploading);
    }
    await waitUntil('the follower has everything', () => followed.position === String(lastSeq));
    assert.deepEqual([...new Set(followed.ids)].sort(), idsOf(input));
    assert.ok(followed.retries > 0);

    // A stop does not wait for followers, whose requests end at once.
    const startMs = performance.now();
    assert.equal(await headgate.stop(), 0);
    assert.ok(performance.now() - startMs < 10_000);
    await stop();
  });
});

/** Deletes the changes of all ledgers, as the server does when they are too old. */
async function expireChanges(database: string): Promise<void> {
  const opened = await openStore(database);
  await opened.expireLedgers(Date.now() + 1000, 0);
  await opened.close();
}

function refusal(status: number, headers: Readonly<Record<string, string>>): Fault {
  const body = { error: 'Refused', message: `It is ${status}.`, request_id: randomUUID() };
  return { status, headers, body: JSON.stringify(body) };
}
