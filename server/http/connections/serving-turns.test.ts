import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { limitConnections } from './per-connection-limits.ts';

const BUSY_CONNECTIONS = 100;
const NEW_CONNECTIONS = 20;
const HANDLING_MS = 1;
const BUSY_OWNER = 1;
const OTHER_OWNER = 2;

function requestOf(owner: number): string {
  return `GET / HTTP/1.1\r\nHost: a\r\nX-Owner: ${owner}\r\n\r\n`;
}

let handled = 0;
const server = createServer((_, response) => {
  handled++;
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < HANDLING_MS);
  response.end('ok');
});
const sockets: Socket[] = [];

before(async () => {
  limitConnections(server, ({ headers }) => Number(headers['x-owner']));
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
after(() => server.close());

function open(): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  return socket.on('error', () => {});
}

/** Sends a request, and waits for the first bytes of its response. */
async function ask(socket: Socket, owner = BUSY_OWNER): Promise<void> {
  const answered = once(socket, 'data');
  socket.write(requestOf(owner));
  await answered;
}

/** Opens connections that send the next request as soon as they have the response to the last. */
async function keepBusy(): Promise<void> {
  const busy = Array.from({ length: BUSY_CONNECTIONS }, open);
  await Promise.all(busy.map((socket) => ask(socket)));
  const request = requestOf(BUSY_OWNER);
  for (const socket of busy) socket.on('data', () => socket.write(request)).write(request);
  await once(busy[0]!, 'data');
}

test('new connections do not wait for all requests of busy connections', async () => {
  await keepBusy();
  const handledBefore = handled;
  await Promise.all(Array.from({ length: NEW_CONNECTIONS }, () => ask(open())));
  const handledMeanwhile = handled - handledBefore;
  // If each turn handled all busy connections and accepted one new one, this would be 2000.
  assert.ok(handledMeanwhile < 6 * BUSY_CONNECTIONS, `${handledMeanwhile} requests were handled meanwhile`);
});

test('a request waits for few requests of another owner, however many connections that has', async () => {
  const socket = open();
  await ask(socket, OTHER_OWNER);
  await keepBusy();
  const waits: number[] = [];
  for (let asked = 0; asked < 20; asked++) {
    const handledBefore = handled;
    await ask(socket, OTHER_OWNER);
    waits.push(handled - handledBefore);
  }
  const median = waits.toSorted((one, other) => one - other)[10]!;
  // If connections took turns instead of owners, this would be 100 or more.
  assert.ok(median < BUSY_CONNECTIONS / 2, `${waits} requests were handled meanwhile`);
});
