// Keys, scopes and the rate limit; and reading records.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, apiOf, type RequestOptions } from './harness/api.ts';
import { describeOnceOn, forEachStore } from './harness/for-each-store.ts';
import type { IssuedKey } from './harness/headgate.ts';
import { type Items, leastInteraction, uploadItems } from './harness/interactions.ts';
import { pageSizes, pagesOfRecords } from './harness/pages.ts';
import type { TestRecord } from './harness/records.ts';
import { assertRefusal } from './harness/refusal.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import {
  type Parents,
  shownRecord,
  specKey,
  specRecord,
  specReferences,
  specTypes,
  uploadParents,
} from './harness/spec.ts';

const shop = (given: TestRecord = {}): TestRecord => specRecord('shops', {}, given);
const CHANGES_HOLD_WITHIN_MS = 5000;
const LAST_USE_IS_NOTED_WITHIN_MS = 25_000;
const REQUESTS_PER_SECOND = 5;

interface ListedKey {
  readonly key_id: string;
  readonly last_used_at: string | null;
}

forEachStore((store) => {
  const running = runningHeadgate(store);
  /** A key that stays valid. */
  let good: string;
  let organisation: string;

  before(async () => {
    ({ key: good, org_id: organisation } = await running.headgate.newKey());
  });

  const issue = <Key = IssuedKey>(...options: string[]): Promise<Key> =>
    running.headgate.command('keys', 'issue', '--org', organisation, ...options);
  const withScopes = async (...scopes: string[]): Promise<Api> =>
    as((await running.headgate.anotherKey(organisation, scopes)).key);
  const as = (key: string): Api => apiOf(running.headgate.url, key);
  const statusWith = async (key: string): Promise<number> => (await as(key).request('/v1/data/shops')).status;

  describe('authentication', () => {
    const bad: Record<string, string | null> = {};

    before(async () => {
      const [expired, revoked] = await Promise.all([
        issue('--expires', '1ms'),
        running.headgate.anotherKey(organisation, []),
      ]);
      await running.headgate.command('keys', 'revoke', revoked.key_id);
      const [prefix, keyId, secret] = good.split('_') as [string, string, string];
      const otherDigit = secret.endsWith('0') ? '1' : '0';
      Object.assign(bad, {
        'no key': null,
        'an empty key': 'Bearer ',
        'a malformed key': 'Bearer nonsense',
        'a key that was never issued': `Bearer ${prefix}_${'0'.repeat(keyId.length)}_${secret}`,
        'a key with another secret': `Bearer ${good.slice(0, -1)}${otherDigit}`,
        'a key with the secret of another key': `Bearer ${prefix}_${keyId}_${revoked.key.split('_')[2]}`,
        'half a key': `Bearer ${prefix}_${keyId}`,
        'a key with more behind it': `Bearer ${good}0`,
        'a key in upper case': `Bearer ${good.toUpperCase()}`,
        'two keys': `Bearer ${good} ${good}`,
        'an expired key': `Bearer ${expired.key}`,
        'a revoked key': `Bearer ${revoked.key}`,
        'a good key without a scheme': good,
        'a good key with another scheme': `Basic ${good}`,
        'a good key as a password': `Basic ${Buffer.from(`key:${good}`).toString('base64')}`,
      });
    });

    const record = shop();
    const requests: readonly (readonly [string, RequestOptions])[] = [
      ['/v1/data/shops', { body: { records: [record] } }],
      ['/v1/data/shops', { body: '{' }],
      ['/v1/data/shops', { body: 'x', headers: { 'Content-Type': 'text/plain' } }],
      ['/v1/data/shops?unknown=1', {}],
      ['/v1/data/shops', {}],
      ['/v1/data/shops', { method: 'PUT' }],
      [`/v1/data/shops/${randomUUID()}`, {}],
      ['/v1/data/nothing', { body: { records: [record] } }],
      ['/v1/data/nothing', {}],
      ['/v1/data', {}],
      ['/v1', {}],
      ['/v1/elsewhere', {}],
      ['/v1/elsewhere/deeper', { method: 'DELETE' }],
      ['/user-interactions', { body: {} }],
      ['/user-interactions', {}],
      ['/user-interactions', { method: 'DELETE' }],
      [`/user-interactions/${randomUUID()}`, {}],
      ['/user-interactions/a/b', {}],
    ];
    const kinds = [
      'no key',
      'an empty key',
      'a malformed key',
      'a key that was never issued',
      'a key with another secret',
      'a key with the secret of another key',
      'half a key',
      'a key with more behind it',
      'a key in upper case',
      'two keys',
      'an expired key',
      'a revoked key',
      'a good key without a scheme',
      'a good key with another scheme',
      'a good key as a password',
    ];
    for (const kind of kinds) {
      it(`responds with 401 to ${kind} on every path that needs one, before any other check`, async () => {
        assert.deepEqual(Object.keys(bad), kinds);
        const stranger = apiOf(running.headgate.url, null);
        const authorization = bad[kind];
        for (const [path, options] of requests) {
          const headers = { ...options.headers, ...(authorization ? { Authorization: authorization } : {}) };
          const reply = await stranger.request(path, { ...options, headers });
          assertRefusal(reply, 401, /key is invalid or missing/);
          assert.equal(reply.headers.get('www-authenticate'), 'Bearer');
        }
      });
    }

    it('stores nothing of requests without a good key', async () => {
      assert.equal((await as(good).read('shops', record.shop_id as string)).status, 404);
    });

    it('is not needed to ask whether the service is alive or ready', async () => {
      const stranger = apiOf(running.headgate.url, null);
      for (const path of ['/livez', '/readyz']) assert.equal((await stranger.request(path)).status, 200);
    });

    it('accepts a good key with its scheme in any case', async () => {
      for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
        const headers = { Authorization: `${scheme} ${good}` };
        const reply = await apiOf(running.headgate.url, null).request('/v1/data/shops', { headers });
        assert.equal(reply.status, 200);
      }
    });
  });

  describe('a key with scopes', () => {
    let items: Items;
    let parents: Parents;
    let stored: TestRecord;
    let interactionId: string;

    before(async () => {
      const all = as(good);
      items = await uploadItems(all);
      parents = await uploadParents(all);
      stored = shop();
      await all.upload('shops', [stored]);
      interactionId = (await all.record(leastInteraction(items))).body.interaction_id as string;
    });

    interface Guarded {
      readonly what: string;
      readonly scope: string;
      ask(api: Api): Promise<{ readonly status: number }>;
      readonly success: number;
    }
    const guarded: readonly Guarded[] = [
      { what: 'upload', scope: 'data:write', success: 200, ask: (api) => api.upload('shops', [shop()]) },
      {
        what: 'try an upload out',
        scope: 'data:write',
        success: 200,
        ask: (api) => api.upload('shops', [shop()], { query: '?dry_run=true' }),
      },
      { what: 'list records', scope: 'data:read', success: 200, ask: (api) => api.list('shops') },
      {
        what: 'read a record',
        scope: 'data:read',
        success: 200,
        ask: (api) => api.read('shops', stored.shop_id as string),
      },
      {
        what: 'record an interaction',
        scope: 'interactions:write',
        success: 201,
        ask: (api) => api.record(leastInteraction(items)),
      },
      {
        what: 'list interactions',
        scope: 'interactions:read',
        success: 200,
        ask: (api) => api.interactions(),
      },
      {
        what: 'read an interaction',
        scope: 'interactions:read',
        success: 200,
        ask: (api) => api.request(`/user-interactions/${interactionId}`),
      },
    ];
    const scopes = ['data:write', 'data:read', 'interactions:write', 'interactions:read'];

    const assertLacks = (reply: unknown, scope: string): void =>
      assertRefusal(reply as Parameters<typeof assertRefusal>[0], 403, new RegExp(`scope.*${scope}`));

    it('may do everything if no scope was named', async () => {
      const all = as(good);
      for (const { what, ask, success } of guarded) assert.equal((await ask(all)).status, success, what);
    });

    for (const scope of scopes) {
      it(`may do what ${scope} allows, and gets 403 for everything else`, async () => {
        const api = await withScopes(scope);
        for (const { what, scope: needed, ask, success } of guarded) {
          const reply = await ask(api);
          if (needed === scope) assert.equal(reply.status, success, what);
          else assertLacks(reply, needed);
        }
      });
    }

    it('may be narrowed to writing some types and reading others, and may then do nothing else', async () => {
      const writable = ['branches', 'tags'];
      const readable = ['shops', 'tags'];
      const api = await withScopes(
        ...writable.map((type) => `data:write:${type}`),
        ...readable.map((type) => `data:read:${type}`),
      );
      for (const type of specTypes) {
        const record = specRecord(type, parents);
        const id = record[specKey(type)] as string;
        const upload = await api.upload(type, [record]);
        const list = await api.list(type);
        const found = await api.read(type, id);
        if (writable.includes(type)) assert.equal(upload.status, 200, type);
        else assertLacks(upload, `data:write:${type}`);
        if (readable.includes(type)) assert.equal(list.status, 200, type);
        else assertLacks(list, `data:read:${type}`);
        if (!readable.includes(type)) assertLacks(found, `data:read:${type}`);
        else assert.equal(found.status, writable.includes(type) ? 200 : 404, type);
        assert.equal((await as(good).read(type, id)).status, writable.includes(type) ? 200 : 404, type);
      }
      assertLacks(await api.record(leastInteraction(items)), 'interactions:write');
      assertLacks(await api.interactions(), 'interactions:read');
    });
  });

  // These tests mostly wait, so they run concurrently.
  describeOnceOn(
    store,
    'a key of a running server',
    () => {
      it('can be used as soon as it is issued', async () => {
        assert.equal(await statusWith((await issue()).key), 200);
      });

      it('is refused once it has expired', async () => {
        const { key, expires_at } = await issue<IssuedKey & { expires_at: string }>('--expires', '8s');
        assert.equal(await statusWith(key), 200);
        await sleep(Math.max(0, Date.parse(expires_at) - Date.now()) + 20);
        assert.equal(await statusWith(key), 401);
      });

      it('works beside its successor while they overlap, and is refused afterwards', async () => {
        const old = await issue('--scope', 'data:write', '--scope', 'data:read:shops');
        const record = shop();
        assert.equal((await as(old.key).upload('shops', [record])).status, 200);
        const rotate = (keyId: string, overlap: string) =>
          running.headgate.command<IssuedKey & { scopes: string[] }>(
            ...['keys', 'rotate', keyId, '--overlap', overlap],
          );
        const successor = await rotate(old.key_id, '24h');
        assert.notEqual(successor.key, old.key);
        assert.notEqual(successor.key_id, old.key_id);
        assert.equal(successor.org_id, old.org_id);
        assert.deepEqual(successor.scopes, ['data:write', 'data:read:shops']);
        for (const key of [old.key, successor.key]) {
          assert.equal((await as(key).read('shops', record.shop_id as string)).status, 200);
          assert.equal((await as(key).list('tags')).status, 403);
        }
        await assert.rejects(rotate(old.key_id, '1s'), new RegExp(`already rotated.*${successor.key_id}`));
        const second = await rotate(successor.key_id, '1s');
        await assertRefusedWithin(successor.key, 1000 + CHANGES_HOLD_WITHIN_MS);
        for (const { key } of [old, second]) assert.equal(await statusWith(key), 200);
      });

      it('is refused within five seconds after it is revoked, and other keys are not', async () => {
        const doomed = await running.headgate.anotherKey(organisation, []);
        assert.equal(await statusWith(doomed.key), 200);
        await running.headgate.command('keys', 'revoke', doomed.key_id);
        await assertRefusedWithin(doomed.key, CHANGES_HOLD_WITHIN_MS);
        assert.equal(await statusWith(good), 200);
      });

      it('is listed with the time when it was last used, and never with its secret', async () => {
        const { anotherKey } = running.headgate;
        const [used, unused] = [await anotherKey(organisation, []), await anotherKey(organisation, [])];
        const fromMs = Date.now();
        assert.equal(await statusWith(used.key), 200);
        const toMs = Date.now();
        const deadlineMs = Date.now() + LAST_USE_IS_NOTED_WITHIN_MS;
        let usedAt: string | null = null;
        while (usedAt === null) {
          assert.ok(Date.now() < deadlineMs, 'the last use was not noted in time');
          await sleep(4000);
          const listed: ListedKey[] = await running.headgate.command('keys', 'list', '--org', organisation);
          const lastUse = (keyId: string) => listed.find(({ key_id }) => key_id === keyId)!.last_used_at;
          usedAt = lastUse(used.key_id);
          assert.equal(lastUse(unused.key_id), null);
          for (const { key } of [used, unused])
            assert.ok(!JSON.stringify(listed).includes(key.split('_')[2]!));
        }
        assert.ok(fromMs <= Date.parse(usedAt) && Date.parse(usedAt) <= toMs, usedAt);
      });
    },
    { concurrency: true },
  );

  describeOnceOn(store, 'the rate limit', () => {
    const limited = runningHeadgate(store, { HEADGATE_RATE_LIMIT: String(REQUESTS_PER_SECOND) });
    const policy = `"key";q=${REQUESTS_PER_SECOND};w=1`;
    let api: Api;
    let other: Api;

    before(async () => {
      const first = await limited.headgate.newKey();
      const second = await limited.headgate.anotherKey(first.org_id, []);
      [api, other] = [first, second].map(({ key }) => apiOf(limited.headgate.url, key)) as [Api, Api];
    });

    it('applies to each key separately, and responses say how much is left', async () => {
      const ASKED = 30;
      const startMs = performance.now();
      const replies = await Promise.all(Array.from({ length: ASKED }, () => api.request('/v1/data/shops')));
      const elapsedSeconds = (performance.now() - startMs) / 1000;
      const refused = replies.filter(({ status }) => status === 429);
      const allowed = replies.filter(({ status }) => status === 200);
      assert.equal(refused.length + allowed.length, ASKED);
      assert.ok(allowed.length >= REQUESTS_PER_SECOND);
      assert.ok(allowed.length <= REQUESTS_PER_SECOND * (1 + elapsedSeconds));
      assert.ok(refused.length > 0, `${ASKED} requests took ${elapsedSeconds} s`);
      for (const { headers } of replies) {
        assert.equal(headers.get('ratelimit-policy'), policy);
        assert.match(headers.get('ratelimit')!, /^"key";r=[0-4];t=[01]$/);
      }
      for (const { headers } of allowed) assert.equal(headers.get('retry-after'), null);
      for (const reply of refused) {
        assertRefusal(reply, 429, /5 requests a second/);
        assert.equal(reply.headers.get('retry-after'), '1');
        assert.match(reply.headers.get('ratelimit')!, /r=0/);
      }
      assert.equal((await other.request('/v1/data/shops')).status, 200);
      await sleep(1000);
      assert.equal((await api.request('/v1/data/shops')).status, 200);
    });

    it('counts all paths that need a key together, and nothing beyond it is stored', async () => {
      const records = Array.from({ length: 30 }, () => shop());
      const replies = await Promise.all(
        records.flatMap((record) => [
          api.request('/v1/data/shops', { body: { records: [record] } }),
          api.request('/user-interactions'),
        ]),
      );
      const statuses = replies.map(({ status }) => status);
      assert.ok(statuses.filter((status) => status === 200).length < 60);
      const uploads = statuses.filter((_, at) => at % 2 === 0);
      const stored = uploads.filter((status) => status === 200).length;
      assert.ok(stored < 30);
      await sleep(1000);
      assert.equal((await api.list('shops')).body.records.length, stored);
    });

    it('does not apply to probes, and is not reported without a key', async () => {
      const stranger = apiOf(limited.headgate.url, null);
      const alive = await Promise.all(Array.from({ length: 30 }, () => stranger.request('/livez')));
      assert.ok(alive.every(({ status }) => status === 200));
      const unknown = await Promise.all(Array.from({ length: 30 }, () => stranger.request('/v1/data/shops')));
      assert.ok(unknown.every(({ status }) => status === 401));
      for (const { headers } of [...alive, ...unknown]) assert.equal(headers.get('ratelimit'), null);
    });

    it('does not apply if it is off', async () => {
      const free = as(good);
      const replies = await Promise.all(Array.from({ length: 60 }, () => free.request('/v1/data/shops')));
      for (const { status, headers } of replies) {
        assert.equal(status, 200);
        assert.equal(headers.get('ratelimit'), null);
        assert.equal(headers.get('ratelimit-policy'), null);
      }
    });
  });

  describe('reading records back', () => {
    const COUNT = 230;
    let api: Api;
    let all: TestRecord[];
    let living: TestRecord[];

    before(async () => {
      api = await running.newApi();
      const sent = Array.from({ length: COUNT }, (_, at) => shop({ is_deleted: at % 10 === 0 }));
      assert.equal((await api.upload('shops', sent)).status, 200);
      all = sent
        .map((record) => shownRecord('shops', record))
        .sort((a, b) => ((a.shop_id as string) < (b.shop_id as string) ? -1 : 1));
      living = all.filter(({ is_deleted }) => is_deleted === false);
    });

    it('lists a hundred in the order of their ids, without those marked as deleted', async () => {
      const { status, body } = await api.list('shops');
      assert.equal(status, 200);
      assert.deepEqual(Object.keys(body).sort(), ['next_cursor', 'records', 'type']);
      assert.equal(body.type, 'shops');
      assert.deepEqual(body.records, living.slice(0, 100));
      assert.equal(typeof body.next_cursor, 'string');
    });

    for (const limit of [1, 7, 100, 207, 230, 1000]) {
      it(`pages through all with a limit of ${limit}, each record once`, async () => {
        for (const [more, wanted] of [
          ['', living],
          ['&include_deleted=false', living],
          ['&include_deleted=true', all],
        ] as const) {
          const pages = await pagesOfRecords(api, 'shops', `?limit=${limit}${more}`);
          assert.deepEqual(
            pages.map((page) => page.length),
            pageSizes(wanted.length, limit),
          );
          assert.deepEqual(pages.flat(), wanted);
        }
      });
    }

    it('keeps its position while records are added and deleted', async () => {
      const idWith = (digit: string): string => `${digit.repeat(8)}-0000-4000-8000-000000000000`;
      const tag = (digit: string, given: TestRecord = {}): TestRecord =>
        specRecord('tags', {}, { tag_id: idWith(digit), ...given });
      const digitsOf = (records: readonly TestRecord[]): string[] =>
        records.map(({ tag_id }) => (tag_id as string)[0]!);
      await api.upload(
        'tags',
        ['1', '3', '5', '7'].map((digit) => tag(digit)),
      );
      const first = await api.list('tags', '?limit=2');
      assert.deepEqual(digitsOf(first.body.records), ['1', '3']);
      await api.upload('tags', [tag('2'), tag('6'), tag('3', { is_deleted: true })]);
      const second = await api.list('tags', `?cursor=${first.body.next_cursor}`);
      assert.deepEqual(digitsOf(second.body.records), ['5', '6', '7']);
      assert.equal(second.body.next_cursor, null);
    });

    it('finds a record by its id in any case, also one that is marked as deleted', async () => {
      const deleted = all.find(({ is_deleted }) => is_deleted === true)!;
      for (const record of [living[0]!, deleted]) {
        const id = record.shop_id as string;
        assert.deepEqual((await api.read('shops', id)).body, record);
        assert.deepEqual((await api.read('shops', id.toUpperCase())).body, record);
      }
    });

    it('returns 404 for an unknown id, or one of another type', async () => {
      for (const id of [randomUUID(), 'seven', '%20', `{${randomUUID()}}`]) {
        assertRefusal(await api.request(`/v1/data/shops/${id}`), 404, /shop/);
      }
      assertRefusal(await api.request(`/v1/data/branches/${all[0]!.shop_id}`), 404, /branch/);
    });

    it('lists every type', async () => {
      const reader = await running.newApi();
      const parents = await uploadParents(reader);
      const targets = new Set(specReferences.map(({ target }) => target));
      for (const type of specTypes) {
        if (targets.has(type)) {
          const { body } = await reader.list(type);
          assert.deepEqual(
            body.records.map((record) => record[specKey(type)]),
            [parents[type]],
          );
          continue;
        }
        assert.deepEqual((await reader.list(type)).body, { type, records: [], next_cursor: null });
        const record = specRecord(type, parents);
        assert.equal((await reader.upload(type, [record])).status, 200);
        const { body } = await reader.list(type);
        assert.deepEqual(body, { type, records: [shownRecord(type, record)], next_cursor: null });
      }
    });

    it('refuses a bad limit, cursor or flag', async () => {
      const { body: page } = await api.list('shops', '?limit=1');
      for (const [query, says] of [
        ['limit=0', /^limit /],
        ['limit=-1', /^limit /],
        ['limit=1001', /^limit /],
        ['limit=10000', /^limit /],
        ['limit=1.5', /^limit /],
        ['limit=1e2', /^limit /],
        ['limit=ten', /^limit /],
        ['limit=', /^limit /],
        ['limit=5&limit=6', /limit.*more than once/],
        ['cursor=', /^cursor /],
        ['cursor=nonsense', /^cursor /],
        [`cursor=${page.next_cursor}x`, /^cursor /],
        [`cursor=${page.next_cursor!.slice(1)}`, /^cursor /],
        [`cursor=${all[0]!.shop_id}`, /^cursor /],
        ['include_deleted=yes', /^include_deleted /],
        ['include_deleted=', /^include_deleted /],
        ['include_deleted=1', /^include_deleted /],
      ] as const) {
        assertRefusal(await api.request(`/v1/data/shops?${query}`), 400, says);
      }
    });
  });

  /** Repeats a request until the key is refused, which must be in time. After that it must stay refused. */
  async function assertRefusedWithin(key: string, withinMs: number): Promise<void> {
    const deadlineMs = performance.now() + withinMs;
    let status = await statusWith(key);
    while (status === 200 && performance.now() < deadlineMs) {
      await sleep(50);
      status = await statusWith(key);
    }
    assert.equal(status, 401, `still answered ${status} after ${withinMs} ms`);
    for (let time = 0; time < 10; time++) assert.equal(await statusWith(key), 401);
  }
});
