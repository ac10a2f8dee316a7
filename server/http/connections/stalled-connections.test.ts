import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { type Certificate, newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { responseBegan, responseEnded } from './connection-state.ts';
import { endStalledConnections } from './stalled-connections.ts';

/** More than the buffers of both ends of a connection hold. */
const LARGE_BYTES = 24 * 1024 * 1024;
const STALL_TIMEOUT_MS = 1000;
/** Large enough that the kernel accepts more from the server after every step. */
const STEP_BYTES = LARGE_BYTES / 6;
const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** Resolves to a client that has sent its request and reads nothing yet. */
async function clientOf(t: TestContext, handle: RequestListener, tls: Certificate | null): Promise<Socket> {
  const listener: RequestListener = (incoming, response) => {
    const { socket } = incoming;
    responseBegan(socket, response);
    response.once('close', () => responseEnded(socket, response));
    handle(incoming, response);
  };
  const server = tls === null ? createServer(listener) : createTlsServer(tls, listener);
  endStalledConnections(server, STALL_TIMEOUT_MS);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const place = { port: (server.address() as AddressInfo).port, host: '127.0.0.1' };
  const socket = tls === null ? connect(place) : connectTls({ ...place, rejectUnauthorized: false });
  t.after(() => {
    socket.destroy();
    server.close();
    server.closeAllConnections();
  });
  socket.on('error', () => {});
  await once(socket, tls === null ? 'connect' : 'secureConnect');
  socket.write(request);
  return socket;
}

const sendsMuch: RequestListener = (_, response) => response.end(Buffer.alloc(LARGE_BYTES));

function stallSuite(certificate: Certificate | null): void {
  test('a client that reads nothing of its response is cut off', async (t) => {
    const response = Promise.withResolvers<boolean>();
    await clientOf(
      t,
      (incoming, outgoing) => {
        outgoing.on('close', () => response.resolve(outgoing.writableFinished));
        sendsMuch(incoming, outgoing);
      },
      certificate,
    );
    assert.equal(await response.promise, false);
  });

  test('a client that reads slowly gets its whole response', async (t) => {
    const socket = await clientOf(t, sendsMuch, certificate);
    let received = 0;
    socket.on('data', (bytes: Buffer) => {
      received += bytes.length;
    });
    for (let step = 1; received < LARGE_BYTES && !socket.destroyed; step++) {
      socket.pause();
      await sleep(STALL_TIMEOUT_MS / 2);
      socket.resume();
      while (received < step * STEP_BYTES && !socket.destroyed) await sleep(1);
    }
    assert.ok(received > LARGE_BYTES, `${received} bytes arrived`);
  });

  test('a client that waits for the server is not cut off', async (t) => {
    const slow: RequestListener = (_, response) =>
      void setTimeout(() => response.end('done'), STALL_TIMEOUT_MS * 3);
    const socket = await clientOf(t, slow, certificate);
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    assert.match(bytes.toString(), /^HTTP\/1.1 200/);
  });
}

describe('connections', { concurrency: true }, () => stallSuite(null));
describe('connections with TLS', { skip: withoutOpenssl, concurrency: true }, () =>
  stallSuite(withoutOpenssl === false ? newCertificate() : null),
);
