import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import fastify from 'fastify';
import { staticContent } from './cached-content.ts';
import { newCertificate, withoutOpenssl } from './test-certificate.ts';

test('content that could not be generated is generated at the next request, and then cached', async (t) => {
  let attempts = 0;
  const make = async () => {
    attempts++;
    if (attempts === 1) throw new Error('too many open files');
    return { type: 'text/plain', text: `made at attempt ${attempts}` };
  };
  const app = fastify();
  t.after(() => app.close());
  app.get('/', staticContent(make));
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const answers = [await fetch(url), await fetch(url), await fetch(url)];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [500, 200, 200],
  );
  assert.equal(await answers[1]!.text(), 'made at attempt 2');
  assert.equal(await answers[2]!.text(), 'made at attempt 2');
});

test('content that a client does not read is not encrypted as a whole', {
  skip: withoutOpenssl,
}, async (t) => {
  const app = fastify({ https: newCertificate() });
  const text = 'long '.repeat(2_000_000);
  app.get(
    '/',
    staticContent(() => ({ type: 'text/plain', text })),
  );
  const accepted: Socket[] = [];
  app.server.on('secureConnection', (socket) => accepted.push(socket));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  t.after(() => {
    client.destroy();
    return app.close();
  });
  await once(client, 'secureConnect');
  client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await once(client, 'readable');
  await sleep(500);
  const [socket] = accepted;
  assert.ok(socket!.writableLength < 200_000, `${socket!.writableLength} bytes wait to be sent`);

  let received = 0;
  for await (const piece of client) received += piece.length;
  assert.ok(received > text.length, `${received} bytes arrived`);
});
