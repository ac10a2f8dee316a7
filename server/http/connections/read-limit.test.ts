import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type NetConnectOpts, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { times } from '../../store/test-thoroughness.ts';
import { newCertificate, withoutOpenssl } from '../test-certificate.ts';
import { limitConnections } from './per-connection-limits.ts';
import { ReadLimit } from './read-limit.ts';

/** Without it, a connection that is never read would keep the tests from ending. */
const timeout = 60_000;
const BUSY_CONNECTIONS = times(300, 100);
const OTHER = 2;
const IDLE = 3;
const BUSY = 4;
/** Requests without a key belong to nobody. */
const NOBODY = -1;
const TINY_RECORD_CONNECTIONS = times(60, 20);
const TINY_RECORDS = 2000;

function headOf(owner: number, more = ''): string {
  return `POST / HTTP/1.1\r\nHost: a\r\nX-Owner: ${owner}\r\n${more}\r\n`;
}

/** Returns a request, without its last chunk. */
function inSmallChunks(chunks: number): string {
  return `${headOf(1, 'Transfer-Encoding: chunked\r\n')}${`48\r\n${' '.repeat(72)}\r\n`.repeat(chunks)}`;
}

const smallChunks = inSmallChunks(800);
/** Node reads all of it at once. */
const readAtOnce = `${inSmallChunks(500)}0\r\n\r\n`;

/** Sends bodies without end on four connections, from a thread of its own. */
const SEND_WITHOUT_PAUSE = `
  const { connect } = require('node:net');
  const { parentPort, workerData: { port, first, head, chunks } } = require('node:worker_threads');
  for (let opened = 0; opened < 4; opened++) {
    const socket = connect(port);
    const send = () => {
      while (socket.write(chunks));
      socket.once('drain', send);
    };
    socket.on('error', () => {}).write(first);
    socket.once('data', () => {
      socket.resume().write(head);
      send();
    });
  }
  setTimeout(() => parentPort.postMessage('sending'), 500);
`;

/**
 * Opens `AGAIN_CONNECTIONS` connections from a thread of its own. Each sends a request, waits for its response, and is
 * opened again.
 */
const AGAIN_CONNECTIONS = 100;
const OPEN_AGAIN = `
  const { parentPort, workerData: { port, isTls, connections, request } } = require('node:worker_threads');
  const { connect } = require(isTls ? 'node:tls' : 'node:net');
  let answers = 0;
  const open = () => {
    const socket = connect({ port, rejectUnauthorized: false });
    socket.on(isTls ? 'secureConnect' : 'connect', () => socket.write(request));
    socket.on('error', () => {}).on('close', open).on('data', () => {
      socket.destroy();
      if (++answers === connections) parentPort.postMessage('all have an answer');
    });
  };
  for (let opened = 0; opened < connections; opened++) open();
`;

interface Transport {
  newServer(handle: RequestListener): Server;
  open(options: NetConnectOpts): Socket;
  readonly opened: string;
  readonly skip: string | boolean;
}

const http: Transport = { newServer: createServer, open: connect, opened: 'connect', skip: false };
const https: Transport = {
  newServer: (handle: RequestListener) => createTlsServer(newCertificate(), handle),
  open: (options): Socket => connectTls({ ...options, rejectUnauthorized: false }),
  opened: 'secureConnect',
  skip: withoutOpenssl,
};

interface Ground {
  readonly port: number;
  /** The server's side of all connections. */
  readonly accepted: readonly Socket[];
  /** Returns how many requests of others the server has read completely. */
  completed(): number;
  /** Resolves when the connection is open. By default, its address is that of all others. */
  connected(localAddress?: string): Promise<Socket>;
  /** Sends a request, waits for its response, and returns how many bytes the server read before it handled it. */
  ask(socket: Socket): Promise<number>;
}

