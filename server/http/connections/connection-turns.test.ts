import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { limitConnections } from './per-connection-limits.ts';

const BUSY_CONNECTIONS = 100;
const NEW_CONNECTIONS = 20;
const HANDLING_MS = 1;
const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

let handled = 0;
const server = createServer((_, response) => {
  handled++;
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < HANDLING_MS);
  response.end('ok');
});
const sockets: Socket[] = [];

before(async () => {
  limitConnections(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
after(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

function open(): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  return socket.on('error', () => {});
}

/** Sends a request, and waits for the first bytes of its response. */
async function ask(socket: Socket): Promise<void> {
  const answered = once(socket, 'data');
  socket.write(request);
  await answered;
}

test('new connections do not wait for all requests of those that are busy', async () => {
  const busy = Array.from({ length: BUSY_CONNECTIONS }, open);
  await Promise.all(busy.map(ask));
  for (const socket of busy) socket.on('data', () => socket.write(request)).write(request);
  await once(busy[0]!, 'data');

  const handledBefore = handled;
  await Promise.all(Array.from({ length: NEW_CONNECTIONS }, () => ask(open())));
  const handledMeanwhile = handled - handledBefore;
  // All at once in each turn, which accepts one connection, would be 2000.
  assert.ok(handledMeanwhile < 6 * BUSY_CONNECTIONS, `${handledMeanwhile} requests were handled meanwhile`);
});
