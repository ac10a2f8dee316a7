// HTTP connections: heads that HTTP does not allow, clients that send Expect: 100-continue, and clients that close
// their sending side.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Api, apiOf, type RefusalBody, type UploadBody } from './harness/api.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { bearer, connectRaw, type RawAnswer } from './harness/raw-connection.ts';
import { idOf, leastRecord } from './harness/records.ts';
import { waitUntil } from './harness/waiting.ts';

const MAX_BODY_BYTES = 64 * 1024;
const LARGE_UPLOAD_RECORDS = 5000;

let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
let headgate: Headgate;
/** A key of an organisation that has no records after any test. */
let emptyKey: string;
let empty: Api;
let key: string;
let api: Api;

before(async () => {
  folder = await newDatabaseFolder();
  headgate = await startHeadgate(`${folder.folder}/headgate.db`, {
    HEADGATE_MAX_BODY: String(MAX_BODY_BYTES * 32),
  });
  emptyKey = (await headgate.newKey()).key;
  empty = apiOf(headgate.url, emptyKey);
  key = (await headgate.newKey()).key;
  api = apiOf(headgate.url, key);
});
afterEach(async () => {
  assert.deepEqual((await empty.list('shops', '?include_deleted=true')).body.records, []);
});
after(async () => {
  assert.equal(await headgate.stop(), 0);
  await folder.remove();
});

const uploadOf = (...records: readonly unknown[]): string => JSON.stringify({ records });
const body = uploadOf(leastRecord('shops'));
const length = String(Buffer.byteLength(body));
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const chunked = (text: string): string => `${chunk(text)}0\r\n\r\n`;

