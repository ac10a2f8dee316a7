// A commit whose confirmation never arrives, because the connection to PostgreSQL is lost right after it. The client
// gets an error although everything is stored, so the error must not claim that nothing was stored.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { testServer } from '../server/store/postgres/test-server.ts';
import { apiOf, type RefusalBody } from './harness/api.ts';
import { startHeadgate } from './harness/headgate.ts';
import { idOf, leastRecord } from './harness/records.ts';
import { waitUntil } from './harness/waiting.ts';

interface DeafProxy {
  readonly port: number;
  /** Holds back everything that the server sends after the next commit. */
  holdAtCommit(): void;
  /** Cuts all connections; new ones are passed on as before. */
  cut(): void;
  close(): void;
}

/** Passes on bytes between a client and a server, until it has to hold back those of the server. */
async function startDeafProxy(host: string, port: number): Promise<DeafProxy> {
  const sockets = new Set<Socket>();
  let isWaitingForCommit = false;
  let isHolding = false;
  const server = createServer((client) => {
    const upstream = connect(port, host);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        (socket === client ? upstream : client).destroy();
      });
    }
    client.on('data', (bytes) => {
      isHolding ||= isWaitingForCommit && bytes.includes('COMMIT');
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (!isHolding) client.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    isHolding = false;
    isWaitingForCommit = false;
  };
  return {
    port: (server.address() as AddressInfo).port,
    holdAtCommit() {
      isWaitingForCommit = true;
    },
    cut,
    close() {
      server.close();
      cut();
    },
  };
}

const saysSafe = /Send it again as it is; that is safe/;
const claimsNothing = /nothing (?:of it )?(?:is|was) stored|not stored/i;

test('the 500 for an unconfirmed commit does not claim that nothing was stored', async (t) => {
  const postgres = await testServer();
  const { url, drop } = await postgres.newDatabase();
  t.after(drop);
  const direct = new URL(url);
  const proxy = await startDeafProxy(direct.hostname, Number(direct.port));
  t.after(() => proxy.close());
  const proxied = new URL(url);
  proxied.port = String(proxy.port);
  const headgate = await startHeadgate(proxied.href);
  t.after(() => headgate.kill());
  const { key } = await headgate.newKey();
  const api = apiOf(headgate.url, key);
  const ask = (sql: string) => postgres.ask(direct.pathname.slice(1), sql);
  const shop = leastRecord('shops');
  assert.equal((await api.upload('shops', [shop])).status, 200);

  const tag = leastRecord('tags');
  proxy.holdAtCommit();
  const uploading = api.upload('tags', [tag]);
  await waitUntil('the upload is committed', async () => (await ask('SELECT FROM tags')).length === 1);
  proxy.cut();
  const { status, text, body } = await uploading;
  assert.equal(status, 500, text);
  const { data } = body.batches[0]!;
  for (const said of [data.message, data.error ?? '', ...data.errors.map(({ message }) => message)]) {
    assert.match(said, saysSafe);
    assert.doesNotMatch(said, claimsNothing);
  }
  assert.equal((await api.read('tags', idOf('tags', tag))).status, 200);
  const again = await api.upload('tags', [tag]);
  assert.equal(again.status, 200, again.text);
  assert.equal(again.body.batches[0]!.data.counts.unchanged, 1);

  const interaction = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: idOf('shops', shop),
    event_timestamp: 1_700_000_000,
  };
  // After this the server knows the shop, and only the write uses the store.
  assert.equal((await api.record(interaction)).status, 201);
  proxy.holdAtCommit();
  const recording = api.record<RefusalBody>(interaction);
  await waitUntil('it is committed', async () => (await ask('SELECT FROM interactions')).length === 2);
  proxy.cut();
  const recorded = await recording;
  assert.equal(recorded.status, 500, recorded.text);
  // Without a key a retry is recorded twice, so it must not be called safe.
  assert.doesNotMatch(recorded.text, claimsNothing);
  assert.match(recorded.body.message, /send it again as it is\. With an Idempotency-Key it is recorded once/);
});
