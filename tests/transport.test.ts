// HTTP: TLS and proxies, headers of every response, encodings, limits, and connections that are reused.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { type Api, apiOf, type RefusalBody, type UploadBody } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import {
  bearer,
  connectRaw,
  type RawAnswer,
  type RawConnection,
  type RawRequest,
} from './harness/raw-connection.ts';
import { idOf, leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram } from './harness/waiting.ts';

const MAX_BODY_BYTES = 64 * 1024;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

function assertSecurityHeaders({ headers }: RawAnswer): void {
  for (const [name, value] of Object.entries(securityHeaders)) assert.equal(headers.get(name), value, name);
  assert.match(headers.get('x-request-id') ?? '', UUID_V7);
}

function uploadOf(type: 'shops' | 'courses', count = 1): string {
  return JSON.stringify({ records: Array.from({ length: count }, () => leastRecord(type)) });
}

async function onConnection<T>(
  url: string,
  use: (connection: RawConnection) => Promise<T>,
  ca?: Buffer,
): Promise<T> {
  const connection = await connectRaw(url, ca);
  try {
    return await use(connection);
  } finally {
    connection.destroy();
  }
}

forEachStore((store) => {
  const running = runningHeadgate(store, { HEADGATE_MAX_BODY: String(MAX_BODY_BYTES) });
  let url: string;
  let key: string;
  let api: Api;
  const shop = leastRecord('shops');

  before(async () => {
    url = running.headgate.url;
    ({ key } = await running.headgate.newKey());
    api = apiOf(url, key);
    assert.equal((await api.upload('shops', [shop])).status, 200);
  });

  const ask = (request: RawRequest): Promise<RawAnswer> =>
    onConnection(url, async (connection) => {
      connection.send(request);
      return connection.answer({ isHead: request.method === 'HEAD' });
    });
  const interaction = (): string =>
    JSON.stringify({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: idOf('shops', shop),
      event_timestamp: 1,
    });

  describe('every response', () => {
    const cases: readonly {
      readonly of: string;
      readonly status: number;
      readonly request: () => RawRequest;
    }[] = [
      { of: 'a probe', status: 200, request: () => ({ path: '/livez' }) },
      { of: 'the other probe', status: 200, request: () => ({ path: '/readyz' }) },
      { of: 'a list', status: 200, request: () => ({ path: '/v1/data/shops', headers: bearer(key) }) },
      {
        of: 'a HEAD request',
        status: 200,
        request: () => ({ method: 'HEAD', path: '/v1/data/shops', headers: bearer(key) }),
      },
      {
        of: 'an upload',
        status: 200,
        request: () => ({ path: '/v1/data/courses', headers: bearer(key), body: uploadOf('courses') }),
      },
      {
        of: 'a recorded interaction',
        status: 201,
        request: () => ({ path: '/user-interactions', headers: bearer(key), body: interaction() }),
      },
      {
        of: 'an upload that is none',
        status: 400,
        request: () => ({ path: '/v1/data/courses', headers: bearer(key), body: '[]' }),
      },
      {
        of: 'a bad interaction',
        status: 400,
        request: () => ({ path: '/user-interactions', headers: bearer(key), body: '{}' }),
      },
      {
        of: 'a path that cannot be read',
        status: 400,
        request: () => ({ path: '/v1/data/%zz', headers: bearer(key) }),
      },
      {
        of: 'something other than HTTP',
        status: 400,
        request: () => ({ method: 'GET / HTTP/9.9\r\n', path: '/livez' }),
      },
      { of: 'a request without a key', status: 401, request: () => ({ path: '/v1/data/shops' }) },
      {
        of: 'a wrong key',
        status: 401,
        request: () => ({ path: '/v1/nowhere', headers: bearer('hg_no_key') }),
      },
      { of: 'an unknown path', status: 404, request: () => ({ path: '/nowhere' }) },
      {
        of: 'an unknown type',
        status: 404,
        request: () => ({ path: '/v1/data/planets', headers: bearer(key) }),
      },
      {
        of: 'an unknown record',
        status: 404,
        request: () => ({ path: `/v1/data/shops/${randomUUID()}`, headers: bearer(key) }),
      },
      {
        of: 'an unknown method',
        status: 405,
        request: () => ({ method: 'DELETE', path: '/v1/data/shops', headers: bearer(key) }),
      },
      {
        of: 'a body that is too large',
        status: 413,
        request: () => ({
          path: '/v1/data/courses',
          headers: bearer(key),
          body: ' '.repeat(MAX_BODY_BYTES + 1),
        }),
      },
      {
        of: 'a body that is not JSON',
        status: 415,
        request: () => ({
          path: '/v1/data/courses',
          headers: { ...bearer(key), 'Content-Type': 'text/csv' },
          body: 'course_id',
        }),
      },
      {
        of: 'headers that are too large',
        status: 431,
        request: () => ({ path: '/livez', headers: { Cookie: 'c'.repeat(20_000) } }),
      },
    ];
    for (const { of, status, request } of cases) {
      test(`carries the security headers and its request id: the ${status} of ${of}`, async () => {
        const sent = request();
        const answer = await ask(sent);
        assert.equal(answer.status, status, answer.text);
        assertSecurityHeaders(answer);
        assert.equal(answer.headers.has('strict-transport-security'), false);
        if (sent.method === 'HEAD') return;
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
        if (status < 400) return;
        const { error, message, request_id } = JSON.parse(answer.text) as RefusalBody;
        assert.equal(request_id, answer.headers.get('x-request-id'));
        assert.ok(error.length > 0 && message.length > 0);
      });
    }

    test('of an upload names one request id in its header, in its body and in every batch', async () => {
      const { headers, body } = await api.upload('courses', JSON.parse(uploadOf('courses', 10)).records);
      assert.equal(body.request_id, headers.get('x-request-id'));
      for (const { data } of body.batches) assert.equal(data.request_id, body.request_id);
    });

    test('has a new request id, whatever the client sends as one', async () => {
      const sent = Array.from({ length: 50 }, () =>
        api.request('/v1/data/shops', { headers: { 'X-Request-Id': 'mine', 'Request-Id': 'mine' } }),
      );
      const ids = (await Promise.all(sent)).map(({ headers }) => headers.get('x-request-id'));
      assert.equal(new Set(ids).size, sent.length);
      assert.ok(!ids.includes('mine'));
    });
  });

  describe('HEAD', () => {
    const paths = () => [
      '/livez',
      '/v1/data/shops',
      `/v1/data/shops/${idOf('shops', shop)}`,
      '/user-interactions',
    ];

    test('gets the response of GET, without the body', async () => {
      for (const path of paths()) {
        const got = await ask({ path, headers: bearer(key) });
        const head = await ask({ method: 'HEAD', path, headers: bearer(key) });
        assert.equal(head.status, got.status);
        assert.equal(head.headers.get('content-type'), got.headers.get('content-type'));
        assert.equal(head.headers.get('content-length'), got.headers.get('content-length'));
      }
    });

    test('leaves the connection usable', async () => {
      await onConnection(url, async (connection) => {
        for (const path of [...paths(), '/v1/data/planets']) {
          connection.send({ method: 'HEAD', path, headers: bearer(key) });
          await connection.answer({ isHead: true });
        }
        connection.send({ path: '/livez' });
        assert.deepEqual(JSON.parse((await connection.answer()).text), { status: 'alive' });
      });
    });

    test('needs a key if GET does', async () => {
      assert.equal((await ask({ method: 'HEAD', path: '/v1/data/shops' })).status, 401);
    });
  });

  const posts = [
    { path: '/v1/data/courses', status: 200, newBody: () => uploadOf('courses', 20) },
    { path: '/user-interactions', status: 201, newBody: interaction },
  ];
  const packers = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync };
  for (const { path, status, newBody } of posts) {
    describe(`the body of POST ${path}`, () => {
      const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
        api.request<RefusalBody & UploadBody>(path, { body, headers });

      for (const [encoding, pack] of Object.entries(packers)) {
        test(`may be compressed with ${encoding}`, async () => {
          for (const name of [encoding, encoding.toUpperCase()]) {
            const reply = await post(pack(newBody()), { 'Content-Encoding': name });
            assert.equal(reply.status, status, reply.text);
          }
        });

        test(`that is not ${encoding}, or cut off, is refused`, async () => {
          const packed = pack(newBody());
          for (const broken of [Buffer.from(newBody()), packed.subarray(0, -5), Buffer.alloc(0)]) {
            const reply = await post(broken, { 'Content-Encoding': encoding });
            assert.equal(reply.status, 400, reply.text);
          }
        });

        test(`is measured after ${encoding} is decompressed`, async () => {
          const largest = padded(newBody(), MAX_BODY_BYTES);
          assert.equal((await post(pack(largest), { 'Content-Encoding': encoding })).status, status);
          const larger = await post(pack(`${largest} `), { 'Content-Encoding': encoding });
          assert.equal(larger.status, 413, larger.text);
        });
      }

      test('in an unknown encoding is refused, and the known ones are named', async () => {
        for (const encoding of ['deflate', 'gzip, br', 'none']) {
          const { status, headers } = await post(newBody(), { 'Content-Encoding': encoding });
          assert.equal(status, 415);
          assert.equal(headers.get('accept-encoding'), 'gzip, br, zstd');
        }
        assert.equal((await post(newBody(), { 'Content-Encoding': 'identity' })).status, status);
      });

      test('may have HEADGATE_MAX_BODY bytes and not one more', async () => {
        const largest = padded(newBody(), MAX_BODY_BYTES);
        assert.equal((await post(largest)).status, status);
        const { status: refused, body } = await post(`${largest} `);
        assert.equal(refused, 413);
        assert.equal(body.error, 'Content Too Large');
        assert.match(body.message, new RegExp(`larger than ${MAX_BODY_BYTES} bytes`));
      });

      test('without a Content-Length is measured, too', async () => {
        const chunked = (body: string): Promise<RawAnswer> =>
          onConnection(url, async (connection) => {
            connection.send({
              method: 'POST',
              path,
              headers: { ...bearer(key), 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
            });
            for (let at = 0; at < body.length; at += 10_000) {
              const chunk = body.slice(at, at + 10_000);
              connection.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
            }
            connection.write('0\r\n\r\n');
            return connection.answer();
          });
        const largest = padded(newBody(), MAX_BODY_BYTES);
        assert.equal((await chunked(largest)).status, status);
        assert.equal((await chunked(`${largest} `)).status, 413);
      });

      test('that is refused unread, however large, leaves the connection usable', async () => {
        const large = ' '.repeat(4 * 1024 * 1024);
        const refusals: readonly { status: number; path: string; headers: Record<string, string> }[] = [
          { status: 401, path, headers: {} },
          { status: 413, path, headers: bearer(key) },
          { status: 415, path, headers: { ...bearer(key), 'Content-Type': 'text/plain' } },
          { status: 400, path, headers: { ...bearer(key), 'Idempotency-Key': 'two words' } },
          { status: 400, path: `${path}?colour=red`, headers: bearer(key) },
          { status: 404, path: '/v1/data/planets', headers: bearer(key) },
          { status: 404, path: '/nowhere', headers: {} },
          { status: 405, path: '/livez', headers: {} },
        ];
        await onConnection(url, async (connection) => {
          for (const { status: refusedWith, path: refusedAt, headers } of refusals) {
            connection.send({ path: refusedAt, headers, body: large });
            const refused = await connection.answer();
            assert.equal(refused.status, refusedWith, refused.text);
            connection.send({ path, headers: bearer(key), body: newBody() });
            const taken = await connection.answer();
            assert.equal(taken.status, status, `after ${refusedWith}: ${taken.text}`);
          }
        });
      });
    });
  }
});

