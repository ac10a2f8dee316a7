import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { limitConnections } from './per-connection-limits.ts';

const CONNECTIONS = 300;

interface Ground {
  /** The server's side of all connections. */
  readonly accepted: readonly Socket[];
  /** Opens a connection without a handshake, and resolves when the server has accepted it. */
  open(): Promise<Socket>;
  /** Opens a connection and resolves when its handshake is done. */
  openTls(): Promise<Socket>;
  /** Sends a request, and resolves to the number of other connections that the server had read from when it arrived. */
  ask(socket: Socket): Promise<number>;
}

async function groundOf(t: TestContext, options: ServerOptions = {}): Promise<Ground> {
  const accepted: Socket[] = [];
  const sockets: Socket[] = [];
  let readAtRequest = 0;
  const server = createHttpsServer({ ...newCertificate(), ...options }, (_, response) => {
    readAtRequest = accepted.filter(({ bytesRead }) => bytesRead > 0).length - 1;
    response.end('ok');
  });
  limitConnections(server, () => 1);
  server.on('connection', (tcp: Socket) => accepted.push(tcp));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const place = { port: (server.address() as AddressInfo).port, host: '127.0.0.1' };
  return {
    accepted,
    async open() {
      const socket = connect(place);
      sockets.push(socket.on('error', () => {}));
      await Promise.all([once(socket, 'connect'), once(server, 'connection')]);
      return socket;
    },
    async openTls() {
      const socket = connectTls({ ...place, rejectUnauthorized: false });
      sockets.push(socket.on('error', () => {}));
      await once(socket, 'secureConnect');
      return socket;
    },
    async ask(socket) {
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      await once(socket, 'data');
      return readAtRequest;
    },
  };
}

/** Resolves to the first message of a client's handshake. */
async function clientHello(): Promise<Buffer> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connectTls((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  const [peer] = (await once(server, 'connection')) as [Socket];
  const [hello] = (await once(peer, 'data')) as [Buffer];
  client.destroy();
  server.close();
  return hello;
}

describe('TLS handshakes', { skip: withoutOpenssl, timeout: 60_000 }, () => {
  test('that arrive at once do not delay a request on another connection', async (t) => {
    const { open, openTls, ask } = await groundOf(t);
    const hello = await clientHello();
    const other = await openTls();
    const handshaking: Socket[] = [];
    while (handshaking.length < CONNECTIONS) handshaking.push(await open());
    const replied = Promise.all(handshaking.map((socket) => once(socket, 'data')));
    for (const socket of handshaking) socket.write(hello);
    const readBefore = await ask(other);
    assert.ok(readBefore < CONNECTIONS / 2, `${readBefore} of ${CONNECTIONS} connections were read before`);
    await replied;
  });

  test('that stall do not delay another', async (t) => {
    const { open, openTls, ask } = await groundOf(t);
    for (let opened = 0; opened < CONNECTIONS; opened++) (await open()).write(Buffer.of(0x16));
    const startedAtMs = performance.now();
    await ask(await openTls());
    const tookMs = performance.now() - startedAtMs;
    assert.ok(tookMs < 1000, `it took ${tookMs.toFixed(0)} ms`);
  });

  test('that stall are ended by the timeout', async (t) => {
    const { accepted, open } = await groundOf(t, { handshakeTimeout: 500 });
    const closed: Promise<unknown>[] = [];
    while (closed.length < 20) closed.push(once((await open()).resume(), 'close'));
    await Promise.all(closed);
    assert.ok(accepted.every(({ destroyed }) => destroyed));
  });
});
