import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { type Certificate, newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { type Closing, connectionCloser, responseBegan, responseEnded } from './connection-state.ts';

/** More than the buffers of both ends of a connection hold. */
const LARGE_BYTES = 48 * 1024 * 1024;
const SLOW_STEPS = 20;
const TIMEOUT_MS = 8000;
/** After STALL_MS a client counts as stalled. After LAST_CALL_MS every remaining client is cut off. */
const STALL_MS = TIMEOUT_MS / 4;
const LAST_CALL_MS = TIMEOUT_MS - STALL_MS;

interface Stopping {
  readonly port: number;
  connect(): Promise<Client>;
  stop(): { readonly closing: Closing; readonly closed: Promise<number> };
}

interface Client {
  readonly socket: Socket;
  /** Returns the number of received bytes. */
  readonly received: () => number;
  readonly closed: Promise<unknown>;
}

/** Starts a server that tracks its responses as Headgate does. */
async function serve(t: TestContext, handle: RequestListener, tls: Certificate | null): Promise<Stopping> {
  const listener: RequestListener = (request, response) => {
    const { socket } = request;
    responseBegan(socket, response);
    response.once('close', () => responseEnded(socket, response));
    handle(request, response);
  };
  const server = tls === null ? createServer(listener) : createTlsServer(tls, listener);
  server.on('clientError', (_, socket) => socket.destroy());
  const close = connectionCloser(server, tls !== null);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    port,
    async connect() {
      const place = { port, host: '127.0.0.1' };
      const socket = tls === null ? connect(place) : connectTls({ ...place, rejectUnauthorized: false });
      t.after(() => socket.destroy());
      let received = 0;
      socket.on('data', (bytes) => {
        received += bytes.length;
      });
      socket.on('error', () => {});
      await once(socket, tls === null ? 'connect' : 'secureConnect');
      return { socket, received: () => received, closed: once(socket, 'close') };
    },
    stop() {
      const startedAtMs = performance.now();
      const closing = close(TIMEOUT_MS, () => {});
      const closed = Promise.withResolvers<number>();
      server.close(() => closed.resolve(performance.now() - startedAtMs));
      return { closing, closed: closed.promise };
    },
  };
}