describe('behind a proxy', () => {
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  let headgate: Headgate;
  let api: Api;
  before(async () => {
    folder = await newDatabaseFolder();
    headgate = await startHeadgate(join(folder.folder, 'headgate.db'), { HEADGATE_BEHIND_PROXY: 'true' });
    api = apiOf(headgate.url, (await headgate.newKey()).key);
  });
  after(async () => {
    await headgate.stop();
    await folder.remove();
  });
  const get = (path: string, forwarded: string | null) =>
    api.request(path, { headers: forwarded === null ? {} : { 'X-Forwarded-Proto': forwarded } });

  test('a request that was not HTTPS is refused with 403 before its key is checked', async () => {
    for (const forwarded of [null, 'http', '', 'httpsx', 'http, https', 'https, http']) {
      for (const path of ['/v1/data/shops', '/v1/nowhere', '/nowhere', '/user-interactions']) {
        const { status, body } = await get(path, forwarded);
        assert.equal(status, 403, `${path} forwarded from ${forwarded}`);
        assert.equal(body.error, 'Forbidden');
        assert.match(body.message, /HTTPS/);
      }
    }
    const stranger = await apiOf(headgate.url, null).request('/v1/data/shops');
    assert.equal(stranger.status, 403);
  });

  test('a request that was HTTPS is served, with an HSTS header', async () => {
    for (const forwarded of ['https', 'HTTPS', 'https, https']) {
      const { status, headers } = await get('/v1/data/shops', forwarded);
      assert.equal(status, 200);
      assert.match(headers.get('strict-transport-security') ?? '', /^max-age=[1-9]\d+/);
    }
    const uploaded = await api.upload('shops', [leastRecord('shops')], {
      headers: { 'X-Forwarded-Proto': 'https' },
    });
    assert.equal(uploaded.status, 200);
  });

  test('an upload that was not HTTPS stores nothing', async () => {
    const shop = leastRecord('shops');
    assert.equal((await api.upload('shops', [shop])).status, 403);
    assert.equal((await get(`/v1/data/shops/${idOf('shops', shop)}`, 'https')).status, 404);
  });

  test('probes are answered without HTTPS, too', async () => {
    for (const path of ['/livez', '/readyz']) assert.equal((await get(path, null)).status, 200);
  });
});

