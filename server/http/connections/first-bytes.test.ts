import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { respondToHalfClosed } from './connection-state.ts';
import { limitConnections } from './per-connection-limits.ts';

interface Response {
  readonly headBytes: number;
  readonly body: string;
}

/** Starts a server that responds with the request's body, and opens a connection to it. */
async function opened(t: TestContext, isTls: boolean): Promise<Socket> {
  const echo: RequestListener = async (request, response) => {
    const body: Buffer[] = [];
    for await (const piece of request) {
      body.push(piece);
      // A handler may be slow to read, so that the connection is paused.
      if (request.headers['x-slow'] !== undefined) await sleep(1);
    }
    const headBytes = request.rawHeaders.join('').length;
    response.end(`${JSON.stringify({ headBytes, body: Buffer.concat(body).toString() })}\n`);
  };
  const server = isTls ? createTlsServer(newCertificate(), echo) : createServer(echo);
  respondToHalfClosed(server);
  limitConnections(server, () => 1);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const place = { port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true };
  const socket = isTls ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place);
  t.after(() => {
    socket.destroy();
    server.close();
  });
  await once(socket, isTls ? 'secureConnect' : 'connect');
  return socket;
}

async function responses(socket: Socket, count: number): Promise<Response[]> {
  let received = '';
  const found = (): string[] => received.match(/^\{.*\}$/gm) ?? [];
  while (found().length < count) {
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    received += bytes;
  }
  return found().map((line) => JSON.parse(line) as Response);
}

const sizes = [0, 1, 900, 1024, 1025, 5000, 70_000, 400_000];
const bodyOf = (bytes: number): string => 'abcdefghij'.repeat(Math.ceil(bytes / 10)).slice(0, bytes);
const withLength = (bytes: number, headers = ''): string =>
  `POST / HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${bytes}\r\n\r\n${bodyOf(bytes)}`;
function inChunks(bytes: number, chunkBytes: number): string {
  const body = bodyOf(bytes);
  const chunks = Array.from({ length: Math.ceil(bytes / chunkBytes) }, (_, at) => {
    const chunk = body.slice(at * chunkBytes, (at + 1) * chunkBytes);
    return `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
  });
  return `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`;
}

for (const isTls of [false, true]) {
  const overTls = isTls ? ' over TLS' : '';
  const options = { skip: isTls && withoutOpenssl, timeout: 20_000 };

  test(`a first request of any size arrives as a whole${overTls}`, options, async (t) => {
    for (const bytes of sizes) {
      for (const request of [
        withLength(bytes),
        withLength(bytes, 'X-Slow: 1\r\n'),
        inChunks(bytes, 100),
        inChunks(bytes, 3000),
      ]) {
        const socket = await opened(t, isTls);
        socket.write(request);
        assert.equal((await responses(socket, 1))[0]!.body, bodyOf(bytes));
        socket.write(request);
        assert.equal((await responses(socket, 1))[0]!.body, bodyOf(bytes));
      }
    }
  });

  test(`a head that is longer than a step arrives as a whole${overTls}`, options, async (t) => {
    for (const headerBytes of [1000, 3000, 15_000]) {
      const socket = await opened(t, isTls);
      socket.write(withLength(2000, `X-Long: ${'x'.repeat(headerBytes)}\r\n`));
      const [response] = await responses(socket, 1);
      assert.ok(response!.headBytes > headerBytes);
      assert.equal(response!.body, bodyOf(2000));
    }
  });

  test(
    `requests that are sent at once, and then the end, get their responses${overTls}`,
    options,
    async (t) => {
      const socket = await opened(t, isTls);
      const all = [300, 5000, 0, 70_000, 20];
      socket.end(all.map((bytes) => withLength(bytes)).join(''));
      const found = await responses(socket, all.length);
      assert.deepEqual(
        found.map(({ body }) => body.length),
        all,
      );
    },
  );

  test(`a first request that is sent byte by byte arrives as a whole${overTls}`, options, async (t) => {
    const socket = await opened(t, isTls);
    socket.setNoDelay(true);
    for (const byte of withLength(40)) {
      socket.write(byte);
      await sleep(1);
    }
    assert.equal((await responses(socket, 1))[0]!.body, bodyOf(40));
  });
}

test('a connection without a request leaves nothing behind that shortens the responses to requests of this process', {
  timeout: 20_000,
}, async (t) => {
  const body = bodyOf(20_000);
  const other = createServer((_, response) => response.end(body));
  await once(other.listen(0, '127.0.0.1'), 'listening');
  t.after(() => other.close());
  const silent = await opened(t, false);
  silent.end();
  await once(silent.resume(), 'close');
  const request = get({ port: (other.address() as AddressInfo).port, host: '127.0.0.1', agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  assert.equal(await text(response), body);
});
