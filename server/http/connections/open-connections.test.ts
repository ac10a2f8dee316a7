import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type NetConnectOpts, type Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { limitOpenConnections } from './open-connections.ts';

const MOST = 4;
const timeout = 20_000;
const ATTACKER = '127.0.0.2';

const transports = {
  http: {
    skip: false,
    newServer: (): Server => createServer(),
    open: (options: NetConnectOpts): Socket => connect(options),
    opened: 'connect',
  },
  https: {
    skip: withoutOpenssl,
    newServer: (): Server => createTlsServer(newCertificate()),
    open: (options: NetConnectOpts): Socket => connectTls({ ...options, rejectUnauthorized: false }),
    opened: 'secureConnect',
  },
};

for (const [name, { skip, newServer, open, opened }] of Object.entries(transports)) {
  test(`too many connections over ${name}: the address with the most loses one, first those without a request, last the busy ones`, {
    skip,
    timeout,
  }, async (t) => {
    const server = newServer();
    const held: ServerResponse[] = [];
    server.on('request', ({ url }, response) => {
      if (url === '/held') held.push(response.writeHead(200));
      response.write('ok');
      if (url !== '/held') response.end();
    });
    let closings = 0;
    limitOpenConnections(server, MOST, () => closings++);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const clients: Socket[] = [];
    t.after(() => {
      for (const client of clients) client.destroy();
      server.close();
    });
    const connected = async (address = ATTACKER): Promise<Socket> => {
      const client = open({ port, host: '127.0.0.1', localAddress: address }).on('error', () => {});
      clients.push(client);
      await once(client, opened);
      return client;
    };
    const ask = async (client: Socket, path = '/'): Promise<void> => {
      client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      await once(client, 'data');
    };
    const isClosed = (client: Socket) => client.destroyed;
    const closedNow = async (client: Socket): Promise<void> => {
      client.resume();
      while (!isClosed(client)) await setImmediate();
    };

    const other = await connected('127.0.0.1');
    const [busy, used, unused] = [await connected(), await connected(), await connected()];
    await ask(busy, '/held');
    await ask(used);
    assert.equal(closings, 0);
    await ask(await connected(), '/held');
    await closedNow(unused);
    await ask(await connected(), '/held');
    await closedNow(used);
    assert.deepEqual([closings, isClosed(busy), isClosed(other)], [2, false, false]);
    // Once its response has ended, a connection is idle, even if the others began to be busy later.
    held[0]!.end();
    await once(busy, 'data');
    await ask(await connected(), '/held');
    await closedNow(busy);
    assert.deepEqual([closings, isClosed(other)], [3, false]);
    // A place that has become free may be used.
    clients.at(-1)!.destroy();
    while ((await connectionsOf(server)) === MOST) await setImmediate();
    await ask(await connected());
    await ask(other);
    assert.equal(closings, 3);
  });
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}