describe('without HTTPS', () => {
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  before(async () => {
    folder = await newDatabaseFolder();
  });
  after(() => folder.remove());

  const assertMisused = async (
    flags: readonly string[],
    environment: Record<string, string>,
  ): Promise<string> => {
    const { exitCode, stdout, stderr } = await failedHeadgate(['serve', '--port', '0', ...flags], {
      HEADGATE_DATABASE: join(folder.folder, 'headgate.db'),
      ...environment,
    });
    assert.equal(exitCode, 2, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, oneSentence);
    return stderr;
  };

  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'headgate.example']) {
    test(`it does not start on ${host}`, async () => {
      const sentence = await assertMisused(['--host', host], {});
      assert.ok(sentence.includes(host), sentence);
      assert.match(sentence, /HTTPS/);
      await assertMisused([], { HEADGATE_HOST: host });
    });
  }

  test('a certificate without a key, or a key without a certificate, is refused', async () => {
    const certOnly = await assertMisused([], { HEADGATE_TLS_CERT: 'cert.pem' });
    assert.match(certOnly, /HEADGATE_TLS_KEY/);
    const keyOnly = await assertMisused([], { HEADGATE_TLS_KEY: 'key.pem' });
    assert.match(keyOnly, /HEADGATE_TLS_CERT/);
  });
});

