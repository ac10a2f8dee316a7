// The amount that a client can send on one connection before other clients are served is limited.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MOST_UNANSWERED_REQUESTS } from '../server/http/connections/per-connection-limits.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { leastRecord } from './harness/records.ts';

const PATIENCE_MS = 20_000;

describe('on one connection', () => {
  let headgate: Headgate;
  let removeDatabase: () => Promise<void>;
  let key: string;

  before(async () => {
    const { database, remove } = await testDatabases[0]!.newDatabase();
    removeDatabase = remove;
    headgate = await startHeadgate(database);
    key = (await headgate.newKey('acme')).key;
  });
  after(async () => {
    await headgate.stop();
    await removeDatabase();
  });

  /** Resolves to everything received, when the connection has ended or `isEnough` returns true. */
  async function send(text: string, isEnough: (received: string) => boolean = () => false): Promise<string> {
    const socket = connect(Number(new URL(headgate.url).port), '127.0.0.1');
    let received = '';
    const ended = new Promise<void>((resolve) => {
      socket.on('close', () => resolve()).on('error', () => {});
      socket.on('data', (chunk) => {
        received += chunk.toString();
        if (isEnough(received)) socket.destroy();
      });
    });
    socket.write(text);
    const isInTime = await Promise.race([ended.then(() => true), sleep(PATIENCE_MS, false)]);
    socket.destroy();
    assert.ok(isInTime, `the connection is still open after: ${received.slice(0, 1000)}`);
    return received;
  }

  const answersIn = (received: string): number => received.split('HTTP/1.1 200').length - 1;
  const livez = 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n';
  const head = (): string =>
    `POST /v1/data/tags HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const chunked = (body: string, chunkBytes: number): string =>
    `${(body.match(new RegExp(`.{1,${chunkBytes}}`, 'gs')) ?? [])
      .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
      .join('')}0\r\n\r\n`;

  test('pipelined requests are answered in order', async () => {
    const received = await send(
      livez.repeat(MOST_UNANSWERED_REQUESTS),
      (text) => answersIn(text) === MOST_UNANSWERED_REQUESTS,
    );
    assert.equal(answersIn(received), MOST_UNANSWERED_REQUESTS);
  });

  test('pipelined requests whose key is not yet known do not deadlock', async () => {
    const { key: unread } = await headgate.newKey('globex');
    const request = `GET /v1/data/shops/8d7ce2ca-5c5b-4ef6-9b1e-3b7d9a0f4c11 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${unread}\r\n\r\n`;
    const received = await send(
      request.repeat(MOST_UNANSWERED_REQUESTS),
      (text) => text.split('HTTP/1.1 404').length - 1 === MOST_UNANSWERED_REQUESTS,
    );
    assert.equal(received.split('HTTP/1.1 404').length - 1, MOST_UNANSWERED_REQUESTS);
  });

  test('too many pipelined requests end the connection', async () => {
    const received = await send(livez.repeat(5000));
    assert.ok(answersIn(received) <= MOST_UNANSWERED_REQUESTS, `${answersIn(received)} answers`);
    assert.equal((await fetch(`${headgate.url}/livez`)).status, 200);
  });

  test('a body in many small chunks is stored', async () => {
    const records = Array.from({ length: 5000 }, () => leastRecord('tags', { name: 'ä'.repeat(10) }));
    const body = Buffer.from(JSON.stringify({ records })).toString('latin1');
    const sent = Buffer.from(head() + chunked(body, 100), 'latin1').toString('latin1');
    const socket = connect(Number(new URL(headgate.url).port), '127.0.0.1');
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString()));
    socket.write(Buffer.from(sent, 'latin1'));
    const deadlineMs = performance.now() + PATIENCE_MS;
    while (!received.includes('"batch":5') && performance.now() < deadlineMs) await sleep(20);
    socket.destroy();
    assert.match(received, /^HTTP\/1\.1 200 /);
    assert.equal(received.match(/1000 created/g)?.length, 5);
  });

  test('a body in chunks of one byte is refused long before its end, and the connection is closed', async () => {
    const received = await send(head() + chunked(' '.repeat(100_000), 1));
    assert.match(received, /^HTTP\/1\.1 400 /);
    assert.match(received, /chunks of less than 64 bytes on average/);
  });
});
