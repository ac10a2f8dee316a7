// Segments over HTTP, on a real analytics process. What conditions mean is tested in server/analytics/segments/, and the
// storage of members in server/store/segments.test.ts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../server/store/open-store.ts';
import { type Api, apiOf, type RefusalBody, type Reply } from './harness/api.ts';
import { describeOnceOn, forEachStore } from './harness/for-each-store.ts';
import { processCpuMs } from './harness/process-cpu.ts';
import { bearer } from './harness/raw-connection.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

interface SegmentBody {
  readonly name: string;
  readonly note: string | null;
  readonly condition: unknown;
  readonly count: number;
  readonly evaluation: { readonly at: string; readonly entered: number; readonly left: number } | null;
  readonly failure: { readonly at: string; readonly message: string } | null;
  readonly used_by: readonly string[];
  readonly latest: number;
}

interface MembersBody {
  readonly members: readonly { readonly customer_id: string; readonly since: string }[];
  readonly next_cursor: string | null;
}

interface ChangesBody {
  readonly changes: readonly {
    readonly seq: number;
    readonly customer_id: string;
    readonly change: 'entered' | 'left';
    readonly at: string;
  }[];
  readonly next: number;
  readonly latest: number;
}

const isIn = (...regions: readonly string[]) => ({ customer: 'region', in: regions });

async function ok<Body>(reply: Promise<Reply<Body>>): Promise<Body> {
  const { status, text, body } = await reply;
  assert.equal(status, 200, text);
  return body;
}

function save(api: Api, name: string, condition: unknown, note?: string): Promise<Reply<SegmentBody>> {
  return api.request<SegmentBody>(`/v1/segments/${name}`, { method: 'PUT', body: { condition, note } });
}

function get<Body>(api: Api, path: string, headers: Record<string, string> = {}): Promise<Reply<Body>> {
  return api.request<Body>(`/v1/segments${path}`, { headers });
}

async function uploadCustomers(api: Api, regions: readonly string[]): Promise<readonly string[]> {
  const customers = regions.map((region) => leastRecord('customers', { region }));
  await api.upload('customers', customers);
  return customers.map(({ customer_id }) => customer_id as string);
}

async function setRegion(api: Api, customer_id: string, region: string): Promise<void> {
  await api.upload('customers', [leastRecord('customers', { customer_id, region })]);
}

