import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { limitConnections } from './per-connection-limits.ts';

const BUSY_CONNECTIONS = 100;
const OTHER = 2;

function headOf(owner: number, more = ''): string {
  return `POST / HTTP/1.1\r\nHost: a\r\nX-Owner: ${owner}\r\n${more}\r\n`;
}

const smallChunks = `${headOf(1, 'Transfer-Encoding: chunked\r\n')}${`48\r\n${' '.repeat(72)}\r\n`.repeat(800)}`;

interface Transport {
  newServer(handle: RequestListener): Server;
  open(port: number): Socket;
  readonly opened: string;
  readonly skip: string | boolean;
}

const http: Transport = { newServer: createServer, open: connect, opened: 'connect', skip: false };
const https: Transport = {
  newServer: (handle: RequestListener) => createTlsServer(newCertificate(), handle),
  open: (port: number): Socket => connectTls({ port, rejectUnauthorized: false }),
  opened: 'secureConnect',
  skip: withoutOpenssl,
};

interface Ground {
  /** The server's side of all connections. */
  readonly accepted: readonly Socket[];
  /** Resolves when the connection is open. */
  connected(): Promise<Socket>;
  /** Sends a request, waits for its response, and returns how many bytes the server had read when it handled it. */
  ask(socket: Socket): Promise<number>;
}

async function groundOf(t: TestContext, { newServer, open, opened }: Transport): Promise<Ground> {
  const accepted: Socket[] = [];
  const sockets: Socket[] = [];
  let bytesRead = 0;
  const server: Server = newServer(({ headers }, response) => {
    if (headers['x-owner'] === String(OTHER))
      bytesRead = accepted.reduce((sum, tcp) => sum + tcp.bytesRead, 0);
    response.end('ok');
  });
  server.on('connection', (tcp: Socket) => accepted.push(tcp));
  limitConnections(server, ({ headers }) => Number(headers['x-owner']));
  await once(server.listen(0), 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    accepted,
    async connected() {
      const socket = open((server.address() as AddressInfo).port);
      sockets.push(socket.on('error', () => {}));
      await once(socket, opened);
      return socket;
    },
    async ask(socket) {
      const answered = once(socket, 'data');
      socket.write(headOf(OTHER));
      await answered;
      return bytesRead;
    },
  };
}

function assertFew(bytesRead: number): void {
  const sentBytes = BUSY_CONNECTIONS * smallChunks.length;
  assert.ok(bytesRead < sentBytes / 2, `${bytesRead} of ${sentBytes} bytes were read before`);
}

for (const [name, transport] of Object.entries({ HTTP: http, HTTPS: https })) {
  test(`a used connection does not wait for all others, over ${name}`, {
    skip: transport.skip,
  }, async (t) => {
    const { accepted, connected, ask } = await groundOf(t, transport);
    const other = await connected();
    await ask(other);
    const busy = await Promise.all(Array.from({ length: BUSY_CONNECTIONS }, connected));
    while (accepted.length <= BUSY_CONNECTIONS) await setImmediate();
    for (const socket of busy) socket.write(smallChunks);
    assertFew(await ask(other));
  });
}

test('a new connection does not wait for all others', async (t) => {
  const { connected, ask } = await groundOf(t, http);
  for (let opened = 0; opened < BUSY_CONNECTIONS; opened++) {
    void connected().then((socket) => socket.write(smallChunks));
  }
  assertFew(await ask(await connected()));
});