async function groundOf(t: TestContext, { newServer, open, opened }: Transport): Promise<Ground> {
  const accepted: Socket[] = [];
  const sockets: Socket[] = [];
  let bytesAtHandling = 0;
  let completed = 0;
  const bytesRead = (): number => accepted.reduce((sum, tcp) => sum + tcp.bytesRead, 0);
  const server: Server = newServer((request, response) => {
    if (request.headers['x-owner'] === String(OTHER)) bytesAtHandling = bytesRead();
    else request.on('end', () => completed++);
    request.resume().on('end', () => response.end('ok'));
  });
  // Opening all connections on a busy machine can take longer than Node's timeout for idle connections.
  server.keepAliveTimeout = 0;
  server.on('connection', (tcp: Socket) => accepted.push(tcp));
  const noteUnparsed = limitConnections(server, ({ headers }) => Number(headers['x-owner']));
  server.on('clientError', (_, socket) => {
    noteUnparsed(socket as Socket);
    socket.destroy();
  });
  await once(server.listen(0), 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    accepted,
    completed: () => completed,
    async connected(localAddress) {
      const socket = open({ port, host: '127.0.0.1', localAddress });
      sockets.push(socket.on('error', () => {}));
      await once(socket, opened);
      return socket;
    },
    async ask(socket) {
      const bytesBefore = bytesRead();
      await answerTo(headOf(OTHER), socket);
      return bytesAtHandling - bytesBefore;
    },
  };
}

/** Rejects if the connection is closed instead. `once` would wait without end. */
function answerTo(request: string, socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error('the connection was closed'));
    if (socket.destroyed) fail();
    socket.once('close', fail).once('data', () => {
      socket.removeListener('close', fail);
      resolve();
    });
    socket.write(request);
  });
}

function assertFew(bytesRead: number, sent: string): void {
  const sentBytes = BUSY_CONNECTIONS * sent.length;
  assert.ok(bytesRead < sentBytes / 2, `${bytesRead} of ${sentBytes} bytes were read before`);
}

/**
 * Fails unless a connection that was used before is read soon while all others have this data at once. Before, its
 * organisation may have opened other connections.
 */
async function assertReadSoon(
  t: TestContext,
  transport: Transport,
  sent: string,
  openedBefore = 0,
): Promise<void> {
  const { accepted, connected, ask } = await groundOf(t, transport);
  for (let opened = 0; opened < openedBefore; opened++) {
    const socket = await connected();
    await ask(socket);
    socket.destroy();
  }
  const other = await connected();
  await ask(other);
  const busy = await Promise.all(Array.from({ length: BUSY_CONNECTIONS }, connected));
  while (accepted.length <= openedBefore + BUSY_CONNECTIONS) await setImmediate();
  for (const socket of busy) socket.write(sent);
  assertFew(await ask(other), sent);
}

test('a used connection does not wait for all others with small chunks', { timeout }, (t) =>
  assertReadSoon(t, http, smallChunks),
);

test(
  'a used connection does not wait for all others with small chunks over HTTPS',
  {
    skip: https.skip,
    timeout,
  },
  (t) => assertReadSoon(t, https, smallChunks),
);

test(
  'an organisation that has opened many connections over HTTPS does not wait longer than others',
  { skip: https.skip, timeout },
  (t) => assertReadSoon(t, https, smallChunks, BUSY_CONNECTIONS),
);

/**
 * Opens a TLS connection. Returns its TCP connection, and the TLS records of the text, each with one character. They can
 * be sent at once, unlike what is written to a TLS connection, which has large records then.
 */
async function tinyRecords(t: TestContext, port: number, text: string): Promise<[Socket, Buffer]> {
  const tcp = connect(port).on('error', () => {});
  t.after(() => tcp.destroy());
  let records: Buffer[] | null = null;
  const passing = new Duplex({
    read() {},
    write(bytes: Buffer, _, done) {
      if (records === null) tcp.write(bytes);
      else records.push(bytes);
      done();
    },
  });
  tcp.on('data', (bytes) => passing.push(bytes));
  const client = connectTls({ socket: passing, rejectUnauthorized: false }).on('error', () => {});
  await once(client, 'secureConnect');
  records = [];
  for (const character of text) await new Promise((done) => client.write(character, done));
  return [tcp, Buffer.concat(records)];
}