forEachStore((store) => {
  const folder = join(process.env.TMPDIR ?? '/tmp', `hs-${process.pid}-${store.name.length}`);
  const server = runningHeadgate(store, { HEADGATE_ANALYTICS_DIR: folder, HEADGATE_SEGMENTS_EVERY: '4s' });
  after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

  test('a segment is saved, evaluated and read back', async () => {
    const api = await server.newApi();
    const [de, at] = await uploadCustomers(api, ['DE', 'AT', 'GB']);
    const condition = { all: [isIn('DE', 'AT'), { not: { did: 'transactions', within: '30d' } }] };
    // This starts the analytics process. A segment that is not evaluated soon after it was saved would be due.
    await ok(api.request('/v1/segments/preview', { body: { condition } }));
    const saved = await ok(save(api, 'near', condition, 'Neighbours'));
    assert.deepEqual(
      { ...saved, evaluation: null, latest: null, created_at: null, saved_at: null },
      {
        name: 'near',
        note: 'Neighbours',
        count: 2,
        created_at: null,
        saved_at: null,
        evaluation: null,
        failure: null,
        latest: null,
        condition,
        used_by: [],
      },
    );
    assert.deepEqual([saved.evaluation!.entered, saved.evaluation!.left], [2, 0]);
    assert.ok(Math.abs(Date.parse(saved.evaluation!.at) - Date.now()) < 60_000);
    assert.deepEqual(await ok(get(api, '/near')), saved);
    const { condition: _, used_by: __, ...listed } = saved;
    assert.deepEqual(await ok(get(api, '')), { segments: [listed] });
    const { members } = await ok(get<MembersBody>(api, '/near/members'));
    assert.deepEqual(
      members.map(({ customer_id }) => customer_id),
      [de!, at!].sort(),
    );
    assert.ok(members.every(({ since }) => Math.abs(Date.parse(since) - Date.now()) < 60_000));
    const other = await server.newApi();
    assert.equal((await get(other, '/near')).status, 404);
    assert.deepEqual(await ok(get(other, '')), { segments: [] });
  });

  test('a preview counts every node, and saves nothing', async () => {
    const api = await server.newApi();
    const [de] = await uploadCustomers(api, ['DE', 'AT', 'GB']);
    const condition = { any: [isIn('DE'), { all: [isIn('AT'), { sample: { percent: 0, salt: 'a' } }] }] };
    const body = await ok(
      api.request<Record<string, unknown>>('/v1/segments/preview', { body: { condition } }),
    );
    const { ms, as_of, ...rest } = body as { ms: number; as_of: { complete: boolean } };
    assert.deepEqual(rest, {
      count: 1,
      nodes: [
        { path: '', count: 1 },
        { path: 'any[0]', count: 1 },
        { path: 'any[1]', count: 0 },
        { path: 'any[1].all[0]', count: 1 },
        { path: 'any[1].all[1]', count: 0 },
      ],
      sample: [de],
    });
    assert.ok(ms >= 0 && as_of.complete);
    assert.deepEqual(await ok(get(api, '')), { segments: [] });
  });

  test('a condition may have as many values as its length allows', async () => {
    const api = await server.newApi();
    await uploadCustomers(api, ['DE']);
    const ages = Array.from({ length: 1000 }, (_, age) => age);
    const condition = { any: Array.from({ length: 16 }, () => ({ customer: 'age', in: ages })) };
    const { nodes } = await ok(
      api.request<{ nodes: unknown[] }>('/v1/segments/preview', { body: { condition } }),
    );
    assert.equal(nodes.length, 17);
  });

  test('members enter and leave, and a follower sees each change once', async () => {
    const api = await server.newApi();
    const [p, q] = (await uploadCustomers(api, ['DE', 'GB'])) as [string, string];
    const saved = await ok(save(api, 'german', isIn('DE')));
    const first = await ok(get<ChangesBody>(api, '/german/changes'));
    assert.deepEqual(
      first.changes.map(({ customer_id, change }) => [customer_id, change]),
      [[p, 'entered']],
    );
    assert.equal(first.next, saved.latest);
    await setRegion(api, p, 'GB');
    await setRegion(api, q, 'DE');
    const refreshed = await ok(api.request<SegmentBody>('/v1/segments/german/refresh', { method: 'POST' }));
    assert.deepEqual([refreshed.count, refreshed.evaluation!.entered, refreshed.evaluation!.left], [1, 1, 1]);
    const second = await ok(get<ChangesBody>(api, `/german/changes?after=${first.next}`));
    assert.deepEqual(
      new Set(second.changes.map(({ customer_id, change }) => `${customer_id} ${change}`)),
      new Set([`${p} left`, `${q} entered`]),
    );
    assert.deepEqual([second.next, second.latest], [refreshed.latest, refreshed.latest]);
    assert.deepEqual(await ok(get(api, `/german/changes?after=${second.next}`)), {
      changes: [],
      next: second.next,
      latest: second.next,
    });
    for (const after of [0, second.next + 1]) {
      const gone = await get<RefusalBody & { latest: number }>(api, `/german/changes?after=${after}`);
      assert.deepEqual([gone.status, gone.body.latest], [410, second.latest]);
    }
    const { body } = await api.request<{ rows: unknown[] }>('/v1/sql', {
      body: { sql: 'SELECT segment, customer_id FROM segment_members' },
    });
    assert.deepEqual(body.rows, [['german', q]]);
  });

  test('a customer is explained', async () => {
    const api = await server.newApi();
    const [p, q] = (await uploadCustomers(api, ['DE', 'GB'])) as [string, string];
    await ok(save(api, 'german', { any: [isIn('DE'), { did: 'transactions' }] }));
    const why = (id: string) => get<Record<string, unknown>>(api, `/german/members/${id}`);
    const { since, as_of, ...rest } = await ok(why(p));
    assert.deepEqual(rest, {
      member: true,
      nodes: [
        { path: '', holds: true, saw: null },
        { path: 'any[0]', holds: true, saw: 'DE' },
        { path: 'any[1]', holds: false, saw: 0 },
      ],
    });
    assert.ok(Math.abs(Date.parse(since as string) - Date.now()) < 60_000);
    assert.equal((as_of as { complete: boolean }).complete, true);
    const other = await ok(why(q));
    assert.deepEqual([other.member, other.since], [false, null]);
    for (const unknown of [randomUUID(), 'x']) assert.equal((await why(unknown)).status, 404);
  });

  test('all members can be read page by page, and as NDJSON and CSV', async () => {
    const api = await server.newApi();
    const ids = (
      await uploadCustomers(
        api,
        Array.from({ length: 7 }, () => 'DE'),
      )
    ).toSorted();
    await ok(save(api, 'all-of-them', isIn('DE')));
    const paged: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const suffix: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page: MembersBody = await ok(get<MembersBody>(api, `/all-of-them/members?limit=3${suffix}`));
      paged.push(...page.members.map(({ customer_id }) => customer_id));
      cursor = page.next_cursor;
    }
    assert.deepEqual(paged, ids);
    const ndjson = await get(api, '/all-of-them/members', { Accept: 'application/x-ndjson' });
    assert.match(ndjson.headers.get('content-type')!, /^application\/x-ndjson/);
    const lines = ndjson.text.trim().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).customer_id),
      ids,
    );
    const unknown = await get(api, '/all-of-them/members', { Accept: 'application/vnd.ms-excel' });
    assert.equal(unknown.status, 406);
    const csv = await get(api, '/all-of-them/members', { Accept: 'text/csv' });
    const [header, ...rows] = csv.text.trim().split('\n');
    assert.equal(header, 'customer_id,since');
    assert.deepEqual(
      rows.map((row) => row.split(',')[0]),
      ids,
    );
  });

  test('HEAD reads no members', async () => {
    const { headgate } = server;
    const { key } = await headgate.newKey();
    const api = apiOf(headgate.url, key);
    await uploadCustomers(api, new Array(5000).fill('DE'));
    await ok(save(api, 'many', isIn('DE')));
    const cpuMs = async (path: string, accept: string): Promise<number> => {
      const before = await processCpuMs(headgate.process.pid!);
      const heads = Array.from({ length: 100 }, async () => {
        const headers = { ...bearer(key), Accept: accept };
        const response = await fetch(`${headgate.url}/v1/segments${path}`, { method: 'HEAD', headers });
        assert.equal(response.status, 200);
        assert.equal(await response.text(), '');
      });
      await Promise.all(heads);
      // What the server still does after the responses counts, too.
      await sleep(500);
      return (await processCpuMs(headgate.process.pid!)) - before;
    };
    const ofPageMs = await cpuMs('/many/members?limit=1', 'application/json');
    for (const type of ['application/x-ndjson', 'text/csv']) {
      const ofAllMs = await cpuMs('/many/members', type);
      assert.ok(ofAllMs < 2 * ofPageMs + 100, `${type}: ${ofAllMs} ms, one member: ${ofPageMs} ms`);
    }
  });

  test('segments use others, but not in a circle, and a used one is not deleted', async () => {
    const api = await server.newApi();
    await uploadCustomers(api, ['DE', 'AT', 'GB']);
    await ok(save(api, 'near', isIn('DE', 'AT')));
    const only = await ok(save(api, 'only-at', { all: [{ segment: 'near' }, { not: isIn('DE') }] }));
    assert.equal(only.count, 1);
    assert.deepEqual((await ok(get<SegmentBody>(api, '/near'))).used_by, ['only-at']);
    const circle = await save(api, 'near', { segment: 'only-at' });
    assert.equal(circle.status, 400);
    assert.match((circle.body as unknown as RefusalBody).message, /circle: near → only-at → near/);
    const itself = await save(api, 'new', { segment: 'new' });
    assert.match((itself.body as unknown as RefusalBody).message, /circle: new → new/);
    const unknown = await save(api, 'new', { segment: 'other' });
    assert.match((unknown.body as unknown as RefusalBody).message, /"other"; it can be near or only-at\.$/);
    const remove = (name: string) => api.request<RefusalBody>(`/v1/segments/${name}`, { method: 'DELETE' });
    const used = await remove('near');
    assert.equal(used.status, 409);
    assert.match(
      used.body.message,
      /^The segment "near" cannot be deleted, because the segment "only-at" uses it\.$/,
    );
    assert.equal((await remove('only-at')).status, 204);
    assert.equal((await remove('near')).status, 204);
    assert.equal((await remove('near')).status, 404);
    assert.deepEqual(await ok(get(api, '')), { segments: [] });
    const { body } = await api.request<{ rows: unknown[] }>('/v1/sql', {
      body: { sql: 'SELECT count(*)::INTEGER FROM segment_members' },
    });
    assert.deepEqual(body.rows, [[0]]);
  });

  test('a refresh ends with 404 when its segment is deleted while it waits', async () => {
    const { url, database, newKey } = server.headgate;
    const { key, org_id } = await newKey();
    const api = apiOf(url, key);
    await ok(save(api, 'german', isIn('DE')));
    const opened = await openStore(database);
    try {
      const { organisation } = (await opened.organisations()).find(({ orgId }) => orgId === org_id)!;
      const { segment } = (await opened.segments(organisation)).segments[0]!;
      await waitUntil('another evaluation has begun', async () => {
        return (await opened.beginEvaluation({ organisation, segment, token: 'other' }, Date.now())) !== null;
      });
    } finally {
      await opened.close();
    }
    const refreshed = api.request('/v1/segments/german/refresh', { method: 'POST' });
    await sleep(500);
    const deletedAtMs = performance.now();
    assert.equal((await api.request('/v1/segments/german', { method: 'DELETE' })).status, 204);
    assert.equal((await refreshed).status, 404);
    assert.ok(performance.now() - deletedAtMs < 3000);
  });

  test('the report compares with a holdout', async () => {
    const api = await server.newApi();
    const [p] = await uploadCustomers(api, ['DE', 'AT']);
    await ok(save(api, 'control', isIn('DE')));
    const { body } = await api.request<{ holdout: { segment: string; without_recommendations: object } }>(
      '/v1/reports/recommendations?holdout=control',
    );
    assert.equal(body.holdout.segment, 'control');
    assert.equal((body.holdout.without_recommendations as { students: number }).students, 1);
    assert.ok(p);
    const unknown = await api.request<RefusalBody>('/v1/reports/recommendations?holdout=nobody');
    assert.equal(unknown.status, 400);
    assert.match(
      unknown.body.message,
      /^holdout must be the name of a segment; there is none named "nobody"\.$/,
    );
    const mistyped = await api.request<RefusalBody>('/v1/reports/recommendations?holdout=contro');
    assert.match(mistyped.body.message, /there is none named "contro"; did you mean control\?$/);
  });

  describeOnceOn(store, 'on any store', () => {
    test('a condition that is not valid is refused with its path and a suggestion', async () => {
      const api = await server.newApi();
      const condition = { all: [isIn('DE'), { customer: 'regoin', is: 'DE' }] };
      for (const reply of [
        await save(api, 'a', condition),
        await api.request('/v1/segments/preview', { body: { condition } }),
      ]) {
        const { message, path } = reply.body as RefusalBody & { path: string };
        assert.deepEqual([reply.status, path], [400, 'all[1].customer']);
        assert.match(message, /^condition\.all\[1\]\.customer: .*did you mean "region"\?$/);
      }
      const refusals: readonly [string, unknown, RegExp][] = [
        ['a', undefined, /^condition: a condition is required\.$/],
        ['a', [], /^condition: a condition must be an object, not an array\.$/],
        ['a', isIn('Germany'), /condition\.in\[0\]/],
        ['Not-A-Name', isIn('DE'), /^The name of a segment must be up to 64 lower-case letters/],
        ['preview', isIn('DE'), /^The name of a segment must not be preview/],
        ['a', { segment: 'b' }, /there is no segment "b"/],
      ];
      for (const [name, given, reason] of refusals) {
        const { status, body } = await save(api, name, given);
        assert.equal(status, 400, name);
        assert.match((body as unknown as RefusalBody).message, reason);
      }
      const unknownField = await api.request<RefusalBody>('/v1/segments/a', {
        method: 'PUT',
        body: { condition: isIn('DE'), notes: 'x' },
      });
      assert.match(unknownField.body.message, /The field "notes" is not known; did you mean note\?/);
      assert.deepEqual(await ok(get(api, '')), { segments: [] });
    });

    test('saved segments are evaluated regularly', async () => {
      const api = await server.newApi();
      await uploadCustomers(api, ['DE']);
      await ok(save(api, 'german', isIn('DE')));
      await uploadCustomers(api, ['DE']);
      await waitUntil('the segment has two members', async () => {
        return (await ok(get<SegmentBody>(api, '/german'))).count === 2;
      });
    });

    test('segments need scopes', async () => {
      const reader = await server.newApi(['analytics:read']);
      assert.equal((await get(reader, '')).status, 200);
      const { status, body } = await save(reader, 'a', isIn('DE'));
      assert.equal(status, 403);
      assert.match((body as unknown as RefusalBody).message, /analytics:write/);
      const uploader = await server.newApi(['data:read', 'data:write', 'analytics:write']);
      assert.equal((await get(uploader, '')).status, 403);
    });
  });
});