const skip = (await hasProgram('openssl')) ? false : 'there is no openssl here to make a certificate with';

describe('with a certificate', { skip }, () => {
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  let headgate: Headgate;
  let ca: Buffer;
  let key: string;
  let tls: { HEADGATE_TLS_CERT: string; HEADGATE_TLS_KEY: string };

  const newCertificate = async (
    name: string,
    algorithm = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
  ) => {
    const paths = {
      HEADGATE_TLS_CERT: join(folder.folder, `${name}.cert.pem`),
      HEADGATE_TLS_KEY: join(folder.folder, `${name}.key.pem`),
    };
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-newkey', ...algorithm, '-nodes', '-days', '2'],
      ...['-subj', '/CN=headgate test', '-addext', 'subjectAltName=IP:127.0.0.1'],
      ...['-out', paths.HEADGATE_TLS_CERT, '-keyout', paths.HEADGATE_TLS_KEY],
    ]);
    return paths;
  };

  before(async () => {
    folder = await newDatabaseFolder();
    tls = await newCertificate('server');
    ca = await readFile(tls.HEADGATE_TLS_CERT);
    headgate = await startHeadgate(join(folder.folder, 'headgate.db'), {
      ...tls,
      HEADGATE_SHUTDOWN_TIMEOUT: '25s',
    });
    ({ key } = await headgate.newKey());
  });
  after(async () => {
    await headgate.kill();
    await folder.remove();
  });

  test('HTTPS is served: an upload, and reading it back', async () => {
    assert.match(headgate.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    await onConnection(
      headgate.url,
      async (connection) => {
        const shop = leastRecord('shops');
        connection.send({
          path: '/v1/data/shops',
          headers: bearer(key),
          body: JSON.stringify({ records: [shop] }),
        });
        const uploaded = await connection.answer();
        assert.equal(uploaded.status, 200, uploaded.text);
        connection.send({ path: `/v1/data/shops/${idOf('shops', shop)}`, headers: bearer(key) });
        const read = await connection.answer();
        assert.equal(JSON.parse(read.text).name, shop.name);
      },
      ca,
    );
  });

  test('responses have an HSTS header', async () => {
    await onConnection(
      headgate.url,
      async (connection) => {
        for (const path of ['/livez', '/v1/data/shops', '/nowhere']) {
          connection.send({ path });
          const answer = await connection.answer();
          assertSecurityHeaders(answer);
          assert.match(answer.headers.get('strict-transport-security') ?? '', /^max-age=[1-9]\d+/);
        }
      },
      ca,
    );
  });

  test('plain HTTP to the same port gets no response', async () => {
    await onConnection(headgate.url.replace('https:', 'http:'), async (connection) => {
      connection.send({ path: '/livez' });
      await assert.rejects(connection.answer(), /the connection ended before the answer/);
    });
  });

  test('a client that closes its sending side gets its response; aborted handshakes are closed', async () => {
    await onConnection(
      headgate.url,
      async (connection) => {
        connection.send({ path: '/v1/data/courses', headers: bearer(key), body: uploadOf('courses', 1000) });
        connection.endSending();
        const answer = await connection.answer();
        assert.equal(answer.status, 200, answer.text);
        await connection.ended;
      },
      ca,
    );
    const beginningsOfHandshakes = ['', Buffer.from('1603010200010001fc0303', 'hex')];
    for (const bytes of beginningsOfHandshakes) {
      await onConnection(headgate.url.replace('https:', 'http:'), async (connection) => {
        connection.write(bytes);
        connection.endSending();
        await connection.ended;
      });
    }
  });

  const handshake = async (url: string, options: ConnectionOptions): Promise<string> => {
    const { hostname: host, port } = new URL(url);
    const socket = connectTls({ host, port: Number(port), rejectUnauthorized: false, ...options });
    try {
      await once(socket, 'secureConnect');
      return `${socket.getProtocol()} ${socket.getCipher().standardName}`;
    } finally {
      socket.destroy();
    }
  };
  const oldSuites = (key: 'ECDSA' | 'RSA'): readonly string[] => [
    ...['AES128-SHA', 'AES256-SHA', 'AES128-SHA256', 'AES128-GCM-SHA256', 'AES256-GCM-SHA384'],
    ...['DHE-RSA-AES128-GCM-SHA256', 'DHE-RSA-AES128-SHA'],
    ...['AES128-SHA', 'AES256-SHA', 'AES128-SHA256', 'AES256-SHA384'].map((end) => `ECDHE-${key}-${end}`),
  ];
  const newSuites = (key: 'ECDSA' | 'RSA'): readonly string[] =>
    ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map((end) => `ECDHE-${key}-${end}`);
  const assertSuites = async (url: string, key: 'ECDSA' | 'RSA'): Promise<void> => {
    for (const ciphers of newSuites(key)) {
      const agreed = await handshake(url, { maxVersion: 'TLSv1.2', ciphers });
      assert.match(agreed, new RegExp(`^TLSv1\\.2 TLS_ECDHE_${key}_WITH_(AES|CHACHA20)`), ciphers);
    }
    for (const ciphers of oldSuites(key)) {
      const agreeing = handshake(url, { maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` });
      await assert.rejects(agreeing, /handshake failure|no cipher/i, ciphers);
    }
    assert.match(await handshake(url, {}), /^TLSv1\.3 TLS_/);
    const oldVersion = {
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT:@SECLEVEL=0',
    } as const;
    await assert.rejects(handshake(url, oldVersion), /protocol version|unsupported protocol/i);
  };

  test('only suites with forward secrecy and authenticated encryption are offered', () =>
    assertSuites(headgate.url, 'ECDSA'));

  test('with an RSA key such suites are offered, too', async () => {
    const other = await startHeadgate(
      join(folder.folder, 'rsa.db'),
      await newCertificate('rsa', ['rsa:2048']),
    );
    try {
      await assertSuites(other.url, 'RSA');
    } finally {
      await other.stop();
    }
  });

  test('an unreadable certificate, or one of another key, is refused in one sentence', async () => {
    const other = await newCertificate('other');
    const text = join(folder.folder, 'text.pem');
    await writeFile(text, 'no certificate\n');
    const broken = [
      { ...tls, HEADGATE_TLS_KEY: other.HEADGATE_TLS_KEY },
      { ...tls, HEADGATE_TLS_CERT: join(folder.folder, 'missing.pem') },
      { ...tls, HEADGATE_TLS_CERT: text },
    ];
    for (const environment of broken) {
      const { exitCode, stdout, stderr } = await failedHeadgate(['serve', '--port', '0'], {
        HEADGATE_DATABASE: join(folder.folder, 'headgate.db'),
        ...environment,
      });
      assert.equal(exitCode, 2, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, oneSentence);
      assert.match(stderr, /HEADGATE_TLS_(CERT|KEY)/);
    }
  });

  test('a stop waits neither for silent connections nor for idle ones', async () => {
    const silentBelowTls = await connectRaw(headgate.url.replace('https:', 'http:'));
    const silent = await connectRaw(headgate.url, ca);
    const answered = await connectRaw(headgate.url, ca);
    const inFlight = await connectRaw(headgate.url, ca);
    answered.send({ path: '/livez' });
    assert.equal((await answered.answer()).status, 200);
    const finish = await inFlight.sendAllButTheLastByte({
      path: '/v1/data/courses',
      headers: bearer(key),
      body: uploadOf('courses'),
    });
    const stopped = headgate.stop();
    await answered.ended;
    finish();
    assert.equal((await inFlight.answer()).status, 200);
    assert.equal(await stopped, 0);
    await Promise.all([silentBelowTls.ended, silent.ended, inFlight.ended]);
  });
});

describe('more large bodies at once than are read at a time', () => {
  const LARGE_BODY_BYTES = 3 * 1024 * 1024;
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  let headgate: Headgate;
  let key: string;
  before(async () => {
    folder = await newDatabaseFolder();
    headgate = await startHeadgate(join(folder.folder, 'headgate.db'));
    ({ key } = await headgate.newKey());
  });
  after(async () => {
    await headgate.kill();
    await folder.remove();
  });
  const largeRequest = () => ({
    path: '/v1/data/courses',
    headers: bearer(key),
    body: padded(uploadOf('courses'), LARGE_BODY_BYTES),
  });
  const begin = async (count: number) => {
    const connections = await Promise.all(Array.from({ length: count }, () => connectRaw(headgate.url)));
    const finish: (() => void)[] = [];
    for (const connection of connections) finish.push(await connection.sendAllButTheLastByte(largeRequest()));
    return { connections, finishAll: () => void finish.map((send) => send()) };
  };
  const statusesOf = async (connections: readonly RawConnection[]): Promise<readonly number[]> =>
    (await Promise.all(connections.map((connection) => connection.answer()))).map(({ status }) => status);

  const inTime = { timeout: 30_000 };

  test(
    'clients that stall or disconnect delay no other, and stalled ones are served when they resume',
    inTime,
    async () => {
      const stalled = await begin(6);
      const gone = await begin(6);
      for (const connection of gone.connections) connection.destroy();
      const { body, path } = largeRequest();
      const api = apiOf(headgate.url, key);
      const sent = await Promise.all(Array.from({ length: 16 }, () => api.request(path, { body })));
      assert.deepEqual(
        sent.map(({ status }) => status),
        sent.map(() => 200),
      );
      stalled.finishAll();
      assert.deepEqual(
        await statusesOf(stalled.connections),
        stalled.connections.map(() => 200),
      );
      for (const connection of stalled.connections) connection.destroy();
    },
  );

  test('a stop lets bodies that wait be read and answered', inTime, async () => {
    const { connections, finishAll } = await begin(16);
    const stopped = headgate.stop();
    finishAll();
    assert.deepEqual(
      await statusesOf(connections),
      connections.map(() => 200),
    );
    assert.equal(await stopped, 0);
  });
});

function padded(body: string, bytes: number): string {
  return body + ' '.repeat(bytes - Buffer.byteLength(body));
}
