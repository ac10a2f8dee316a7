// The upload history, the feed of changes and the usage over HTTP. The order of the ledger is tested in
// ledger-order.test.ts, and its storage in server/store/ledger.test.ts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, apiOf, type Counts, type RefusalBody, type UploadBody } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { connectRaw } from './harness/raw-connection.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

interface Upload {
  readonly seq: number;
  readonly request_id: string;
  readonly type: string;
  readonly key_id: string;
  readonly key_name: string | null;
  readonly received_at: string;
  readonly status: string;
  readonly counts: Counts;
  readonly bytes: number;
  readonly ms: number;
}

interface UploadWithCauses extends Upload {
  readonly causes: readonly {
    readonly code: string;
    readonly field: string | null;
    readonly count: number;
    readonly examples: readonly { index: number; id: string | null; message: string }[];
  }[];
}

interface UploadsBody {
  readonly uploads: readonly Upload[];
  readonly next_cursor: string | null;
}

interface ChangesBody {
  readonly changes: readonly { seq: number; type: string; id: string; record: Record<string, unknown> }[];
  readonly next: string;
  readonly latest: number;
}

type Sums = Record<string, number | string | null>;

interface UsageBody {
  readonly from: string;
  readonly to: string;
  readonly by: string;
  readonly usage: readonly Sums[];
  readonly total: Sums;
}

const LONGEST_WAIT_MS = 30_000;

