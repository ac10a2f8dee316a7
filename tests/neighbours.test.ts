// One organisation attacks with what its key allows; another one must not be affected.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { brotliCompressSync, constants } from 'node:zlib';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf } from './harness/api.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { scrape } from './harness/observed.ts';
import { bearer, connectRaw, type RawConnection } from './harness/raw-connection.ts';
import { leastRecord } from './harness/records.ts';
import { residentMemory } from './harness/resident-memory.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const MEMORY_LIMIT_MB = 600;
/** Generous, because other tests run at the same time. Without fair scheduling it was minutes. */
const WAIT_LIMIT_MS = 3000;
const STALL_TIMEOUT_MS = 2000;
const CONNECTIONS = times(16, 10);
const MOST_CONNECTIONS = 60;
const IDLE_CONNECTIONS = 300;
/** Together the names must be more than the limit leaves besides what a single one takes. */
const LONG_NAMES = times(15, 8);
const UPLOADS_DURING_ATTACK = times(8, 4);
/** Too many for the thread that takes small requests. */
const RECORDS_OF_LARGE_UPLOAD = 300;
const CONNECTIONS_THAT_READ_NOTHING = times(10, 4);
const LOOKS = times(30, 10);
/** Promised for every key. */
const REVOKED_WITHIN_MS = 5000;

const brotli = { 'Content-Encoding': 'br' };

function packed(text: string): Uint8Array {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 2, [constants.BROTLI_PARAM_LGWIN]: 24 };
  return brotliCompressSync(text, { params });
}

