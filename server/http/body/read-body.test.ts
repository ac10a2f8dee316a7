import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { InFlight } from './in-flight-bytes.ts';
import { readBytes } from './read-body.ts';

const LIMIT_BYTES = 1000;
const ORGANISATION = 1;

async function listening(t: TestContext): Promise<{ server: Server; port: number }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

test('reading a body returns null if the client disconnected before', {
  timeout: 10_000,
}, async (t) => {
  const { server, port } = await listening(t);
  const client = connect(port, '127.0.0.1');
  client.write('POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\n{"re');
  const [request] = (await once(server, 'request')) as [IncomingMessage];
  const closed = new Promise((resolve) => request.on('error', () => {}).on('close', resolve));
  client.destroy();
  await closed;
  assert.equal(
    await readBytes(request, LIMIT_BYTES, new InFlight(LIMIT_BYTES, LIMIT_BYTES), ORGANISATION),
    null,
  );
});

test('if a client disconnects in the middle of its body, its bytes in flight are released', async (t) => {
  const { server, port } = await listening(t);
  const inFlight = new InFlight(LIMIT_BYTES, LIMIT_BYTES);
  const client = connect(port, '127.0.0.1');
  client.write('POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\n{"re');
  const [request] = (await once(server, 'request')) as [IncomingMessage];
  const read = readBytes(request, LIMIT_BYTES, inFlight, ORGANISATION);
  await once(request, 'data');
  client.destroy();
  assert.equal(await read, null);
  assert.equal(inFlight.bytes, 0);
});