const POST = 'POST /v1/data/shops HTTP/1.1';
const headOf = (headers: Readonly<Record<string, string>>, requestLine = POST): string => {
  const all = { Host: 'x', ...bearer(emptyKey), 'Content-Type': 'application/json', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${requestLine}\r\n${lines.join('')}\r\n`;
};
/** The same with raw headers, in which a name may occur more than once. */
const headWith = (headers: string, requestLine = POST): string =>
  headOf({}, requestLine).replace(/\r\n\r\n$/, `\r\n${headers}\r\n`);

const exchange = async (
  sent: string,
  { endSending = false, answers = 1 } = {},
): Promise<readonly RawAnswer[]> => {
  const connection = await connectRaw(headgate.url);
  try {
    connection.write(Buffer.from(sent, 'latin1'));
    if (endSending) connection.endSending();
    const received: RawAnswer[] = [];
    while (received.length < answers) received.push(await connection.answer());
    return received;
  } finally {
    connection.destroy();
  }
};
const assertRefused = ({ status, text }: RawAnswer, expected: number, says: RegExp): void => {
  assert.equal(status, expected, text);
  const refusal = JSON.parse(text) as RefusalBody;
  assert.deepEqual(Object.keys(refusal), ['error', 'message', 'request_id']);
  assert.match(refusal.message, says);
};
/** Fails unless the body was read and refused, which shows that the request reached its handler. */
const assertRead = (answer: RawAnswer): void => assertRefused(answer, 400, /no "records"/);

const withoutProc = existsSync('/proc/self') ? false : 'there is no /proc here';
const openSockets = async (): Promise<number> => {
  const fds = `/proc/${headgate.process.pid}/fd`;
  const links = (await readdir(fds)).map((fd) => readlink(`${fds}/${fd}`).catch(() => ''));
  return (await Promise.all(links)).filter((link) => link.startsWith('socket:')).length;
};

const manyHeaders = 'a:\r\n'.repeat(900);

describe('a head', () => {
  test('with more than 1000 headers is refused, whatever they are', async () => {
    for (const headers of [
      'a:\r\n'.repeat(5000),
      `${'a:\r\n'.repeat(1005)}Transfer-Encoding: gzip, chunked\r\n`,
    ]) {
      const connection = await connectRaw(headgate.url);
      connection.write(Buffer.from(headWith(headers) + chunked(body), 'latin1'));
      const answer = await connection.answer();
      assertRefused(answer, 431, /larger than 16 KiB, or there are more than 1000/);
      assert.equal(answer.headers.get('connection'), 'close');
      connection.destroy();
    }
  });
});

describe('a transfer coding', () => {
  const codings: Readonly<Record<string, string>> = {
    'gzip, then chunked': 'Transfer-Encoding: gzip, chunked\r\n',
    'gzip and chunked in two headers': 'Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n',
    'gzip alone': 'Transfer-Encoding: gzip\r\n',
    'one that does not exist': 'Transfer-Encoding: xchunked\r\n',
    'identity, then chunked': 'Transfer-Encoding: identity, chunked\r\n',
    'an empty one, then chunked': 'Transfer-Encoding: , chunked\r\n',
    'gzip, then chunked, after many headers': `${manyHeaders}Transfer-Encoding: gzip, chunked\r\n`,
  };
  for (const [what, headers] of Object.entries(codings)) {
    test(`other than chunked is refused: ${what}`, async () => {
      for (const sent of [body, gzipSync(body).toString('latin1')]) {
        const connection = await connectRaw(headgate.url);
        connection.write(Buffer.from(headWith(headers) + chunked(sent), 'latin1'));
        const answer = await connection.answer();
        assertRefused(answer, 400, /Transfer-Encoding/);
        assert.equal(answer.headers.get('connection'), 'close');
        await connection.ended;
        await assert.rejects(connection.answer(), /ended before the answer: $/);
        connection.destroy();
      }
    });
  }

  test('other than chunked is refused behind another request, too', async () => {
    const first = headOf({}, 'GET /v1/data/tags HTTP/1.1');
    const second = headWith('Transfer-Encoding: gzip\r\n') + chunked(body);
    const answers = await exchange(first + second, { answers: 2 });
    assert.equal(answers[0]!.status, 200);
    assertRefused(answers[1]!, 400, /Transfer-Encoding/);
  });

  test('is refused by the parser if it is chunked twice', async () => {
    for (const between of [', ', '\r\nTransfer-Encoding: ']) {
      const [answer] = await exchange(
        headWith(`Transfer-Encoding: chunked${between}chunked\r\n`) + chunked(body),
      );
      assertRefused(answer!, 400, /Transfer-Encoding/);
    }
  });

  test('is refused in HTTP/1.0, which has none', async () => {
    const head = headWith('Transfer-Encoding: chunked\r\n', 'POST /v1/data/shops HTTP/1.0');
    const [answer] = await exchange(head + chunked(body));
    assertRefused(answer!, 400, /Transfer-Encoding/);
  });

  test('may be written in any case', async () => {
    for (const name of ['chunked', 'Chunked', 'CHUNKED']) {
      const [answer] = await exchange(headWith(`transfer-encoding: ${name}\r\n`) + chunked('{}'));
      assertRead(answer!);
    }
  });
});

describe('a header that may occur once', () => {
  const repeated: Readonly<Record<string, string>> = {
    Host: 'Host: y\r\n',
    Authorization: 'Authorization: Bearer none\r\n',
    'Content-Type': 'Content-Type: text/plain\r\n',
    'Idempotency-Key': 'Idempotency-Key: a\r\nIdempotency-Key: b\r\n',
  };
  for (const [name, headers] of Object.entries(repeated)) {
    test(`is refused if it occurs twice: ${name}`, async () => {
      const says = new RegExp(`header ${name} `);
      const spellings = [headers, headers.toLowerCase(), headers.toUpperCase(), manyHeaders + headers];
      for (const spelling of spellings) {
        const [answer] = await exchange(headWith(`${spelling}Content-Length: ${length}\r\n`) + body);
        assertRefused(answer!, 400, says);
      }
      const host = name === 'Host' ? '' : 'Host: x\r\n';
      const same = `${name}: x\r\n`;
      const [answer] = await exchange(`GET /livez HTTP/1.1\r\n${host}${same}${same}\r\n`);
      assertRefused(answer!, 400, says);
    });
  }

  test('is not one that holds a list: those may be repeated', async () => {
    const lists = 'Accept: a/b\r\nAccept: c/d\r\nPrefer: handling=lenient\r\nPrefer: wait=1\r\n';
    const [answer] = await exchange(`${headWith(`${lists}X-A: 1\r\nX-A: 2\r\nContent-Length: 2\r\n`)}{}`);
    assertRead(answer!);
  });
});

describe('a client that sends Expect: 100-continue', () => {
  const asks = { 'Content-Length': length, Expect: '100-continue' };

  test('gets 100 if the body is wanted', async () => {
    const connection = await connectRaw(headgate.url);
    connection.write(headOf({ ...asks, 'Content-Length': '2' }));
    assert.equal((await connection.answer()).status, 100);
    connection.write('{}');
    assertRead(await connection.answer());
    connection.destroy();
  });

  const refused: Readonly<Record<string, readonly [status: number, head: () => string]>> = {
    'without a key': [401, () => headOf({ ...asks, Authorization: 'Bearer none' })],
    'a type that does not exist': [404, () => headOf(asks, 'POST /v1/data/planets HTTP/1.1')],
    'a path that does not exist': [404, () => headOf(asks, 'POST /nowhere HTTP/1.1')],
    'a method that does not exist': [405, () => headOf(asks, 'PUT /v1/data/shops HTTP/1.1')],
    'a bad query': [400, () => headOf(asks, 'POST /v1/data/shops?colour=red HTTP/1.1')],
    'a bad idempotency key': [400, () => headOf({ ...asks, 'Idempotency-Key': 'two words' })],
    'a repeated header': [400, () => headWith('Host: y\r\nContent-Length: 2\r\nExpect: 100-continue\r\n')],
    'a transfer coding': [
      400,
      () => headWith('Transfer-Encoding: gzip, chunked\r\nExpect: 100-continue\r\n'),
    ],
    'a body that is too large': [413, () => headOf({ ...asks, 'Content-Length': '33554433' })],
    'a body that is not JSON': [415, () => headOf({ ...asks, 'Content-Type': 'text/plain' })],
    'an unknown encoding': [415, () => headOf({ ...asks, 'Content-Encoding': 'deflate' })],
  };
  const assertRefusedUnasked = async (status: number, head: string): Promise<void> => {
    const connection = await connectRaw(headgate.url);
    connection.write(head);
    const answer = await connection.answer();
    assertRefused(answer, status, /./);
    // The client may send the body or not, so the server cannot know where a next request would begin.
    assert.equal(answer.headers.get('connection'), 'close');
    await connection.ended;
    connection.destroy();
  };
  for (const [what, [status, head]] of Object.entries(refused)) {
    test(`gets ${status} at once: ${what}`, () => assertRefusedUnasked(status, head()));
  }

  test('gets 403 at once: a key without the scope', async () => {
    const reader = await headgate.newKey(undefined, ['data:read']);
    await assertRefusedUnasked(403, headOf({ ...asks, ...bearer(reader.key) }));
  });

  test('and does not wait gets 100 and the response, each time', async () => {
    const request = `${headOf({ ...asks, 'Content-Length': '2' })}{}`;
    const answers = await exchange(request + request, { answers: 4 });
    assert.deepEqual(
      answers.map(({ status }) => status),
      [100, 400, 100, 400],
    );
    assertRead(answers[1]!);
    assertRead(answers[3]!);
  });
});

describe('a client that closes its sending side', () => {
  const last = { endSending: true };
  const rejected = uploadOf({ ...leastRecord('shops'), colour: 1 });
  const request = (text: string): string => headOf({ 'Content-Length': String(text.length) }) + text;

  const whole: Readonly<Record<string, readonly [sent: () => string, statuses: readonly number[]]>> = {
    'an upload': [() => request(rejected), [400]],
    'an upload in chunks': [() => headOf({ 'Transfer-Encoding': 'chunked' }) + chunked(rejected), [400]],
    'an interaction': [
      () => `${headOf({ 'Content-Length': '2' }, 'POST /user-interactions HTTP/1.1')}{}`,
      [400],
    ],
    'a list': [() => headOf({}, 'GET /v1/data/tags HTTP/1.1'), [200]],
    'a list by HTTP/1.0': [() => headOf({}, 'GET /v1/data/tags HTTP/1.0'), [200]],
    'a probe': [() => headOf({}, 'GET /livez HTTP/1.1'), [200]],
    'several requests': [
      () => request('{}') + headOf({}, 'GET /v1/data/tags HTTP/1.1') + request(rejected),
      [400, 200, 400],
    ],
  };
  for (const [what, [sent, statuses]] of Object.entries(whole)) {
    test(`gets its responses, and the connection is closed: ${what}`, async () => {
      const connection = await connectRaw(headgate.url);
      connection.write(sent());
      connection.endSending();
      const received: number[] = [];
      while (received.length < statuses.length) received.push((await connection.answer()).status);
      assert.deepEqual(received, statuses);
      await connection.ended;
    });
  }

  test('gets the response to a large upload, whose records are stored', async () => {
    const records = Array.from({ length: LARGE_UPLOAD_RECORDS }, () => leastRecord('shops'));
    const connection = await connectRaw(headgate.url);
    connection.send({ path: '/v1/data/shops', headers: bearer(key), body: uploadOf(...records) });
    connection.endSending();
    const { status, text } = await connection.answer();
    assert.equal(status, 200, text);
    assert.equal((JSON.parse(text) as UploadBody).batches.length, 5);
    assert.equal((await api.read('shops', idOf('shops', records.at(-1)!))).status, 200);
    await connection.ended;
  });

  const cut: Readonly<Record<string, () => string>> = {
    'in the head': () => headOf({ 'Content-Length': length }).slice(0, -2),
    'after the head': () => headOf({ 'Content-Length': length }),
    'in the body': () => headOf({ 'Content-Length': length }) + body.slice(0, -1),
    'in a chunk': () => headOf({ 'Transfer-Encoding': 'chunked' }) + chunk(body).slice(0, -9),
    'before the last chunk': () => headOf({ 'Transfer-Encoding': 'chunked' }) + chunk(body),
  };
  for (const [where, sent] of Object.entries(cut)) {
    test(`${where} is refused as cut off`, async () => {
      const [answer] = await exchange(sent(), last);
      assertRefused(answer!, 400, /cut off before its end; nothing was stored/);
    });
  }

  test('or sends an invalid request gets the responses to complete requests first', async () => {
    for (const [rest, says] of [
      [headOf({ 'Content-Length': length }), /cut off/],
      [headOf({ 'Content-Length': length }) + body.slice(0, -1), /cut off/],
      ['GET /li', /cut off/],
      ['hello?\r\n\r\n', /not a valid HTTP/],
    ] as const) {
      const record = leastRecord('shops');
      const connection = await connectRaw(headgate.url);
      connection.send({ path: '/v1/data/shops', headers: bearer(key), body: uploadOf(record) });
      connection.write(rest);
      connection.endSending();
      const { status, text } = await connection.answer();
      assert.equal(status, 200, text);
      assertRefused(await connection.answer(), 400, says);
      await connection.ended;
    }
  });

  test('and disconnects leaves no connection open', { skip: withoutProc }, async () => {
    const requests = [
      request(rejected),
      headOf({ 'Content-Length': length }),
      'GET /li',
      'hello?\r\n\r\n',
      '',
    ];
    const before = await openSockets();
    for (const sent of requests) {
      const connection = await connectRaw(headgate.url);
      connection.write(sent);
      connection.endSending();
      connection.destroy();
    }
    await waitUntil('all connections are closed', async () => (await openSockets()) <= before);
  });
});

test('a request that is refused before its end gets one response, however it ends', async () => {
  const refusedHead = headOf({ Authorization: 'Bearer none', 'Transfer-Encoding': 'chunked' });
  for (const rest of ['xyz\r\n', `${chunk(body)}xyz\r\n`, chunk(body)]) {
    for (const isAtOnce of [true, false]) {
      const connection = await connectRaw(headgate.url);
      if (isAtOnce) connection.write(refusedHead + rest);
      else connection.write(refusedHead);
      if (isAtOnce) connection.endSending();
      const answer = await connection.answer();
      assertRefused(answer, 401, /key/);
      if (!isAtOnce) connection.write(rest);
      connection.endSending();
      await connection.ended;
      await assert.rejects(connection.answer(), /ended before the answer: $/);
    }
  }
});

test('a refused client that keeps its connection open is disconnected', {
  skip: withoutProc,
}, async () => {
  const before = await openSockets();
  const { port } = new URL(headgate.url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
  let received = '';
  socket.on('data', (bytes) => (received += bytes)).on('error', () => {});
  socket.write('hello?\r\n\r\n');
  await waitUntil('it is refused', () => received.includes('not a valid HTTP'));
  await waitUntil('its connection is closed', async () => (await openSockets()) <= before);
  socket.destroy();
});

test('a client that keeps sending while it is refused gets the response', async () => {
  const connection = await connectRaw(headgate.url);
  connection.write('hello?\r\n\r\n');
  for (let sent = 0; sent < 50; sent++) connection.write('x'.repeat(100_000));
  assertRefused(await connection.answer(), 400, /not a valid HTTP/);
  connection.destroy();
});