function headOf(path: string, key: string, contentLength: number, more = ''): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${contentLength}\r\n${more}\r\n`
  );
}

describe('while another organisation attacks', () => {
  let headgate: Headgate;
  let remove: () => Promise<void>;
  let greedy: Api;
  let modest: Api;
  let greedyKey: string;
  let secondGreedyKey: string;

  before(async () => {
    const { folder, remove: removeFolder } = await newDatabaseFolder();
    remove = removeFolder;
    headgate = await startHeadgate(`${folder}/headgate.db`, {
      HEADGATE_STALL_TIMEOUT: `${STALL_TIMEOUT_MS}ms`,
      HEADGATE_MAX_IN_FLIGHT: '64MiB',
      HEADGATE_LOG_LEVEL: 'error',
    });
    const issued = await headgate.newKey('greedy');
    greedyKey = issued.key;
    secondGreedyKey = (await headgate.anotherKey(issued.org_id, [])).key;
    greedy = apiOf(headgate.url, greedyKey);
    modest = apiOf(headgate.url, (await headgate.newKey('modest')).key);
  });

  after(async () => {
    await headgate.kill();
    await remove();
  });

  /** Repeats the work on several connections. Returns the longest wait of the other organisation meanwhile. */
  const longestWaitMs = async (work: () => Promise<unknown>, connections = CONNECTIONS): Promise<number> => {
    let isOver = false;
    const working = Array.from({ length: connections }, async () => {
      while (!isOver) await work();
    });
    await sleep(200);
    const waitsMs: number[] = [];
    for (let upload = 0; upload < UPLOADS_DURING_ATTACK; upload++) {
      for (const records of [1, RECORDS_OF_LARGE_UPLOAD]) {
        const startedAtMs = performance.now();
        const { status, text } = await modest.upload(
          'tags',
          Array.from({ length: records }, () => leastRecord('tags')),
        );
        assert.equal(status, 200, text);
        waitsMs.push(performance.now() - startedAtMs);
      }
    }
    isOver = true;
    await Promise.all(working);
    return Math.max(...waitsMs);
  };

  const assertUnharmed = async (): Promise<void> => {
    const memory = await residentMemory(headgate.process.pid!);
    assert.ok(memory !== null, 'the server has ended');
    assert.ok(memory.peakMb < MEMORY_LIMIT_MB, `the server took ${memory.peakMb} MB`);
    assert.doesNotMatch(headgate.output(), /started again/);
  };

  test('long unknown names do not accumulate in memory', async () => {
    for (const path of ['/v1/data/tags', '/user-interactions']) {
      for (let request = 0; request < LONG_NAMES; request++) {
        const name = `${request}`.padStart(30_000_000, 'k');
        const body = packed(path === '/v1/data/tags' ? `{"records":[{"${name}":1}]}` : `{"${name}":1}`);
        assert.equal((await greedy.request(path, { body, headers: brotli })).status, 400);
      }
    }
    await assertUnharmed();
  });

  const rejected: Readonly<Record<string, string | Uint8Array>> = {
    'wrong field names': JSON.stringify({
      records: Array.from({ length: 5000 }, () => ({ tag: randomUUID(), nam: 'x' })),
    }),
    'empty objects': JSON.stringify({ records: new Array(5000).fill({}) }),
    'small bodies that unpack to 9.7 MB': packed(
      JSON.stringify({ records: new Array(5000).fill({ tag_id: 'x'.repeat(1900) }) }),
    ),
    'compressed arrays of 16 million zeros': packed(`{"records":[[${'0,'.repeat(15_999_999)}0]]}`),
  };
  for (const [what, body] of Object.entries(rejected)) {
    test(`rejected uploads do not delay an organisation: ${what}`, async () => {
      const headers: Record<string, string> = typeof body === 'string' ? {} : brotli;
      const upload = () => greedy.request('/v1/data/tags', { body, headers });
      const startedAtMs = performance.now();
      await upload();
      const tookMs = performance.now() - startedAtMs;
      // One after the other, they take the server longer than the limit.
      const connections = Math.min(Math.ceil((2 * WAIT_LIMIT_MS) / tookMs), MOST_CONNECTIONS);
      const waitMs = await longestWaitMs(upload, body.length < 1000 ? connections : CONNECTIONS);
      assert.ok(waitMs < WAIT_LIMIT_MS, `another organisation waited ${waitMs} ms`);
      await assertUnharmed();
    });
  }

  test('valid uploads at full speed do not delay an organisation', async () => {
    const waitMs = await longestWaitMs(() =>
      greedy.upload(
        'tags',
        Array.from({ length: 2000 }, () => leastRecord('tags')),
      ),
    );
    assert.ok(waitMs < WAIT_LIMIT_MS, `another organisation waited ${waitMs} ms`);
  });

  test('unread responses are bounded, and their connections closed', async () => {
    const body = packed(
      JSON.stringify({ records: Array.from({ length: 5000 }, () => ({ ['\u0001'.repeat(100)]: 1 })) }),
    );
    const { hostname, port } = new URL(headgate.url);
    const sockets: Socket[] = [];
    for (let connection = 0; connection < CONNECTIONS_THAT_READ_NOTHING; connection++) {
      const socket = connect(Number(port), hostname).on('error', () => {});
      await once(socket, 'connect');
      sockets.push(socket);
      socket.pause();
      // Together the responses are larger than what the kernel takes for a connection.
      for (let request = 0; request < 6; request++) {
        socket.write(
          headOf('/v1/data/tags', greedyKey, body.byteLength, 'Content-Encoding: br\r\n'),
          'latin1',
        );
        socket.write(body);
      }
    }
    const startedAtMs = performance.now();
    const { status } = await modest.upload('tags', [leastRecord('tags')]);
    assert.equal(status, 200);
    assert.ok(performance.now() - startedAtMs < WAIT_LIMIT_MS);
    // These sockets read nothing, so they cannot see that the server has closed them: check the server's side.
    await waitUntil('the server has closed the connections', async () => {
      return (await openOnServer(sockets)) === 0;
    });
    for (const socket of sockets) socket.destroy();
    await assertUnharmed();
  });

  test('stalled bodies of two keys leave room for an organisation, and are cut off', async () => {
    const { hostname, port } = new URL(headgate.url);
    const stalled = new Set<Socket>();
    const stallFour = async (): Promise<void> => {
      if (stalled.size > 0) return;
      while (stalled.size < 4) {
        const socket = connect(Number(port), hostname).on('error', () => {});
        const key = stalled.size % 2 === 0 ? greedyKey : secondGreedyKey;
        socket.write(headOf('/v1/data/tags', key, 30_000_000), 'latin1');
        socket.write(Buffer.alloc(8_000_000, ' '));
        stalled.add(socket.resume().on('close', () => stalled.delete(socket)));
      }
      // An upload that arrived together with them could be accepted instead of one of them.
      await sleep(STALL_TIMEOUT_MS / 5);
    };
    const text = JSON.stringify({ records: [leastRecord('tags')] });
    const upload = (api: Api, bytes: number) => api.request('/v1/data/tags', { body: text.padEnd(bytes) });
    await waitUntil('the stalled bodies are all that the organisation may hold', async () => {
      // On a busy machine the first ones may have been ended by now.
      await stallFour();
      return (await upload(greedy, 8_000_000)).status === 503;
    });
    assert.equal((await upload(modest, 10_000_000)).status, 200);
    await waitUntil('all of them are ended', () => stalled.size === 0);
    assert.equal(
      (await upload(greedy, 30_000_000)).status,
      200,
      'the bytes of the stalled bodies were not released',
    );
  });

  test('a stalled body gets 408, and its connection is closed', async () => {
    const { hostname, port } = new URL(headgate.url);
    // A client that would keep its side of the connection open forever.
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    let received = '';
    socket.on('data', (bytes) => (received += bytes)).on('error', () => {});
    socket.write(`${headOf('/v1/data/tags', greedyKey, 100)}{`, 'latin1');
    await waitUntil('the body is refused', () => received.includes('\r\n\r\n'));
    assert.match(received, /^HTTP\/1\.1 408 /);
    assert.match(received, /\r\nConnection: close\r\n/i);
    await waitUntil('the server has closed the connection', async () => {
      return (await openOnServer([socket])) === 0;
    });
    socket.destroy();
  });
});

describe('while a client does not read or finish', () => {
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_METRICS_PORT: '0' });

  test('a client with many idle connections does not wait longer than others', async (t) => {
    const { headgate } = running;
    const [{ key: greedyKey }, { key }] = [await headgate.newKey(), await headgate.newKey()];
    const idle = await Promise.all(Array.from({ length: IDLE_CONNECTIONS }, () => connectRaw(headgate.url)));
    t.after(() => {
      for (const connection of idle) connection.destroy();
    });
    const ask = async (connection: RawConnection): Promise<void> => {
      connection.send({ path: '/v1/data/tags?limit=1', headers: bearer(key) });
      assert.equal((await connection.answer()).status, 200);
    };
    for (const connection of idle) await ask(connection);
    const head =
      `POST /v1/data/tags HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer ${greedyKey}\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const request = `${head}${`48\r\n${' '.repeat(72)}\r\n`.repeat(1600)}2\r\n{}\r\n0\r\n\r\n`;
    await sendAgain(t, headgate.url, [request], 64);
    const { medianMs, allMs } = await waitsFor((at) => ask(idle[at]!));
    assert.ok(medianMs < 1000, `it waited for ${allMs} ms`);
  });

  test('health checks do not wait for those of other addresses', async (t) => {
    const { url } = running.headgate;
    const many = Array.from({ length: 120 }, (_, at) => `X-${at}: a\r\n`).join('');
    const request = `GET /readyz HTTP/1.1\r\nHost: here\r\n${many}\r\n`;
    const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: '127.0.0.2' });
    t.after(() => agent.destroy());
    const ask = async (): Promise<void> => {
      const [response] = (await once(get(`${url}/readyz`, { agent }), 'response')) as [IncomingMessage];
      assert.equal(response.statusCode, 200);
      await once(response.resume(), 'end');
    };
    await ask();
    await sendAgain(t, url, new Array<string>(8).fill(request), 250);
    const { medianMs, allMs } = await waitsFor(ask);
    assert.ok(medianMs < 250, `it waited for ${allMs} ms`);
  });

  test('responses that nobody reads are few, and the others are made once those are read', async (t) => {
    const { headgate } = running;
    const { key } = await headgate.newKey();
    const { hostname, port } = new URL(headgate.url);
    const REQUESTS = 3;
    // Each response has almost 3 MB.
    const record = JSON.stringify(
      Object.fromEntries(Array.from({ length: 5 }, (_, at) => [`${at}${'\u2028'.repeat(100)}`, 1])),
    );
    const body = packed(`{"records":[${new Array(5000).fill(record).join()}]}`);
    const head = 'HTTP/1.1 400';
    let responses = 0;
    const sockets = Array.from({ length: CONNECTIONS }, () => {
      const socket = connect(Number(port), hostname).on('error', () => {});
      let end = '';
      socket.on('data', (data) => {
        const received = end + data.toString('latin1');
        if (received.includes(head)) responses++;
        // The next piece may bring the rest of a head.
        end = received.slice(1 - head.length);
      });
      socket.pause();
      // Together the responses are larger than what the kernel takes for a connection.
      for (let request = 0; request < REQUESTS; request++) {
        socket.write(headOf('/v1/data/tags', key, body.byteLength, 'Content-Encoding: br\r\n'), 'latin1');
        socket.write(body);
      }
      return socket;
    });
    let mostBytes = 0;
    const heldBytes = async (): Promise<number> =>
      (await scrape(headgate)).get('headgate_in_flight_bytes') ?? Number.NaN;
    await waitUntil('responses are held', async () => (await heldBytes()) > 1_000_000);
    for (let looks = 0; looks < LOOKS; looks++) {
      mostBytes = Math.max(mostBytes, await heldBytes());
      await sleep(200);
    }
    t.diagnostic(`${mostBytes} bytes in flight`);
    assert.ok(mostBytes > 1_000_000 && mostBytes < 24 * 1024 * 1024, `${mostBytes} bytes in flight`);
    for (const socket of sockets) socket.resume();
    await waitUntil('all responses arrive', () => responses === CONNECTIONS * REQUESTS);
    for (const socket of sockets) socket.destroy();
  });

  test('a request is refused if its key is revoked while the body arrives', async () => {
    const { headgate } = running;
    const { key, key_id: keyId, org_id: orgId } = await headgate.newKey();
    const other = await headgate.anotherKey(orgId, []);
    const connection = await connectRaw(headgate.url);
    const record = leastRecord('tags');
    const finish = await connection.sendAllButTheLastByte({
      path: '/v1/data/tags',
      headers: bearer(key),
      body: JSON.stringify({ records: [record] }),
    });
    await headgate.command('keys', 'revoke', keyId);
    await sleep(REVOKED_WITHIN_MS);
    finish();
    const { status } = await connection.answer();
    connection.destroy();
    assert.equal(status, 401);
    assert.equal((await apiOf(headgate.url, other.key).read('tags', record.tag_id as string)).status, 404);
  });
});

