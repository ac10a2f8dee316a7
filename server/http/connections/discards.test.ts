import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { limitConnections } from './per-connection-limits.ts';

const REFUSED_CONNECTIONS = 500;
const BODY_BYTES = 300_000;
const LONGEST_WAIT_MS = 1000;
// A turn of each refused connection would take at least 500 ms, because every turn is followed by a pause.
const LONGEST_WAIT_WHEN_FORGOTTEN_MS = 400;
const BUSY_CONNECTIONS = 16;
const SMALL_BODIES = 4000;

describe('bodies that are discarded', () => {
  // Every request gets its response before its body is read.
  let unended = 0;
  let mostUnended = 0;
  const server = createServer((received, response) => {
    mostUnended = Math.max(mostUnended, ++unended);
    received.once('close', () => unended--);
    response.end('refused');
  });
  limitConnections(server, ({ headers }) => Number(headers['x-owner']));
  const open: Socket[] = [];

  const post = async (owner: number, bodyBytes: number): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    open.push(socket);
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nX-Owner: ${owner}\r\nContent-Length: ${bodyBytes}\r\n\r\nx`);
    await once(socket, 'data');
    return socket;
  };

  const waitAfterRefusal = async (owner: number): Promise<number> => {
    const socket = await post(owner, BODY_BYTES);
    const startedAtMs = performance.now();
    socket.write(Buffer.alloc(BODY_BYTES - 1));
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\nX-Owner: ${owner}\r\n\r\n`);
    await once(socket, 'data');
    return performance.now() - startedAtMs;
  };

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  test('do not delay another organisation, even if hundreds of them never arrive', async () => {
    await Promise.all(Array.from({ length: REFUSED_CONNECTIONS }, () => post(1, BODY_BYTES)));
    const waitedMs = await waitAfterRefusal(2);
    assert.ok(waitedMs < LONGEST_WAIT_MS, `waited ${waitedMs} ms`);
  });

  test('are forgotten at once if they arrive together with their heads', async () => {
    const { port } = server.address() as AddressInfo;
    const agent = new Agent({ keepAlive: true, maxSockets: BUSY_CONNECTIONS });
    const postSmall = async (): Promise<void> => {
      const sent = request({ port, agent, method: 'POST', headers: { 'X-Owner': '3' } }).end('{}');
      const [response] = await once(sent, 'response');
      assert.equal(await text(response), 'refused');
    };
    mostUnended = unended;
    const earlier = unended;
    await Promise.all(
      Array.from({ length: BUSY_CONNECTIONS }, async () => {
        for (let sent = 0; sent < SMALL_BODIES / BUSY_CONNECTIONS; sent++) await postSmall();
      }),
    );
    agent.destroy();
    const most = mostUnended - earlier;
    assert.ok(most <= 2 * BUSY_CONNECTIONS, `${most} requests were in memory at once`);
  });

  test('are forgotten when their connection closes', async () => {
    for (const socket of open.splice(0)) socket.destroy();
    // That a connection is closed is noticed at its turn, so the first request waits for a turn of each.
    await waitAfterRefusal(1);
    const waitedMs = await waitAfterRefusal(1);
    assert.ok(waitedMs < LONGEST_WAIT_WHEN_FORGOTTEN_MS, `waited ${waitedMs} ms`);
  });
});
