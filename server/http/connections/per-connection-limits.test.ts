import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { newCertificate, withoutOpenssl } from '../test-certificate.ts';
import {
  limitConnections,
  MOST_PIPELINED_REQUESTS,
  MOST_UNANSWERED_REQUESTS,
} from './per-connection-limits.ts';
import { TINY_CHUNKS } from './tiny-chunks.ts';

const BODY_BYTES = 60_000;
/** Node reads up to 64 KiB at a time. What it has read is parsed. */
const READ_BYTES = 64 * 1024;
const TURNS = 50;
/** The number under which Node's parser has its callback for a piece of a body. */
const ON_BODY = 3;

describe('one connection', { timeout: 20_000 }, () => {
  const server = createServer();
  const handled: [IncomingMessage, ServerResponse][] = [];
  server.on('request', (request, response) => handled.push([request, response]));
  limitConnections(server, () => 1);
  let client: Socket;

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    handled.length = 0;
    client.destroy();
  });
  after(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });

  const post = (headers: string, body: string): string =>
    `POST / HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`;
  const withLength = (bytes: number): string => post(`Content-Length: ${bytes}`, ' '.repeat(bytes));
  const inChunks = (chunks: number): string =>
    post('Transfer-Encoding: chunked', `${'1\r\n \r\n'.repeat(chunks)}0\r\n\r\n`);

  /** Sends requests without waiting for responses, and waits until the server has had time to read all of them. */
  const send = async (...requests: string[]): Promise<void> => {
    const connected = once(server, 'connection');
    client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    client.write(requests.join(''));
    await connected;
    for (let turn = 0; turn < TURNS; turn++) await turnOfTheLoop();
  };
  const handledNext = async (count: number): Promise<void> => {
    while (handled.length < count) await turnOfTheLoop();
  };

  test('is not read further while a request waits behind another', async () => {
    await send(...Array.from({ length: MOST_UNANSWERED_REQUESTS }, () => withLength(BODY_BYTES)));
    assert.equal(handled.length, 1);
    const { bytesRead } = handled[0]![0].socket;
    assert.ok(bytesRead <= 3 * READ_BYTES, `${bytesRead} bytes were read`);
    for (let at = 0; at < MOST_UNANSWERED_REQUESTS; at++) {
      await handledNext(at + 1);
      const [request, response] = handled[at]!;
      assert.equal(Buffer.concat(await request.toArray()).length, BODY_BYTES);
      response.end('ok');
    }
  });

  test('is closed if requests that it sends at once have too many headers together', async () => {
    const headers = Array.from({ length: 600 }, (_, at) => `x${at}: a`).join('\r\n');
    await send(post(headers, ''));
    assert.equal(handled[0]![1].destroyed, false);
    client.destroy();
    await send(post(headers, ''), post(headers, ''));
    if (!client.closed) await once(client.resume(), 'close');
  });

  test('is closed if requests that it sends at once have too many trailers together', async () => {
    const trailers = 'a: b\r\n'.repeat(600);
    const request = post('Transfer-Encoding: chunked', `1\r\n \r\n0\r\n${trailers}\r\n`);
    await send(request, request, request);
    if (!client.closed) await once(client.resume(), 'close');
  });

  test('may send a body in tiny chunks, which are joined', async () => {
    const chunks = 400;
    await send(inChunks(chunks));
    const pieces: Buffer[] = [];
    handled[0]![0].on('data', (piece: Buffer) => pieces.push(piece));
    await once(handled[0]![0], 'end');
    assert.equal(Buffer.concat(pieces).length, chunks);
    assert.ok(pieces.length < chunks / 4, `${pieces.length} pieces`);
  });

  test('may not send many tiny chunks in requests that it sends at once', async () => {
    let refused = 0;
    server.prependOnceListener('request', ({ socket }: IncomingMessage) => {
      server.prependOnceListener('request', (second) => {
        assert.equal(second.socket, socket);
        second.on(TINY_CHUNKS, () => refused++);
      });
    });
    await send(inChunks(400), inChunks(400));
    assert.equal(refused, 1);
  });

  test('whose tiny chunks are refused costs nothing for the chunks that were received with them', async () => {
    let pieces = 0;
    server.once(
      'connection',
      ({ parser }: Socket & { readonly parser: Record<number, (...args: unknown[]) => unknown> }) => {
        const onBody = parser[ON_BODY]!;
        parser[ON_BODY] = (...args) => {
          pieces++;
          return onBody.apply(parser, args);
        };
      },
    );
    await send(inChunks(READ_BYTES / 8));
    await handledNext(1);
    assert.ok(pieces > 0 && pieces < 600, `Node has passed on ${pieces} pieces`);
  });

  test('may send tiny chunks in requests one after the other', async () => {
    await send(inChunks(400));
    handled[0]![0].resume();
    handled[0]![1].end('ok');
    await once(client, 'data');
    client.write(inChunks(400));
    await handledNext(2);
    assert.equal(Buffer.concat(await handled[1]![0].toArray()).length, 400);
  });
});

test('requests that arrive at once over TLS get their responses', {
  skip: withoutOpenssl,
  timeout: 20_000,
}, async (t) => {
  const server = createTlsServer(newCertificate(), (request, response) => {
    request.resume().on('end', () => setTimeout(() => response.end('ok'), 5));
  });
  limitConnections(server, () => 1);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  t.after(() => client.destroy());
  await once(client, 'secureConnect');
  let received = '';
  client.on('data', (data: Buffer) => {
    received += data;
  });
  // Each write becomes a TLS record. All of them are received together.
  client.cork();
  for (let at = 0; at < 4; at++) client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  client.write(
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY_BYTES}\r\n\r\n${' '.repeat(BODY_BYTES)}`,
  );
  client.uncork();
  while (received.split('HTTP/1.1 ').length < 6) await once(client, 'data');
  assert.deepEqual(received.match(/HTTP\/1.1 \d+/g), Array(5).fill('HTTP/1.1 200'));
});

test('one owner has few requests that wait for the responses to others, on all connections together', {
  timeout: 20_000,
}, async (t) => {
  const each = MOST_UNANSWERED_REQUESTS - 1;
  const server = createServer(() => {});
  limitConnections(server, ({ headers }) => Number(headers['x-owner']));
  let arrived = 0;
  let unanswered = 0;
  server.prependListener('request', (_, response: ServerResponse) => {
    arrived++;
    unanswered++;
    response.on('close', () => unanswered--);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const clients: Socket[] = [];
  t.after(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const open = (owner: number): Socket => {
    const client = connect(port, '127.0.0.1').on('error', () => {});
    client.write(`GET / HTTP/1.1\r\nHost: a\r\nX-Owner: ${owner}\r\n\r\n`.repeat(each));
    clients.push(client.resume());
    return client;
  };
  for (let opened = 0; opened < 200; opened++) open(1);
  // Each request that is too much closes its connection, with the requests that have arrived before.
  while (arrived < 200) await turnOfTheLoop();
  const isClosed = (): number => clients.filter(({ closed }) => closed).length;
  while (isClosed() < 200 - MOST_PIPELINED_REQUESTS / (each - 1)) await turnOfTheLoop();
  const left = clients.length - isClosed();
  assert.ok(unanswered <= MOST_PIPELINED_REQUESTS + left, `${unanswered} on ${left} connections`);

  const other = open(2);
  const before = arrived;
  while (arrived < before + each) await turnOfTheLoop();
  assert.ok(!other.closed);
});
