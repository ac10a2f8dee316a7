// Idempotency-Key: a request may be sent again at any time, and is processed once.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { isThorough } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type RefusalBody, type Reply, totals, type UploadBody } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type Headgate, type IssuedKey, startHeadgate } from './harness/headgate.ts';
import { bearer, connectRaw } from './harness/raw-connection.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord, type TestRecord } from './harness/records.ts';

const BATCH_SIZE = 2;

interface Endpoint {
  readonly path: string;
  /** How a run that is not thorough ends the server between a request and its retry. */
  readonly ended: 'stop' | 'kill';
  readonly successStatus: number;
  /** Returns a good body, different each time. */
  newBody(): string;
  /** Returns bodies whose content is refused, in whole or in part, with their status. */
  newRefusedBodies(): readonly { readonly status: number; readonly body: string }[];
  /** Returns how many items the organisation has stored through this endpoint. */
  stored(api: Api): Promise<number>;
}

forEachStore((store) => {
  let database: Awaited<ReturnType<typeof store.newDatabase>>;
  let headgate: Headgate;
  let key: IssuedKey;
  let api: Api;
  const shop = leastRecord('shops');
  const shopId = idOf('shops', shop);

  const start = async (): Promise<void> => {
    headgate = await startHeadgate(database.database, { HEADGATE_BATCH_SIZE: String(BATCH_SIZE) });
    if (key !== undefined) api = apiOf(headgate.url, key.key);
  };

  before(async () => {
    database = await store.newDatabase();
    await start();
    key = await headgate.newKey();
    api = apiOf(headgate.url, key.key);
    const { status } = await api.upload('shops', [shop]);
    assert.equal(status, 200);
  });
  after(async () => {
    await headgate.stop();
    await database.remove();
  });

  const courses = (count: number): TestRecord[] =>
    Array.from({ length: count }, () => leastRecord('courses'));
  const newInteraction = (): TestRecord => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shopId,
    event_timestamp: 1_700_000_000,
    user_id: randomUUID(),
  });
  const withKey = (idempotencyKey: string) => ({ 'Idempotency-Key': idempotencyKey });

  const endpoints: readonly Endpoint[] = [
    {
      path: '/v1/data/courses',
      ended: 'kill',
      successStatus: 200,
      newBody: () => JSON.stringify({ records: courses(2 * BATCH_SIZE + 1) }),
      newRefusedBodies: () => [
        {
          status: 207,
          body: JSON.stringify({
            records: [...courses(BATCH_SIZE + 1), leastRecord('courses', { name: 7 })],
          }),
        },
        { status: 400, body: JSON.stringify({ records: courses(3).map(({ name: _, ...rest }) => rest) }) },
      ],
      stored: async (by) => (await readAllRecords(by, 'courses')).length,
    },
    {
      path: '/user-interactions',
      ended: 'stop',
      successStatus: 201,
      newBody: () => JSON.stringify(newInteraction()),
      newRefusedBodies: () => [
        { status: 400, body: JSON.stringify({ ...newInteraction(), platform: 'FRIDGE' }) },
        { status: 400, body: JSON.stringify({ ...newInteraction(), item_id: randomUUID() }) },
      ],
      stored: async (by) => (await readAllInteractions(by)).length,
    },
  ];

  const isReplay = (reply: Reply): boolean => {
    const header = reply.headers.get('idempotency-replayed');
    assert.ok(header === null || header === 'true', `Idempotency-Replayed is ${header}`);
    return header === 'true';
  };
  const assertFirst = (reply: Reply, status: number): void => {
    assert.equal(reply.status, status, reply.text);
    assert.equal(isReplay(reply), false);
  };
  const assertReplayOf = (first: Reply, again: Reply): void => {
    assert.equal(again.status, first.status, again.text);
    assert.equal(again.text, first.text);
    assert.equal(isReplay(again), true);
  };
  const assertKeyTaken = (reply: Reply<RefusalBody>): void => {
    assert.equal(reply.status, 422, reply.text);
    assert.equal(reply.body.error, 'Unprocessable Content');
    assert.match(reply.body.message, /Idempotency-Key/);
    assert.equal(reply.body.request_id, reply.headers.get('x-request-id'));
  };

  for (const { path, ended, successStatus, newBody, newRefusedBodies, stored } of endpoints) {
    describe(`POST ${path}`, () => {
      const post = (body: unknown, idempotencyKey: string, headers: Record<string, string> = {}) =>
        api.request(path, { body, headers: { ...withKey(idempotencyKey), ...headers } });

      const keyed = (body: string, idempotencyKey: string) => ({
        path,
        headers: { ...bearer(key.key), ...withKey(idempotencyKey) },
        body,
      });

      test('the same key and body get the first response again, and nothing is stored twice', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const first = await post(body, id);
        assertFirst(first, successStatus);
        const storedOnce = await stored(api);
        for (let time = 0; time < 3; time++) assertReplayOf(first, await post(body, id));
        assert.equal(await stored(api), storedOnce);
      });

      test('the same key with another body gets 422 and changes neither data nor response', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const first = await post(body, id);
        const storedOnce = await stored(api);
        assertKeyTaken(await post(newBody(), id));
        assert.equal(await stored(api), storedOnce);
        assertReplayOf(first, await post(body, id));
      });

      test('without a key, or with another one, the same body is processed each time', async () => {
        const body = newBody();
        assertFirst(await post(body, randomUUID()), successStatus);
        assertFirst(await post(body, randomUUID()), successStatus);
        assertFirst(await api.request(path, { body }), successStatus);
      });

      test('keys that differ in case only are different keys', async () => {
        assertFirst(await post(newBody(), 'Case-of-a-key'), successStatus);
        assertFirst(await post(newBody(), 'case-of-a-key'), successStatus);
      });

      test('another organisation can use the same key independently', async () => {
        const other = apiOf(headgate.url, (await headgate.newKey()).key);
        const ownShop = await other.upload('shops', [shop]);
        assert.equal(ownShop.status, 200);
        const [body, id] = [newBody(), randomUUID()];
        const first = await post(body, id);
        const others = await other.request(path, { body, headers: withKey(id) });
        assertFirst(others, successStatus);
        assert.notEqual(others.text, first.text);
        assertReplayOf(first, await post(body, id));
      });

      test('another API key of the organisation gets the first response, too', async () => {
        const colleague = await headgate.anotherKey(key.org_id, []);
        const [body, id] = [newBody(), randomUUID()];
        const first = await post(body, id);
        const again = await apiOf(headgate.url, colleague.key).request(path, { body, headers: withKey(id) });
        assertReplayOf(first, again);
      });

      test('responses that refuse the content of a body are kept like any other', async () => {
        for (const { status, body } of newRefusedBodies()) {
          const id = randomUUID();
          const first = await post(body, id);
          assertFirst(first, status);
          const storedOnce = await stored(api);
          assertReplayOf(first, await post(body, id));
          assert.equal(await stored(api), storedOnce);
          assertKeyTaken(await post(newBody(), id));
          assertKeyTaken(await post('{"records": [', id));
        }
      });

      const wholeRefusals: readonly {
        readonly why: string;
        readonly status: number;
        readonly body: string | Uint8Array;
        readonly headers?: Record<string, string>;
      }[] = [
        { why: 'malformed JSON', status: 400, body: '{"records": [' },
        { why: 'no UTF-8', status: 400, body: new Uint8Array([0x22, 0xff, 0x22]) },
        { why: 'another content type', status: 415, body: '{}', headers: { 'Content-Type': 'text/plain' } },
        { why: 'broken gzip', status: 400, body: '{}', headers: { 'Content-Encoding': 'gzip' } },
        { why: 'an unknown encoding', status: 415, body: '{}', headers: { 'Content-Encoding': 'lzma' } },
        ...(path.startsWith('/v1/data/')
          ? [
              { why: 'no records', status: 400, body: '{"records":[]}' },
              { why: 'no array', status: 400, body: '{"records":{}}' },
            ]
          : []),
      ];
      for (const { why, status, body, headers } of wholeRefusals) {
        test(`a request refused as a whole (${why}) leaves the key free`, async () => {
          const id = randomUUID();
          assertFirst(await post(body, id, headers), status);
          assertFirst(await post(newBody(), id), successStatus);
        });
      }

      test('a request without permission neither replays nor uses the key', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const reader = await headgate.anotherKey(key.org_id, ['data:read']);
        const asReader = apiOf(headgate.url, reader.key);
        assertFirst(await asReader.request(path, { body, headers: withKey(id) }), 403);
        const first = await post(body, id);
        assertFirst(first, successStatus);
        assertFirst(await asReader.request(path, { body, headers: withKey(id) }), 403);
        assertFirst(await apiOf(headgate.url, null).request(path, { body, headers: withKey(id) }), 401);
      });

      test('while the first request runs a second gets 409 with Retry-After, then the response', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const release = await store.holdAnswers(headgate.database);
        const running = post(body, id);
        let second = await post('not JSON', id);
        for (let tries = 0; second.status !== 409 && tries < 100; tries++)
          second = await post('not JSON', id);
        assertFirst(second, 409);
        assert.match(second.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
        assert.equal(second.body.error, 'Conflict');
        assert.equal(second.body.request_id, second.headers.get('x-request-id'));
        await release();
        const first = await running;
        assertFirst(first, successStatus);
        assertReplayOf(first, await post(body, id));
      });

      test('a client that has not sent its whole body does not block the key', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const storedBefore = await stored(api);
        const slow = await connectRaw(headgate.url);
        const finish = await slow.sendAllButTheLastByte(keyed(body, id));
        const retry = await post(body, id);
        assertFirst(retry, successStatus);
        const storedAfter = await stored(api);
        assert.ok(storedAfter > storedBefore);
        finish();
        const late = await slow.answer();
        slow.destroy();
        assert.equal(late.text, retry.text);
        assert.equal(late.headers.get('idempotency-replayed'), 'true');
        assert.equal(await stored(api), storedAfter);
      });

      test('a client that disconnects in the middle of its body leaves the key free', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const storedBefore = await stored(api);
        const cut = await connectRaw(headgate.url);
        await cut.sendAllButTheLastByte(keyed(body, id));
        cut.destroy();
        assertFirst(await post('not JSON', id), 400);
        assert.equal(await stored(api), storedBefore);
        assertFirst(await post(body, id), successStatus);
      });

      test('one of many simultaneous requests is processed', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const storedBefore = await stored(api);
        const replies = await Promise.all(Array.from({ length: 12 }, () => post(body, id)));
        const statuses = new Set(replies.map(({ status }) => status));
        assert.deepEqual(statuses.difference(new Set([successStatus, 409])), new Set());
        const carriedOut = replies.filter((reply) => reply.status === successStatus && !isReplay(reply));
        assert.equal(carriedOut.length, 1);
        const storedAfter = await stored(api);
        assert.ok(storedAfter > storedBefore);
        assertReplayOf(carriedOut[0]!, await post(body, id));
        assert.equal(await stored(api), storedAfter);
      });

      test('a compressed body is the same body', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const first = await post(gzipSync(body), id, { 'Content-Encoding': 'gzip' });
        assertFirst(first, successStatus);
        assertReplayOf(first, await post(body, id));
        assertReplayOf(first, await post(brotliCompressSync(body), id, { 'Content-Encoding': 'br' }));
        assertReplayOf(first, await post(zstdCompressSync(body), id, { 'Content-Encoding': 'zstd' }));
        assertKeyTaken(await post(gzipSync(newBody()), id, { 'Content-Encoding': 'gzip' }));
      });

      test('strict and lenient handling of one body are different requests', async () => {
        const [body, id] = [newBody(), randomUUID()];
        const lenient = { Prefer: 'handling=lenient' };
        const first = await post(body, id, lenient);
        assertFirst(first, successStatus);
        assertKeyTaken(await post(body, id));
        assertReplayOf(first, await post(body, id, lenient));
      });

      test('a key may have 255 characters, and contain every visible ASCII character', async () => {
        const visible = String.fromCharCode(...Array.from({ length: 0x7e - 0x21 + 1 }, (_, at) => 0x21 + at));
        for (const id of [visible, 'k'.repeat(255), 'k']) {
          const body = newBody();
          const first = await post(body, id);
          assertFirst(first, successStatus);
          assertReplayOf(first, await post(body, id));
        }
      });

      const badKeys: readonly { readonly why: string; readonly value: string; readonly says?: RegExp }[] = [
        { why: 'that is empty', value: '' },
        { why: 'of spaces', value: '   ' },
        { why: 'of 256 characters', value: 'k'.repeat(256) },
        { why: 'with a space inside', value: 'two words' },
        { why: 'with a tab inside', value: 'two\twords' },
        { why: 'that is not ASCII', value: 'clé' },
        {
          why: 'that is given twice',
          value: 'one\r\nIdempotency-Key: two',
          says: /Idempotency-Key/,
        },
      ];
      for (const { why, value, says = /Idempotency-Key must be 1 to 255/ } of badKeys) {
        test(`a key ${why} is refused with 400 and nothing is stored`, async () => {
          const storedBefore = await stored(api);
          const connection = await connectRaw(headgate.url);
          connection.send(keyed(newBody(), value));
          const { status, text } = await connection.answer();
          connection.destroy();
          assert.equal(status, 400, text);
          assert.match((JSON.parse(text) as RefusalBody).message, says);
          assert.equal(await stored(api), storedBefore);
        });
      }

      const ends = isThorough ? (['stop', 'kill'] as const) : [ended];
      for (const end of ends) {
        test(`responses survive a restart after a ${end === 'stop' ? 'SIGTERM' : 'SIGKILL'}`, async () => {
          const sent = [newBody(), ...newRefusedBodies().map(({ body }) => body)].map((body) => ({
            body,
            id: randomUUID(),
          }));
          const firsts = await Promise.all(sent.map(({ body, id }) => post(body, id)));
          const storedOnce = await stored(api);
          await headgate[end]();
          await start();
          for (const [at, { body, id }] of sent.entries()) {
            assertReplayOf(firsts[at]!, await post(body, id));
            assertKeyTaken(await post(newBody(), id));
          }
          assert.equal(await stored(api), storedOnce);
        });
      }
    });
  }

  test('one key on several paths identifies several requests', async () => {
    const id = randomUUID();
    const tag = JSON.stringify({ records: [leastRecord('tags')] });
    const course = JSON.stringify({ records: [leastRecord('courses')] });
    const sent = [
      { path: '/v1/data/tags', status: 200, body: tag },
      { path: '/v1/data/courses', status: 200, body: course },
      { path: '/user-interactions', status: 201, body: JSON.stringify(newInteraction()) },
    ];
    const firsts: Reply[] = [];
    for (const { path, status, body } of sent) {
      const first = await api.request(path, { body, headers: withKey(id) });
      assertFirst(first, status);
      firsts.push(first);
    }
    for (const [at, { path, body }] of sent.entries()) {
      assertReplayOf(firsts[at]!, await api.request(path, { body, headers: withKey(id) }));
    }
  });

  test('a replayed upload does not overwrite later uploads', async () => {
    const record = leastRecord('courses', { name: 'first' });
    const headers = withKey(randomUUID());
    const first = await api.upload('courses', [record], { headers });
    assert.equal((await api.upload('courses', [{ ...record, name: 'second' }])).status, 200);
    assertReplayOf(first, await api.upload('courses', [record], { headers }));
    assert.equal((await api.read('courses', idOf('courses', record))).body.name, 'second');
  });

  test('a replayed upload has the counts of the first', async () => {
    const record = leastRecord('courses');
    assert.equal((await api.upload('courses', [record])).status, 200);
    const sent = [
      record,
      { ...record, name: 'another' },
      leastRecord('courses'),
      leastRecord('courses', { name: '' }),
    ];
    const headers = withKey(randomUUID());
    const first = await api.upload('courses', sent, { headers });
    assert.deepEqual(totals(first.body), { received: 4, created: 1, updated: 1, unchanged: 1, rejected: 1 });
    assertReplayOf(first, await api.upload('courses', sent, { headers }));
  });

  test('a refusal for a missing reference is replayed for its key; a new key stores the record', async () => {
    const branch = leastRecord('branches');
    const headers = withKey(randomUUID());
    const first = await api.upload('branches', [branch], { headers });
    assertFirst(first, 400);
    assert.equal(
      (await api.upload('shops', [leastRecord('shops', { shop_id: branch.shop_id })])).status,
      200,
    );
    assertReplayOf(first, await api.upload('branches', [branch], { headers }));
    assertFirst(await api.upload('branches', [branch], { headers: withKey(randomUUID()) }), 200);
  });

  test('a dry run neither uses the key nor gets a replayed response', async () => {
    const records = courses(1);
    const options = { headers: withKey(randomUUID()) };
    const dryRun = { ...options, query: '?dry_run=true' };
    const assertDry = (reply: Reply<UploadBody>): void => {
      assertFirst(reply, 200);
      assert.equal(reply.body.dry_run, true);
    };
    assertDry(await api.upload('courses', records, dryRun));
    const first = await api.upload('courses', records, options);
    assertFirst(first, 200);
    assert.deepEqual(totals(first.body), { received: 1, created: 1, updated: 0, unchanged: 0, rejected: 0 });
    assertDry(await api.upload('courses', records, dryRun));
    assertDry(await api.upload('courses', courses(2), dryRun));
    assertReplayOf(first, await api.upload('courses', records, options));
  });
});
