// Permissions for pages of other origins (CORS).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { testDatabases } from '../server/store/test-databases.ts';
import { type Api, apiOf, type Reply } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { connectRaw } from './harness/raw-connection.ts';
import { type RunningHeadgate, runningHeadgate } from './harness/running-headgate.ts';

const app = 'https://app.example.com';
const other = 'http://localhost:3000';
const stranger = 'https://evil.example.com';

/** Sends the preflight request that a browser sends before an upload, without the key. */
function preflight(
  running: RunningHeadgate,
  origin: string,
  path = '/v1/data/shops',
  more: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  return apiOf(running.headgate.url, null).request(path, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization,content-type,idempotency-key',
      ...more,
    },
  });
}

function corsHeaders({ headers }: Reply): string[] {
  return [...headers.keys()].filter((name) => name.startsWith('access-control-') || name === 'vary');
}

function listOf(header: string | null): string[] {
  return (header ?? '').split(',').map((part) => part.trim().toLowerCase());
}

describe('with allowed origins', () => {
  const running = runningHeadgate(testDatabases[0]!, {
    HEADGATE_ALLOWED_ORIGINS: `${app}, ${other}`,
    HEADGATE_RATE_LIMIT: '1',
  });

  test('a preflight request needs no key', async () => {
    for (const origin of [app, other]) {
      const reply = await preflight(running, origin);
      assert.equal(reply.status, 204);
      assert.equal(reply.text, '');
      assert.equal(reply.headers.get('access-control-allow-origin'), origin);
      assert.deepEqual(listOf(reply.headers.get('access-control-allow-methods')), [
        'get',
        'head',
        'post',
        'put',
        'delete',
      ]);
      const allowed = listOf(reply.headers.get('access-control-allow-headers'));
      for (const name of ['authorization', 'content-type', 'content-encoding', 'idempotency-key', 'prefer']) {
        assert.ok(allowed.includes(name), name);
      }
      assert.ok(Number(reply.headers.get('access-control-max-age')) > 0);
      assert.equal(reply.headers.get('vary'), 'Origin');
      assert.ok(reply.headers.get('x-request-id'));
      assert.equal(reply.headers.get('access-control-allow-credentials'), null);
    }
  });

  test('pages of these origins can read responses, refusals and the documented headers', async () => {
    const api: Api = await running.newApi();
    const headers = { Origin: app };
    const replies = [
      await apiOf(running.headgate.url, null).request('/v1/data/shops', { headers }),
      await apiOf(running.headgate.url, null).request('/nowhere', { headers }),
      ...(await Promise.all(Array.from({ length: 8 }, () => api.request('/v1/data/shops', { headers })))),
    ];
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([401, 404, 200, 429]));
    for (const reply of replies) {
      assert.equal(reply.headers.get('access-control-allow-origin'), app);
      assert.equal(reply.headers.get('vary'), 'Origin');
      const exposed = listOf(reply.headers.get('access-control-expose-headers'));
      for (const name of [
        'x-request-id',
        'retry-after',
        'ratelimit',
        'ratelimit-policy',
        'idempotency-replayed',
      ]) {
        assert.ok(exposed.includes(name), name);
      }
    }
  });

  test('other origins get no permission, and OPTIONS is not an allowed method', async () => {
    const asked = await preflight(running, stranger);
    assert.equal(asked.status, 401);
    assert.deepEqual(corsHeaders(asked), ['vary']);
    const read = await apiOf(running.headgate.url, null).request('/livez', { headers: { Origin: stranger } });
    assert.equal(read.status, 200);
    assert.deepEqual(corsHeaders(read), ['vary']);
    for (const headers of [{ Origin: app }, { 'Access-Control-Request-Method': 'POST' }]) {
      const reply = await apiOf(running.headgate.url, null).request('/livez', { method: 'OPTIONS', headers });
      assert.equal(reply.status, 405);
    }
  });
});

describe('with allowed origins, a response that no handler makes', () => {
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_ALLOWED_ORIGINS: app });

  for (const [what, status, request] of [
    ['a path that cannot be read', 400, { path: '/%zz' }],
    ['an expectation that cannot be met', 417, { path: '/livez', headers: { Expect: 'miracles' } }],
  ] as const) {
    test(`can be read by a page: ${what}`, async () => {
      for (const [origin, allowed] of [
        [app, app],
        [stranger, undefined],
      ] as const) {
        const connection = await connectRaw(running.headgate.url);
        const headers = 'headers' in request ? request.headers : {};
        connection.send({ ...request, headers: { ...headers, Origin: origin } });
        const answer = await connection.answer();
        connection.destroy();
        assert.equal(answer.status, status);
        assert.equal(answer.headers.get('access-control-allow-origin'), allowed);
        assert.equal(answer.headers.get('vary'), 'Origin');
        assert.equal(answer.headers.has('access-control-expose-headers'), allowed !== undefined);
      }
    });
  }
});

describe('with allowed origins behind a proxy', () => {
  const running = runningHeadgate(testDatabases[0]!, {
    HEADGATE_ALLOWED_ORIGINS: app,
    HEADGATE_BEHIND_PROXY: 'true',
  });

  test('a preflight request must use HTTPS like any other', async () => {
    const plain = await preflight(running, app);
    assert.equal(plain.status, 403);
    assert.match(plain.text, /Use HTTPS/);
    assert.equal(plain.headers.get('access-control-allow-origin'), app);
    const secure = await preflight(running, app, '/v1/data/shops', { 'X-Forwarded-Proto': 'https' });
    assert.equal(secure.status, 204);
  });
});

describe('with all origins allowed', () => {
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_ALLOWED_ORIGINS: '*' });

  test('every origin gets the same response', async () => {
    const reply = await preflight(running, stranger);
    assert.equal(reply.status, 204);
    assert.equal(reply.headers.get('access-control-allow-origin'), '*');
    assert.equal(reply.headers.get('vary'), null);
  });
});

describe('without allowed origins', () => {
  const running = runningHeadgate(testDatabases[0]!);

  test('no response has CORS headers', async () => {
    const { key } = await running.headgate.newKey();
    const headers = { Origin: app, 'Access-Control-Request-Method': 'POST' };
    const replies = [
      await preflight(running, app),
      await apiOf(running.headgate.url, key).request('/v1/data/shops', { method: 'OPTIONS', headers }),
      await apiOf(running.headgate.url, key).request('/v1/data/shops', { headers }),
    ];
    assert.deepEqual(
      replies.map(({ status }) => status),
      [401, 405, 200],
    );
    for (const reply of replies) assert.deepEqual(corsHeaders(reply), []);
  });
});

test('an invalid origin stops the start with one sentence', async () => {
  const failed = await failedHeadgate(['serve'], { HEADGATE_ALLOWED_ORIGINS: 'app.example.com' });
  assert.equal(failed.exitCode, 2);
  assert.match(failed.stderr, oneSentence);
  assert.match(failed.stderr, /HEADGATE_ALLOWED_ORIGINS must be origins such as .*, not "app\.example\.com"/);
});