/** Sends the same requests again and again on each connection, from a thread of its own. */
const SEND_AGAIN = `
  const { connect } = require('node:net');
  const { parentPort, workerData: { port, requests, connections } } = require('node:worker_threads');
  let allResponses = 0;
  const open = () => {
    let responses = 0;
    const socket = connect(port, '127.0.0.1', () => socket.write(requests.join('')));
    socket.on('error', () => {}).on('close', open).on('data', (data) => {
      responses += data.toString('latin1').split('HTTP/1.1').length - 1;
      if (responses < requests.length) return;
      responses = 0;
      socket.write(requests.join(''));
      if (++allResponses === connections) parentPort.postMessage('sending');
    });
  };
  for (let opened = 0; opened < connections; opened++) open();
`;

/** Sends the requests on many connections until the test ends. */
async function sendAgain(
  t: TestContext,
  url: string,
  requests: readonly string[],
  connections: number,
): Promise<void> {
  const workerData = { port: Number(new URL(url).port), requests, connections };
  const sender = new Worker(SEND_AGAIN, { eval: true, workerData });
  t.after(() => sender.terminate());
  await once(sender, 'message');
}

/** Returns how long each request takes, one after the other. */
async function waitsFor(
  ask: (at: number) => Promise<void>,
): Promise<{ readonly medianMs: number; readonly allMs: string }> {
  const waitsMs: number[] = [];
  while (waitsMs.length < times(20, 10)) {
    const startedAtMs = performance.now();
    await ask(waitsMs.length);
    waitsMs.push(performance.now() - startedAtMs);
  }
  const [medianMs] = waitsMs.toSorted((one, other) => one - other).slice(waitsMs.length / 2);
  return { medianMs: medianMs!, allMs: waitsMs.map(Math.round).join(', ') };
}

/** Returns how many of these clients have a connection that the server has not closed, according to the kernel. */
async function openOnServer(clients: readonly Socket[]): Promise<number> {
  const lines = (await readFile('/proc/net/tcp', 'utf8')).trim().split('\n').slice(1);
  const clientPorts = clients.map(({ localPort }) => localPort);
  return lines.filter((line) => {
    const [, , remote, , , , , , , inode] = line.trim().split(/\s+/);
    const remotePort = Number.parseInt(remote!.split(':')[1]!, 16);
    // A closed connection belongs to no process, also while the client has not closed its side.
    return clientPorts.includes(remotePort) && inode !== '0';
  }).length;
}