forEachStore((store) => {
  const running = runningHeadgate(store);

  const uploadsOf = async (api: Api, query = ''): Promise<UploadsBody> => {
    const { status, body, text } = await api.request<UploadsBody>(`/v1/uploads${query}`);
    assert.equal(status, 200, text);
    return body;
  };
  const changesOf = async (api: Api, query = ''): Promise<ChangesBody> => {
    const { status, body, text } = await api.request<ChangesBody>(`/v1/changes${query}`);
    assert.equal(status, 200, text);
    return body;
  };
  const tags = (count: number) => Array.from({ length: count }, () => leastRecord('tags'));
  const receiptOf = async (api: Api, type: string, records: readonly unknown[]): Promise<UploadBody> =>
    (await api.upload(type, records)).body;
  const interactionWith = (shopId: unknown) => ({
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: shopId,
    event_timestamp: 1_714_555_800,
  });

  describe('a receipt', () => {
    test('has the number of the upload in the ledger, from 1 on, without gaps', async () => {
      const api = await running.newApi();
      const seqs = [];
      for (let n = 0; n < 3; n++) seqs.push((await receiptOf(api, 'tags', tags(1))).seq);
      assert.deepEqual(seqs, [1, 2, 3]);
    });

    test('of a dry run and of a refused request has no number, and neither takes one', async () => {
      const api = await running.newApi();
      const dry = await api.upload('tags', tags(1), { query: '?dry_run=true' });
      assert.equal(dry.body.seq, undefined);
      assert.equal((await api.upload('tags', [])).status, 400);
      assert.equal((await receiptOf(api, 'tags', tags(1))).seq, 1);
    });

    test('of a replay has the number of the first upload', async () => {
      const api = await running.newApi();
      await receiptOf(api, 'tags', tags(1));
      const records = tags(2);
      const headers = { 'Idempotency-Key': randomUUID() };
      const first = await api.upload('tags', records, { headers });
      const again = await api.upload('tags', records, { headers });
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      assert.equal(first.body.seq, 2);
      assert.equal(again.text, first.text);
      assert.equal((await uploadsOf(api)).uploads.length, 2, 'a replay is the same upload');
    });
  });

  describe('the upload history', () => {
    test('shows who sent what, when and with what result, newest first', async () => {
      const { key, key_id } = await running.headgate.newKey('nightly');
      const api = apiOf(running.headgate.url, key);
      const startedAtMs = Date.now() - 1;
      const good = leastRecord('shops');
      const first = await receiptOf(api, 'shops', [good, good, { ...good, shop_id: 'x' }]);
      const second = await receiptOf(api, 'shops', [good]);
      const third = await receiptOf(api, 'tags', [{}]);
      await api.record(interactionWith(good.shop_id));
      const { uploads, next_cursor } = await uploadsOf(api);
      assert.equal(next_cursor, null);
      assert.deepEqual(
        uploads.map(({ seq, type, status }) => [seq, type, status]),
        [
          [4, 'interactions', 'success'],
          [3, 'tags', 'error'],
          [2, 'shops', 'success'],
          [1, 'shops', 'partial'],
        ],
      );
      assert.deepEqual(
        uploads.slice(1).map(({ request_id }) => request_id),
        [third.request_id, second.request_id, first.request_id],
      );
      const oldest = uploads.at(-1)!;
      assert.equal(oldest.key_id, key_id);
      assert.deepEqual(oldest.counts, { received: 3, created: 1, updated: 0, unchanged: 1, rejected: 1 });
      const receivedAtMs = Date.parse(oldest.received_at);
      assert.ok(receivedAtMs >= startedAtMs && receivedAtMs <= Date.now(), oldest.received_at);
      assert.ok(oldest.bytes > 100 && oldest.ms >= 0 && oldest.ms < 60_000, JSON.stringify(oldest));
    });

    test('shows why records were rejected, within bounds', async () => {
      const api = await running.newApi();
      const bad = Array.from({ length: 50 }, (_, n) => ({ ...leastRecord('tags'), [`field_${n}`]: 1 }));
      const { request_id } = await receiptOf(api, 'tags', [...bad, { tag_id: 'x' }, { tag_id: 'y' }]);
      const { body } = await api.request<UploadWithCauses>(`/v1/uploads/${request_id}`);
      assert.equal(body.request_id, request_id);
      assert.equal(
        body.causes.reduce((sum, { count }) => sum + count, 0),
        54,
        'all problems are counted',
      );
      assert.ok(body.causes.length <= 24, `${body.causes.length} causes`);
      assert.ok(body.causes.every(({ examples }) => examples.length >= 1 && examples.length <= 3));
      const format = body.causes.find(({ code }) => code === 'invalid_format')!;
      assert.deepEqual(
        [format.field, format.count, format.examples.map(({ index }) => index)],
        ['tag_id', 2, [50, 51]],
      );
      assert.match(format.examples[0]!.message, /tag_id must be a UUID/);
    });

    test('has no upload of another organisation', async () => {
      const api = await running.newApi();
      const { request_id } = await receiptOf(api, 'tags', tags(1));
      const other = await running.newApi();
      assert.equal((await other.request(`/v1/uploads/${request_id}`)).status, 404);
      assert.equal((await other.request('/v1/uploads/not-an-id')).status, 404);
      assert.deepEqual((await uploadsOf(other)).uploads, []);
    });

    test('is filtered and read page by page', async () => {
      const api = await running.newApi();
      for (let n = 0; n < 7; n++) await api.upload(n % 2 === 0 ? 'tags' : 'shops', n === 4 ? [{}] : tags(1));
      const seqsOf = async (query: string) => (await uploadsOf(api, query)).uploads.map(({ seq }) => seq);
      assert.deepEqual(await seqsOf('?type=tags'), [7, 5, 3, 1]);
      assert.deepEqual(await seqsOf('?type=tags&status=error'), [5]);
      assert.deepEqual(await seqsOf('?key_id=unknown'), []);
      const { received_at: third } = (await uploadsOf(api)).uploads.find(({ seq }) => seq === 3)!;
      assert.ok((await seqsOf(`?from=${third}`)).includes(3));
      assert.ok(!(await seqsOf(`?to=${third}`)).includes(3));
      const seqs: number[] = [];
      for (let cursor = ''; ; ) {
        const page = await uploadsOf(api, `?limit=2${cursor}`);
        seqs.push(...page.uploads.map(({ seq }) => seq));
        if (page.next_cursor === null) break;
        cursor = `&cursor=${page.next_cursor}`;
      }
      assert.deepEqual(seqs, [7, 6, 5, 4, 3, 2, 1]);
    });

    test('refuses wrong parameters by name', async () => {
      const api = await running.newApi();
      for (const [query, part] of [
        ['status=bad', 'status must be one of success, partial, error'],
        ['type=shop', 'Did you mean shops'],
        ['from=yesterday', 'from must be'],
        ['limit=0', 'limit must be'],
        ['cursor=abc', 'cursor was not issued'],
        ['key_id=%00', 'key_id must be the id of a key'],
      ] as const) {
        const { status, body } = await api.request<RefusalBody>(`/v1/uploads?${query}`);
        assert.equal(status, 400, query);
        assert.ok(body.message.includes(part), body.message);
      }
    });
  });

  describe('the feed of changes', () => {
    test('shows the current state of everything that has changed, each once', async () => {
      const api = await running.newApi();
      const [first, second] = tags(2);
      await api.upload('tags', [first, second]);
      await api.upload('tags', [{ ...first, name: 'renamed' }]);
      await api.upload('tags', [{ ...second, is_deleted: true }]);
      await api.upload('tags', [second]);
      await api.upload('tags', [second]);
      const { changes, next, latest } = await changesOf(api);
      assert.deepEqual(
        changes.map(({ seq, type, id, record }) => [seq, type, id, record.name, record.is_deleted]),
        [
          [2, 'tags', first!.tag_id, 'renamed', false],
          [4, 'tags', second!.tag_id, second!.name, false],
        ],
      );
      assert.deepEqual([next, latest], ['5', 5]);
      assert.deepEqual(await changesOf(api, '?after=5'), { changes: [], next: '5', latest: 5 });
    });

    test('has records exactly as GET returns them, and interactions', async () => {
      const api = await running.newApi();
      const shop = leastRecord('shops');
      await api.upload('shops', [shop]);
      const { body: interaction } = await api.record(interactionWith(shop.shop_id));
      const { changes } = await changesOf(api);
      assert.deepEqual(changes[0]!.record, (await api.read('shops', shop.shop_id as string)).body);
      assert.deepEqual(changes[1]!.record, interaction);
      assert.deepEqual([changes[1]!.type, changes[1]!.id], ['interactions', interaction.interaction_id]);
    });

    test('is read in pages that may end within an upload', async () => {
      const api = await running.newApi();
      const records = tags(25);
      await api.upload('tags', records);
      await api.upload('tags', tags(3));
      const ids: string[] = [];
      const positions: string[] = [];
      for (let after = '0'; ; ) {
        const page = await changesOf(api, `?limit=10&after=${after}`);
        ids.push(...page.changes.map(({ id }) => id));
        after = page.next;
        positions.push(after);
        if (page.changes.length === 0) break;
      }
      assert.equal(new Set(ids).size, 28);
      assert.deepEqual(positions, ['1:10', '1:20', '2', '2']);
      assert.ok(records.every(({ tag_id: id }) => ids.includes(id as string)));
    });

    test('is the same as NDJSON', async () => {
      const { key } = await running.headgate.newKey();
      const api = apiOf(running.headgate.url, key);
      await api.upload('tags', [leastRecord('tags', { name: 'two\nlines, "quoted"' }), ...tags(2)]);
      const { changes, ...end } = await changesOf(api);
      const ndjson = await fetch(`${running.headgate.url}/v1/changes`, {
        headers: { Authorization: `Bearer ${key}`, Accept: 'text/html, application/x-ndjson; q=0.9' },
      });
      assert.equal(ndjson.headers.get('content-type'), 'application/x-ndjson; charset=utf-8');
      const unknown = await api.request('/v1/changes', { headers: { Accept: 'text/csv' } });
      assert.equal(unknown.status, 406);
      assert.deepEqual(
        (await ndjson.text())
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line)),
        [...changes, end],
      );
    });

    test('has only one type if asked, and only what the key may read', async () => {
      const { key, org_id } = await running.headgate.newKey();
      const api = apiOf(running.headgate.url, key);
      await api.upload('tags', tags(1));
      await api.upload('shops', [leastRecord('shops')]);
      const typesOf = ({ changes }: ChangesBody) => changes.map(({ type }) => type);
      assert.deepEqual(typesOf(await changesOf(api, '?type=shops')), ['shops']);
      const issued = await running.headgate.anotherKey(org_id, ['data:read:tags']);
      const narrow = apiOf(running.headgate.url, issued.key);
      assert.deepEqual(typesOf(await changesOf(narrow)), ['tags']);
      assert.equal((await narrow.request('/v1/changes?type=shops')).status, 403);
      const writer = await running.headgate.anotherKey(org_id, ['data:write:tags']);
      const writing = apiOf(running.headgate.url, writer.key);
      assert.equal((await writing.request('/v1/changes')).status, 403);
    });

    test('an upload is found by its request id and by its number', async () => {
      const api = await running.newApi();
      await api.upload('tags', tags(1));
      const { request_id, seq } = await receiptOf(api, 'tags', [{}]);
      const byId = await api.request(`/v1/uploads/${request_id}`);
      assert.equal(byId.status, 200);
      assert.deepEqual((await api.request(`/v1/uploads/${seq}`)).body, byId.body);
      for (const id of ['0', '3', '-1', '02', '2.0', '999999999999999', '9'.repeat(20)]) {
        assert.equal((await api.request(`/v1/uploads/${id}`)).status, 404, id);
      }
    });

    test('a key that may only write sees only its own uploads and its own usage', async () => {
      const { key, org_id } = await running.headgate.newKey();
      const api = apiOf(running.headgate.url, key);
      const others = await receiptOf(api, 'tags', tags(1));
      const path = `/v1/uploads/${others.request_id}`;
      const reader = await running.headgate.anotherKey(org_id, ['data:read:tags']);
      assert.equal((await apiOf(running.headgate.url, reader.key).request(path)).status, 200);
      for (const scopes of [['data:write:tags'], ['data:write:tags', 'data:read:shops']]) {
        const writer = await running.headgate.anotherKey(org_id, scopes);
        const writing = apiOf(running.headgate.url, writer.key);
        assert.deepEqual((await uploadsOf(writing)).uploads, []);
        assert.equal((await writing.request(path)).status, 404);
        const own = await receiptOf(writing, 'tags', [{}]);
        const seen = (await uploadsOf(writing)).uploads.map(({ request_id }) => request_id);
        assert.deepEqual(seen, [own.request_id]);
        assert.equal((await writing.request(`/v1/uploads/${own.request_id}`)).status, 200);
        const { body } = await writing.request<{ usage: object[] }>('/v1/usage?by=key');
        assert.deepEqual(
          body.usage.map((of) => (of as { key_id: string }).key_id),
          [writer.key_id],
        );
      }
    });

    test('refuses positions that it does not have, and says how to start over', async () => {
      const api = await running.newApi();
      await api.upload('tags', tags(1));
      const { status, body } = await api.request<RefusalBody>('/v1/changes?after=2');
      assert.equal(status, 410);
      assert.match(body.message, /read everything, then follow from after=1/);
      for (const after of ['-1', '1.5', '1:', 'x', '99999999999999999999']) {
        assert.equal((await api.request(`/v1/changes?after=${after}`)).status, 400, after);
      }
      assert.equal((await api.request('/v1/changes?limit=10001')).status, 400);
      assert.equal((await api.request('/v1/changes?wait=31')).status, 400);
    });

    test('ends a page at a few MiB', async () => {
      const api = await running.newApi();
      const text = '\u0001'.repeat(10_000);
      const long = Array.from({ length: 60 }, () => leastRecord('tags', { name: text }));
      await api.upload('tags', long.slice(0, 30));
      await api.upload('tags', long.slice(30));
      await api.upload('tags', long.map((tag) => ({ ...tag, is_deleted: true })).slice(0, 30));
      await api.upload('tags', long.map((tag) => ({ ...tag, is_deleted: true })).slice(30));
      const ids = new Set<string>();
      let pages = 0;
      for (let after = '0'; ; pages++) {
        const { text, body } = await api.request<ChangesBody>(`/v1/changes?limit=10000&after=${after}`);
        if (body.changes.length === 0) break;
        assert.ok(text.length < 4.1 * 1024 * 1024, `${text.length} bytes`);
        for (const { id } of body.changes) ids.add(id);
        after = body.next;
      }
      assert.equal(ids.size, 60);
      assert.equal(pages, 1);
    });
  });

  // They mostly wait, each in an organisation of its own.
  describe('a follower', { concurrency: true }, () => {
    test('waits for the next upload, and gets it at once', async () => {
      const api = await running.newApi();
      await api.upload('tags', tags(1));
      const waiting = changesOf(api, '?after=1&wait=30');
      await sleep(300);
      const startedAtMs = performance.now();
      await api.upload('tags', tags(2));
      const { changes, next } = await waiting;
      assert.equal(changes.length, 2);
      assert.equal(next, '2');
      assert.ok(performance.now() - startedAtMs < LONGEST_WAIT_MS / 3);
    });

    test('of one type is not woken for good by others, and gets a new position', async () => {
      const api = await running.newApi();
      const waiting = changesOf(api, '?wait=4&type=shops');
      await sleep(300);
      await api.upload('tags', tags(1));
      assert.deepEqual(await waiting, { changes: [], next: '1', latest: 1 });
    });

    test('gets an empty page after its time', async () => {
      const api = await running.newApi();
      const startedAtMs = performance.now();
      assert.deepEqual(await changesOf(api, '?wait=1'), { changes: [], next: '0', latest: 0 });
      assert.ok(performance.now() - startedAtMs >= 990);
    });

    test('that closes its side of the connection is not waited for', async () => {
      const { key } = await running.headgate.newKey();
      const connection = await connectRaw(running.headgate.url);
      connection.send({ path: '/v1/changes?wait=30', headers: { Authorization: `Bearer ${key}` } });
      await sleep(300);
      const startedAtMs = performance.now();
      connection.endSending();
      assert.equal((await connection.answer()).status, 200);
      assert.ok(performance.now() - startedAtMs < LONGEST_WAIT_MS / 3);
      connection.destroy();
    });

    test('whose key is revoked during the wait gets no changes', async () => {
      const { key, key_id, org_id } = await running.headgate.newKey();
      const api = apiOf(running.headgate.url, key);
      const issued = await running.headgate.anotherKey(org_id, []);
      const waiting = api.request('/v1/changes?wait=30');
      await sleep(300);
      await running.headgate.command('keys', 'revoke', key_id);
      // A revocation takes effect within 5 seconds.
      await waitUntil('the key is revoked', async () => (await api.request('/v1/changes')).status === 401);
      await apiOf(running.headgate.url, issued.key).upload('tags', tags(1));
      assert.equal((await waiting).status, 401);
    });

    test('does not keep its organisation from reading, and too many are refused', async () => {
      const { key } = await running.headgate.newKey();
      const api = apiOf(running.headgate.url, key);
      const leave = new AbortController();
      let refusedAtFirst = 0;
      const followers = Array.from({ length: 60 }, async () => {
        const response = await fetch(`${running.headgate.url}/v1/changes?wait=30`, {
          headers: { Authorization: `Bearer ${key}` },
          signal: leave.signal,
        }).catch(() => null);
        if (response?.status === 503) refusedAtFirst++;
      });
      try {
        await waitUntil('ten of them are refused', () => refusedAtFirst === 10);
        const refused = await api.request<RefusalBody>('/v1/changes?wait=1');
        assert.equal(refused.status, 503);
        assert.equal(refused.headers.get('retry-after'), '1');
        assert.equal((await api.list('tags')).status, 200);
        assert.equal((await api.request('/v1/changes')).status, 200);
      } finally {
        leave.abort();
        await Promise.all(followers);
      }
    });
  });

  describe('the usage', () => {
    test('adds uploads up by day, type and key', async () => {
      const { key, key_id } = await running.headgate.newKey();
      const api = apiOf(running.headgate.url, key);
      const shop = leastRecord('shops');
      await api.upload('shops', [shop, {}]);
      await api.upload('shops', [{ ...shop, name: 'renamed' }]);
      await api.upload('tags', tags(3));
      await api.record(interactionWith(shop.shop_id));
      const usageBy = async (by: string) => (await api.request<UsageBody>(`/v1/usage?by=${by}`)).body;
      const byType = await usageBy('type');
      const shown = byType.usage.map(({ bytes, ...sums }) => {
        assert.ok(Number(bytes) > 0);
        return sums;
      });
      const nothing = { created: 0, updated: 0, unchanged: 0, rejected: 0, interactions: 0 };
      assert.deepEqual(shown, [
        { type: 'interactions', ...nothing, uploads: 1, received: 1, created: 1, interactions: 1 },
        { type: 'shops', ...nothing, uploads: 2, received: 3, created: 1, updated: 1, rejected: 1 },
        { type: 'tags', ...nothing, uploads: 1, received: 3, created: 3 },
      ]);
      assert.deepEqual([byType.total.uploads, byType.total.received], [4, 7]);
      const today = new Date().toISOString().slice(0, 10);
      const byDay = await usageBy('day');
      assert.deepEqual(byDay.usage, [{ day: today, ...byDay.total }]);
      const byKey = await usageBy('key');
      assert.deepEqual(byKey.usage, [{ key_id, key_name: byKey.usage[0]!.key_name, ...byDay.total }]);
      const before = await api.request<UsageBody>('/v1/usage?from=2024-01-01&to=2024-01-31');
      assert.deepEqual(before.body.usage, []);
    });

    test('refuses wrong parameters by name', async () => {
      const api = await running.newApi();
      for (const query of [
        'by=week',
        'from=2024-02-30',
        'from=2024-02-02&to=2024-02-01',
        'from=2000-01-01',
      ]) {
        assert.equal((await api.request(`/v1/usage?${query}`)).status, 400, query);
      }
    });
  });
});
