import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { limitConnections } from './per-connection-limits.ts';

const CONNECTIONS = 300;

/** Begins `AGAIN_CONNECTIONS` handshakes from a thread of its own. Each ends with the server's reply and begins again. */
const AGAIN_CONNECTIONS = 100;
const BEGIN_AGAIN = `
  const { connect } = require('node:net');
  const { parentPort, workerData: { port, hello, connections } } = require('node:worker_threads');
  let replies = 0;
  const open = () => {
    const socket = connect(port, '127.0.0.1', () => socket.write(hello));
    socket.on('error', () => {}).on('close', open).on('data', () => {
      socket.destroy();
      if (++replies === connections) parentPort.postMessage('all have a reply');
    });
  };
  for (let opened = 0; opened < connections; opened++) open();
`;

interface Ground {
  readonly port: number;
  /** The server's side of all connections. */
  readonly accepted: readonly Socket[];
  /** Opens a connection without a handshake, and resolves when the server has accepted it. */
  open(): Promise<Socket>;
  /** Opens a connection from this address and resolves when its handshake is done. */
  openTls(localAddress?: string): Promise<Socket>;
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
    port: place.port,
    accepted,
    async open() {
      const socket = connect(place);
      sockets.push(socket.on('error', () => {}));
      await Promise.all([once(socket, 'connect'), once(server, 'connection')]);
      return socket;
    },
    async openTls(localAddress = '127.0.0.1') {
      const socket = connectTls({ ...place, localAddress, rejectUnauthorized: false } as ConnectionOptions);
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

  test('that are begun again and again do not hold up a client with another address', async (t) => {
    const { port, accepted, openTls, ask } = await groundOf(t);
    const workerData = { port, hello: await clientHello(), connections: AGAIN_CONNECTIONS };
    const beginner = new Worker(BEGIN_AGAIN, { eval: true, workerData });
    t.after(() => beginner.terminate());
    await once(beginner, 'message');
    const waits: number[] = [];
    while (waits.length < 20) {
      const readBefore = accepted.filter(({ bytesRead }) => bytesRead > 0).length;
      waits.push((await ask(await openTls('127.0.0.2'))) - readBefore);
    }
    assert.ok(
      Math.max(...waits) < AGAIN_CONNECTIONS / 2,
      `connections that were read before: ${waits.join(', ')}`,
    );
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