const reads: RequestListener = (request, response) => {
  request.resume().on('end', () => response.end('read'));
};
const sendsMuch: RequestListener = (_, response) => response.end(Buffer.alloc(LARGE_BYTES));
const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const postOf = (bytes: number): string => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`;

function stopSuite(certificate: Certificate | null): void {
  const serving = (t: TestContext, handle: RequestListener) => serve(t, handle, certificate);

  test('closes silent and idle connections at once, and counts none as cut', async (t) => {
    const server = await serving(t, reads);
    const clients = await Promise.all([server.connect(), server.connect()]);
    clients[0]!.socket.write(get);
    await once(clients[0]!.socket, 'data');
    const { closing, closed } = server.stop();
    assert.ok((await closed) < STALL_MS);
    assert.equal(closing.cut, 0);
  });

  test('cuts off clients that stall in a head or in a body, after the stall timeout', async (t) => {
    const server = await serving(t, reads);
    for (const sent of ['GET / HT', postOf(10), `${postOf(10)}12345`]) {
      (await server.connect()).socket.write(sent);
    }
    await sleep(100);
    const { closing, closed } = server.stop();
    const tookMs = await closed;
    assert.ok(tookMs >= STALL_MS && tookMs < LAST_CALL_MS, String(tookMs));
    assert.equal(closing.cut, 3);
  });

  test('cuts off a client that does not read its response', async (t) => {
    const server = await serving(t, sendsMuch);
    const { socket } = await server.connect();
    socket.pause().write(get);
    await sleep(100);
    const { closing, closed } = server.stop();
    const tookMs = await closed;
    assert.ok(tookMs >= STALL_MS && tookMs < LAST_CALL_MS, String(tookMs));
    assert.equal(closing.cut, 1);
  });

  test('cuts off a client that does not read its response, although it has sent more requests', async (t) => {
    let requests = 0;
    const server = await serving(t, (request, response) => {
      if (requests++ === 0) sendsMuch(request, response);
    });
    const { socket } = await server.connect();
    socket.pause().write(get + get + postOf(10));
    await sleep(100);
    const { closing, closed } = server.stop();
    const tookMs = await closed;
    assert.ok(tookMs >= STALL_MS && tookMs < LAST_CALL_MS, String(tookMs));
    assert.equal(closing.cut, 1);
  });

  test('waits for a client that reads its response slowly', async (t) => {
    const server = await serving(t, sendsMuch);
    const client = await server.connect();
    client.socket.pause().write(get);
    await sleep(100);
    const { closing, closed } = server.stop();
    for (let step = 1; step <= SLOW_STEPS; step++) {
      await sleep((STALL_MS * 1.5) / SLOW_STEPS);
      client.socket.resume();
      while (client.received() < (LARGE_BYTES * step) / SLOW_STEPS) await once(client.socket, 'data');
      client.socket.pause();
    }
    client.socket.resume();
    assert.ok((await closed) > STALL_MS);
    await client.closed;
    assert.ok(client.received() > LARGE_BYTES, String(client.received()));
    assert.equal(closing.cut, 0);
  });

  test('waits for a client that sends slowly', async (t) => {
    const server = await serving(t, reads);
    const client = await server.connect();
    client.socket.write(postOf(10));
    await sleep(100);
    const { closing, closed } = server.stop();
    for (let byte = 0; byte < 10; byte++) {
      await sleep(STALL_MS / 5);
      client.socket.write('x');
    }
    assert.ok((await closed) >= STALL_MS);
    await client.closed;
    assert.ok(client.received() > 0);
    assert.equal(closing.cut, 0);
  });

  test('cuts off a client that keeps sending slowly before the shutdown timeout', async (t) => {
    const server = await serving(t, reads);
    const client = await server.connect();
    client.socket.write(postOf(1_000_000));
    const sending = setInterval(() => client.socket.write('x'), STALL_MS / 10);
    t.after(() => clearInterval(sending));
    await sleep(100);
    const { closing, closed } = server.stop();
    const tookMs = await closed;
    assert.ok(tookMs >= LAST_CALL_MS && tookMs < TIMEOUT_MS, String(tookMs));
    assert.equal(closing.cut, 1);
  });

  test('finishes requests that have arrived completely, however long they take', async (t) => {
    const server = await serving(t, (request, response) => {
      request.resume();
      setTimeout(() => response.end('done'), TIMEOUT_MS + 500);
    });
    const client = await server.connect();
    client.socket.write(`${postOf(5)}12345`);
    // An incomplete request that follows a complete one does not end it.
    client.socket.write('GET / HT');
    await sleep(100);
    const { closing, closed } = server.stop();
    const tookMs = await closed;
    await client.closed;
    assert.ok(client.received() > 0);
    assert.ok(tookMs >= TIMEOUT_MS, String(tookMs));
    assert.ok(closing.cut <= 1);
  });

  test('does not count a client as stalled if the server has not begun to read its body', async (t) => {
    const server = await serving(t, (request, response) => {
      setTimeout(() => reads(request, response), STALL_MS * 1.5);
    });
    const client = await server.connect();
    client.socket.write(`${postOf(200_000)}${'x'.repeat(100_000)}`);
    await sleep(100);
    const { closing, closed } = server.stop();
    await sleep(STALL_MS * 1.7);
    client.socket.write('x'.repeat(100_000));
    await closed;
    await client.closed;
    assert.ok(client.received() > 0);
    assert.equal(closing.cut, 0);
  });
}

describe('a server that stops', { concurrency: true }, () => stopSuite(null));

describe('a server that stops, with TLS', { skip: withoutOpenssl, concurrency: true }, () => {
  const certificate = withoutOpenssl === false ? newCertificate() : null;
  stopSuite(certificate);

  test('closes connections with an unfinished handshake at once', async (t) => {
    const server = await serve(t, reads, certificate);
    for (const bytes of ['', Buffer.from('1603010200010001fc0303', 'hex')]) {
      const socket = connect(server.port, '127.0.0.1').on('error', () => {});
      t.after(() => socket.destroy());
      await once(socket, 'connect');
      socket.write(bytes);
    }
    await sleep(100);
    const { closing, closed } = server.stop();
    assert.ok((await closed) < STALL_MS);
    assert.equal(closing.cut, 0);
  });
});