test('a used connection does not wait for all others with TLS records of one byte that make no request', {
  skip: https.skip,
  timeout,
}, async (t) => {
  const { port, connected, ask } = await groundOf(t, https);
  const other = await connected();
  await ask(other);
  const unfinished = `GET / HTTP/1.1\r\nX-Long: ${'x'.repeat(TINY_RECORDS)}`;
  const busy: [Socket, Buffer][] = [];
  while (busy.length < TINY_RECORD_CONNECTIONS) busy.push(await tinyRecords(t, port, unfinished));
  for (const [tcp, records] of busy) tcp.write(records);
  const bytesRead = await ask(other);
  const sentBytes = busy.reduce((sum, [, records]) => sum + records.length, 0);
  assert.ok(bytesRead < sentBytes / 2, `${bytesRead} of ${sentBytes} bytes were read before`);
});

test('a connection that changes its TLS keys again and again is closed', {
  skip: https.skip,
  timeout,
}, async (t) => {
  const { port, accepted } = await groundOf(t, https);
  const client = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${port}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  t.after(() => client.kill());
  client.stdin.on('error', () => {});
  let changes = 0;
  while (accepted[0]?.destroyed !== true && changes < 200) {
    // OpenSSL changes the keys if it reads this letter at the beginning of its input.
    client.stdin.write('k\n');
    changes++;
    await sleep(20);
  }
  assert.ok(changes < 200, 'it is still open');
});

/** Fails unless only the clients that have sent nothing are considered stalled after the server could not read in time. */
async function assertOnlySilentStall(t: TestContext, { newServer, open }: Transport): Promise<void> {
  const silent = 10;
  const stallMs = 250;
  /** Reading all of them takes about four times as long. */
  const readingMs = (4 * stallMs) / BUSY_CONNECTIONS;
  const body = ' '.repeat(2048);
  const requests: IncomingMessage[] = [];
  const server = newServer((request) => requests.push(request));
  limitConnections(server, () => 1);
  await once(server.listen(0), 'listening');
  const { port } = server.address() as AddressInfo;
  const clients = Array.from({ length: BUSY_CONNECTIONS }, () => open({ port }).on('error', () => {}));
  t.after(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  for (const [at, client] of clients.entries()) {
    client.write(headOf(1, `X-Silent: ${at < silent}\r\nContent-Length: ${body.length}\r\n`));
  }
  while (requests.length < clients.length) await setImmediate();
  const stalled = requests.map((request) => {
    request.on('data', () => {
      const startedAtMs = performance.now();
      while (performance.now() - startedAtMs < readingMs);
    });
    return new Promise<boolean>((resolve) => {
      request.on('timeout', () => resolve(true)).on('end', () => resolve(false));
    });
  });
  for (const client of clients.slice(silent)) client.write(body);
  for (const { socket } of requests) socket.setTimeout(stallMs);
  assert.deepEqual(
    await Promise.all(stalled),
    requests.map(({ headers }) => headers['x-silent'] === 'true'),
  );
}

test('a client that waits to be read is not considered stalled', { timeout }, (t) =>
  assertOnlySilentStall(t, http),
);

test(
  'a client that waits to be read over HTTPS is not considered stalled',
  { skip: https.skip, timeout },
  (t) => assertOnlySilentStall(t, https),
);

test('a connection that waits too long to be read is considered stalled', { timeout }, async (t) => {
  const stallMs = 20;
  const server = createServer((_, response) => response.end('ok'));
  server.setTimeout(stallMs);
  new ReadLimit(server, stallMs);
  server.on('connection', () => {
    const startedAtMs = performance.now();
    while (performance.now() - startedAtMs < 2 * stallMs);
  });
  await once(server.listen(0), 'listening');
  t.after(() => server.close());
  const client = connect((server.address() as AddressInfo).port).on('error', () => {});
  t.after(() => client.destroy());
  await assert.rejects(answerTo(headOf(1), client), /closed/);
});

test('a new connection does not wait for all others', { timeout }, async (t) => {
  const { connected, ask } = await groundOf(t, http);
  for (let opened = 0; opened < BUSY_CONNECTIONS; opened++) {
    void connected().then((socket) => socket.write(smallChunks));
  }
  assertFew(await ask(await connected()), smallChunks);
});

test('new connections do not wait for all that another address has opened before', { timeout }, async (t) => {
  const { connected, ask } = await groundOf(t, http);
  const others = await Promise.all(Array.from({ length: BUSY_CONNECTIONS }, () => connected()));
  for (const other of others) other.write(smallChunks);
  // Only one of them is the newest.
  const clients = [await connected('127.0.0.2'), await connected('127.0.0.2'), await connected('127.0.0.2')];
  const read = await Promise.all(clients.map(ask));
  for (const bytes of read) assertFew(bytes, smallChunks);
});

test('a used connection is read again and again while others send without pause', { timeout }, async (t) => {
  const { port, connected, ask } = await groundOf(t, http);
  const other = await connected();
  await ask(other);
  const head = headOf(1, 'Transfer-Encoding: chunked\r\n');
  const chunks = `48\r\n${' '.repeat(72)}\r\n`.repeat(800);
  const sender = new Worker(SEND_WITHOUT_PAUSE, {
    eval: true,
    workerData: { port, first: headOf(1), head, chunks },
  });
  t.after(() => sender.terminate());
  await once(sender, 'message');
  for (let asked = 0; asked < times(40, 15); asked++) {
    const startedAtMs = performance.now();
    await ask(other);
    const tookMs = performance.now() - startedAtMs;
    assert.ok(tookMs < 2000, `it took ${tookMs.toFixed(0)} ms`);
  }
});

/** Fails if used connections wait long while others are accepted and other work takes most of each turn. */
async function assertReadBesideLongTurns(t: TestContext, idle: number): Promise<void> {
  const server = createServer();
  server.keepAliveTimeout = 0;
  const readLimit = new ReadLimit(server);
  server.on('request', ({ socket, headers }, response) => {
    const owner = Number(headers['x-owner']);
    readLimit.requestArrived(socket, () => owner);
    response.on('close', () => readLimit.responded(socket, owner)).end('ok');
  });
  await once(server.listen(0), 'listening');
  const { port } = server.address() as AddressInfo;
  const open = (): Socket => connect(port).on('error', () => {});
  const used = Array.from({ length: 20 }, open);
  const idleOnes = Array.from({ length: idle }, open);
  const opened = [...used, ...idleOnes];
  t.after(() => {
    for (const socket of opened) socket.destroy();
    server.close();
  });
  await Promise.all(idleOnes.map((socket) => answerTo(headOf(IDLE), socket)));
  const askAll = () => Promise.all(used.map((socket) => answerTo(headOf(OTHER), socket)));
  await askAll();
  let isOver = false;
  let turns = 0;
  const working = async (): Promise<void> => {
    for (; !isOver; turns++) {
      opened.push(open());
      const startedAtMs = performance.now();
      while (performance.now() - startedAtMs < 13);
      // The next turn begins before a timer, so that the work is part of it.
      await sleep(0);
    }
  };
  const worked = working();
  const waits: number[] = [];
  while (waits.length < 10) {
    const before = turns;
    await askAll();
    waits.push(turns - before);
  }
  isOver = true;
  await worked;
  // Three are read in each turn. A machine that makes the turns longer has fewer of them.
  const all = waits.reduce((sum, wait) => sum + wait, 0);
  assert.ok(all < 14 * waits.length, `turns until the last response: ${waits.join(', ')}`);
}

for (const idle of [0, 1000]) {
  const name = `used connections do not wait long for ${idle} idle ones, newly accepted ones, and work that takes most of each turn`;
  test(name, { timeout }, (t) => assertReadBesideLongTurns(t, idle));
}

/** Opens connections. Returns a function that sends data on all at once, and one that counts on how many it is read. */
type Opening = (
  t: TestContext,
  ground: Ground,
) => Promise<{ readonly sendAll: () => void; readonly read: () => number }>;

const smallChunksOn: (areUsed: boolean) => Opening =
  (areUsed) =>
  async (_, { connected, accepted, completed }) => {
    const before = accepted.length;
    const sockets = await Promise.all(Array.from({ length: BUSY_CONNECTIONS }, () => connected()));
    if (areUsed) for (const socket of sockets) await answerTo(headOf(BUSY), socket);
    while (accepted.length < before + BUSY_CONNECTIONS) await setImmediate();
    // By then, no connection waits.
    await sleep(50);
    const sendAll = (): void => {
      for (const socket of sockets) socket.write(readAtOnce);
    };
    return { sendAll, read: completed };
  };

const tinyRecordsOnUsed: Opening = async (t, { port, accepted }) => {
  const request = headOf(BUSY);
  const text = `${request}GET / HTTP/1.1\r\nX-Long: ${'x'.repeat(TINY_RECORDS)}`;
  const all: [Socket, Buffer][] = [];
  while (all.length < TINY_RECORD_CONNECTIONS) all.push(await tinyRecords(t, port, text));
  const [[, { length }]] = all as [[Socket, Buffer]];
  const requestBytes = (length / text.length) * request.length;
  for (const [tcp, records] of all) {
    const answered = once(tcp, 'data');
    tcp.write(records.subarray(0, requestBytes));
    await answered;
  }
  const servers = accepted.slice(-all.length);
  const sizeOf = (): number => servers.reduce((sum, socket) => sum + socket.bytesRead, 0);
  const before = sizeOf();
  return {
    sendAll() {
      for (const [tcp, records] of all) tcp.write(records.subarray(requestBytes));
    },
    read: () => (sizeOf() - before) / (length - requestBytes),
  };
};

interface Opened {
  readonly transport: Transport;
  readonly all: number;
  /** The most that may be read in a turn. */
  readonly most: number;
  readonly openBusy: Opening;
}

const openings: Readonly<Record<string, Opened>> = {
  'small chunks on used connections': {
    transport: http,
    all: BUSY_CONNECTIONS,
    // The first turn reads until its time is over, and others may read connections that have not waited.
    most: 40,
    openBusy: smallChunksOn(true),
  },
  'small chunks on new connections': {
    transport: http,
    all: BUSY_CONNECTIONS,
    // They all have to wait after the beginning of their data.
    most: 6,
    openBusy: smallChunksOn(false),
  },
  'TLS records of one byte on used connections': {
    transport: https,
    all: TINY_RECORD_CONNECTIONS,
    most: 10,
    openBusy: tinyRecordsOnUsed,
  },
};
for (const [name, { transport, all, most, openBusy }] of Object.entries(openings)) {
  test(`a turn reads few of many connections behind idle ones: ${name}`, {
    skip: transport.skip,
    timeout,
  }, async (t) => {
    const ground = await groundOf(t, transport);
    const idle = await Promise.all(Array.from({ length: 500 }, () => ground.connected()));
    for (const socket of idle) await answerTo(headOf(IDLE), socket);
    const { sendAll, read } = await openBusy(t, ground);
    const before = read();
    sendAll();
    const inTurns: number[] = [];
    for (let last = before; last < before + all; ) {
      await setImmediate();
      const now = read();
      inTurns.push(now - last);
      last = now;
    }
    assert.ok(
      Math.max(...inTurns) <= most,
      `read in turns: ${inTurns.filter((some) => some > 0).join(', ')}`,
    );
  });
}

test('new connections are accepted soon, although used ones send costly requests without pause', {
  timeout,
}, async (t) => {
  const opening = 200;
  const server = createServer();
  const readLimit = new ReadLimit(server);
  let handled = 0;
  let accepted = 0;
  server.on('connection', () => accepted++);
  server.on('request', ({ socket }, response) => {
    readLimit.requestArrived(socket, () => OTHER);
    handled++;
    const startedAtMs = performance.now();
    while (performance.now() - startedAtMs < 2);
    response.on('close', () => readLimit.responded(socket, OTHER)).end('ok');
  });
  await once(server.listen(0), 'listening');
  const { port } = server.address() as AddressInfo;
  const clients: Socket[] = [];
  t.after(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  const open = (): Socket => {
    const client = connect(port).on('error', () => {});
    clients.push(client);
    return client;
  };
  for (let used = 0; used < 20; used++) {
    const client = open();
    client.on('data', () => client.write(headOf(OTHER))).write(headOf(OTHER));
  }
  while (handled < 200) await setImmediate();
  const acceptedBefore = accepted;
  const handledBefore = handled;
  for (let opened = 0; opened < opening; opened++) open();
  while (accepted < acceptedBefore + opening) await setImmediate();
  const meanwhile = handled - handledBefore;
  assert.ok(meanwhile > 0 && meanwhile < opening, `${meanwhile} requests were handled meanwhile`);
});

const OPENING_CONNECTIONS = 500;
/** Opens connections from a thread of its own, as fast as they are accepted, and resets them. */
const OPEN_WITHOUT_PAUSE = `
  const { connect } = require('node:net');
  const { parentPort, workerData: { port, connections } } = require('node:worker_threads');
  let opened = 0;
  const open = () => {
    const socket = connect(port);
    socket.on('connect', () => {
      socket.resetAndDestroy();
      if (++opened === connections) parentPort.postMessage('opening');
    });
    socket.on('error', () => {}).on('close', open);
  };
  for (let at = 0; at < connections; at++) open();
`;

for (const [name, transport] of Object.entries({ http, https })) {
  test(`a used connection over ${name} does not wait for idle ones while others are opened without pause`, {
    skip: transport.skip,
    timeout,
  }, async (t) => {
    const { port, connected, ask, accepted } = await groundOf(t, transport);
    const used = await Promise.all(Array.from({ length: BUSY_CONNECTIONS }, () => connected()));
    for (const one of used) await ask(one);
    const opener = new Worker(OPEN_WITHOUT_PAUSE, {
      eval: true,
      workerData: { port, connections: OPENING_CONNECTIONS },
    });
    t.after(() => opener.terminate());
    await once(opener, 'message');
    const before = accepted.length;
    let acceptedWhileWaiting = 0;
    for (const one of used.slice(0, 20)) {
      const acceptedBefore = accepted.length;
      await ask(one);
      acceptedWhileWaiting += accepted.length - acceptedBefore;
      await sleep(20);
    }
    assert.ok(accepted.length - before > OPENING_CONNECTIONS, 'others were opened');
    assert.ok(
      acceptedWhileWaiting < 200,
      `${acceptedWhileWaiting} connections were accepted before responses`,
    );
  });
}

test('bodies are hardly read while hundreds of connections wait to be accepted', { timeout }, async (t) => {
  const opening = 2000;
  /** Few enough for any system's backlog. */
  const waiting = 100;
  const sending = 50;
  const pieceMs = 10;
  const body = ' '.repeat(1024 * 1024);
  let accepted = 0;
  let read = 0;
  const server = createServer((request) => {
    request.on('data', () => {
      const startedAtMs = performance.now();
      while (performance.now() - startedAtMs < pieceMs);
      read++;
    });
  });
  server.on('connection', () => accepted++);
  limitConnections(server, () => 1);
  await once(server.listen(0), 'listening');
  const clients: Socket[] = [];
  const open = (): Socket => {
    const client = connect((server.address() as AddressInfo).port).on('error', () => {});
    clients.push(client);
    return client;
  };
  t.after(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  for (let at = 0; at < sending; at++) open().write(headOf(1, `Content-Length: ${body.length}\r\n`) + body);
  while (read < sending) await setImmediate();
  const acceptUntil = async (most: number): Promise<void> => {
    while (accepted < most) {
      while (clients.length - accepted < waiting) open();
      await setImmediate();
    }
  };
  // By then, all bodies wait for their turns.
  await acceptUntil(opening / 2);
  const startedAtMs = performance.now();
  const before = read;
  await acceptUntil(opening);
  const part = ((read - before) * pieceMs) / (performance.now() - startedAtMs);
  assert.ok(part > 0 && part < 0.6, `to read bodies took ${Math.round(part * 100)} % of the time`);
});

test('connections whose organisation changes while they wait do not overtake all others', {
  timeout,
}, async (t) => {
  const waiting = 50;
  const server = createServer();
  server.keepAliveTimeout = 0;
  const readLimit = new ReadLimit(server);
  const handled: number[] = [];
  const changing: Socket[] = [];
  server.on('request', ({ socket, headers }, response) => {
    const owner = Number(headers['x-owner']);
    handled.push(owner);
    if (owner === NOBODY && changing.length < waiting) changing.push(socket);
    readLimit.requestArrived(socket, () => owner);
    if (owner === BUSY) {
      for (const client of clients) client.write(requestOf.get(client)!);
      const startedAtMs = performance.now();
      while (performance.now() - startedAtMs < 20);
      // A turn has 10 ms, so all of them wait now.
      readLimit.dataArrived(socket);
      // An earlier request of another organisation gets its response now.
      for (const one of changing) readLimit.responded(one, 1);
    }
    response.end('ok');
  });
  await once(server.listen(0), 'listening');
  const { port } = server.address() as AddressInfo;
  const clients: Socket[] = [];
  const requestOf = new Map<Socket, string>();
  const connected = async (owner: number): Promise<Socket> => {
    const client = connect(port).on('error', () => {});
    t.after(() => client.destroy());
    requestOf.set(client, headOf(owner));
    await answerTo(headOf(owner), client);
    return client;
  };
  t.after(() => server.close());
  const busy = await connected(IDLE);
  while (clients.length < waiting) clients.push(await connected(NOBODY));
  clients.push(await connected(OTHER));
  handled.length = 0;
  await answerTo(headOf(BUSY), busy);
  while (handled.length <= clients.length) await setImmediate();
  const before = handled.indexOf(OTHER);
  assert.ok(before < waiting / 2, `${before} requests were handled before`);
});

test('a server without connections has no timer', { timeout }, async (t) => {
  const made = t.mock.method(globalThis, 'setInterval').mock;
  const cleared = t.mock.method(globalThis, 'clearInterval').mock;
  // The servers of earlier tests may clear theirs meanwhile.
  const isCleared = (interval: unknown): boolean =>
    cleared.calls.some(({ arguments: [other] }) => other === interval);
  const intervals = (): number => made.calls.filter(({ result }) => !isCleared(result)).length;
  const { accepted, connected, ask } = await groundOf(t, http);
  assert.equal(intervals(), 0);
  const client = await connected();
  await ask(client);
  assert.equal(intervals(), 1);
  client.destroy();
  while (!accepted[0]!.destroyed || intervals() > 0) await setImmediate();
});

for (const [name, transport] of Object.entries({ http, https })) {
  test(`a new connection over ${name} does not wait for others that are opened again and again`, {
    skip: transport.skip,
    timeout,
  }, async (t) => {
    const { port, connected, ask, completed } = await groundOf(t, transport);
    const opener = new Worker(OPEN_AGAIN, {
      eval: true,
      workerData: {
        port,
        isTls: transport === https,
        connections: AGAIN_CONNECTIONS,
        request: readAtOnce,
      },
    });
    t.after(() => opener.terminate());
    await once(opener, 'message');
    // The first ones may be slow, because their code is not compiled yet.
    for (let asked = 0; asked < 10; asked++) await ask(await connected());
    const waits: number[] = [];
    while (waits.length < times(30, 10)) {
      const before = completed();
      await ask(await connected());
      waits.push(completed() - before);
    }
    // Some may be late, because the clients and the server share this thread.
    const [median] = waits.toSorted((one, other) => one - other).slice(waits.length / 2);
    assert.ok(median! < AGAIN_CONNECTIONS / 2, `requests that were completed before: ${waits.join(', ')}`);
  });

  test(`a connection that sends only empty lines over ${name} is closed`, {
    skip: transport.skip,
    timeout,
  }, async (t) => {
    const { connected, accepted } = await groundOf(t, transport);
    const client = await connected();
    // `once` would reject if the connection is reset.
    const closed = new Promise((resolve) => client.once('close', resolve));
    const send = (): void => {
      while (client.writable && client.write('\r\n'.repeat(32 * 1024)));
    };
    client.on('drain', send);
    send();
    await closed;
    assert.ok(accepted[0]!.bytesRead < 32 * 1024 ** 2, `${accepted[0]!.bytesRead} bytes were read`);
  });
}
