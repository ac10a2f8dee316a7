import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { attachStore, openStore } from '../open-store.ts';
import { StoreUnavailable, StoreUnusable } from '../store.ts';
import { recordRow } from '../test-rows.ts';
import { reportOnce } from './open-postgres-store.ts';
import { type OwnTestServer, startTestServer, type TestDatabase } from './test-server.ts';

let server: OwnTestServer;
let database: TestDatabase;

before(async () => {
  server = await startTestServer();
  database = await server.newDatabase();
});
after(() => database.drop());

async function reasonOf(url: string, kind: typeof StoreUnusable | typeof StoreUnavailable): Promise<string> {
  const startMs = performance.now();
  const error = await openStore(url).then(
    () => assert.fail('the database was opened'),
    (reason: unknown) => reason,
  );
  assert.ok(performance.now() - startMs < 6000, 'opening took too long to fail');
  assert.ok(error instanceof kind, String(error));
  assert.ok(!error.message.includes('\n') && !/secret/.test(error.message), error.message);
  return error.message;
}

test('whoever opens a database is told once about each step that takes long', () => {
  const reported: string[] = [];
  const onProgress = reportOnce((sentence) => reported.push(sentence));
  const doing = 'waiting for another process to migrate the database';
  for (const elapsedMs of [2000, 9000]) onProgress({ doing, elapsedMs, detail: null });
  assert.deepEqual(reported, []);
  for (const elapsedMs of [10_000, 11_000]) onProgress({ doing, elapsedMs, detail: null });
  onProgress({ doing: 'building an index', elapsedMs: 20_000, detail: null });
  assert.deepEqual(reported, [
    'still waiting for another process to migrate the database; the database cannot be used before that is done',
    'still building an index; the database cannot be used before that is done',
  ]);
});

describe('a database that cannot be opened is refused in one sentence', () => {
  test('because the password is wrong', async () => {
    const message = await reasonOf(database.url.replace(server.password, 'secret'), StoreUnusable);
    assert.match(message, /cannot be used: the password of the role postgres is wrong$/);
  });

  test('because no password is given', async () => {
    const message = await reasonOf(database.url.replace(`:${server.password}`, ''), StoreUnusable);
    assert.match(message, /the server asks for a password; give one$/);
    const othersSql = 'SELECT pid FROM pg_stat_activity WHERE client_port > 0 AND pid <> pg_backend_pid()';
    const deadlineMs = performance.now() + 5000;
    while ((await server.ask('postgres', othersSql)).length > 0) {
      assert.ok(performance.now() < deadlineMs, 'a connection is left, which waits for the password');
      await sleep(20);
    }
  });

  test('because the database does not exist', async () => {
    const message = await reasonOf(server.urlOf('nowhere'), StoreUnusable);
    assert.match(
      message,
      /^the PostgreSQL database nowhere at .* there is no such database; create it first$/,
    );
  });

  test('because no server listens', async () => {
    const message = await reasonOf('postgres://u:secret@127.0.0.1:1/app', StoreUnavailable);
    assert.match(message, /^the PostgreSQL database app at 127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED/);
  });

  test('because no server listens at any address of a host name', async () => {
    const message = await reasonOf('postgres://u:secret@localhost:1/app', StoreUnavailable);
    assert.match(message, /cannot be reached: .*ECONNREFUSED/);
  });

  test('because the name of the server is unknown', async () => {
    const message = await reasonOf('postgres://u:secret@nowhere.invalid/app', StoreUnavailable);
    assert.match(message, /cannot be reached: .*nowhere\.invalid/);
  });

  test('because the server does not respond', async (t) => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const { port } = silent.address() as { port: number };
    const message = await reasonOf(`postgres://u:secret@127.0.0.1:${port}/app`, StoreUnavailable);
    assert.match(message, /cannot be reached: /);
  });

  test('because the server offers no TLS', async () => {
    const message = await reasonOf(`${database.url}?sslmode=require`, StoreUnusable);
    assert.match(message, /the server offers no TLS, which sslmode=require asks for$/);
  });

  test('because it is read-only', async () => {
    const own = await server.newDatabase();
    const name = new URL(own.url).pathname.slice(1);
    await server.ask(name, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const message = await reasonOf(own.url, StoreUnavailable);
    assert.match(message, /cannot serve: cannot execute CREATE TABLE in a read-only transaction/);
    await own.drop();
  });
});

describe('a server with TLS', () => {
  let folder: string;
  let authority: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-certificate-'));
    authority = join(folder, 'server.crt');
    const key = join(folder, 'server.key');
    execFileSync(
      'openssl',
      [
        ...[
          'req',
          '-x509',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-nodes',
          '-days',
          '2',
        ],
        ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
        ...['-out', authority, '-keyout', key],
      ],
      { stdio: 'ignore' },
    );
    for (const [name, file] of [
      ['server.crt', authority],
      ['server.key', key],
    ] as const) {
      // The server writes the files itself, so that they belong to the user that it runs as.
      const content = readFileSync(file).toString('base64');
      const command = `base64 -d > ${name} && chmod 600 ${name}`;
      await server.ask('postgres', `COPY (SELECT '${content}') TO PROGRAM '${command}'`);
    }
    await server.ask('postgres', 'ALTER SYSTEM SET ssl = on');
    await server.ask('postgres', 'SELECT pg_reload_conf()');
  });
  after(async () => {
    await server.ask('postgres', 'ALTER SYSTEM RESET ssl');
    await server.ask('postgres', 'SELECT pg_reload_conf()');
    rmSync(folder, { recursive: true });
  });

  const onHost = (host: string, query: string): string =>
    `${database.url.replace('127.0.0.1', host)}${query.replace('AUTHORITY', authority)}`;

  const reached: readonly { readonly host: string; readonly query: string; readonly isEncrypted: boolean }[] =
    [
      { host: '127.0.0.1', query: '', isEncrypted: true },
      { host: '127.0.0.1', query: '?sslmode=prefer', isEncrypted: true },
      { host: '127.0.0.1', query: '?sslmode=disable', isEncrypted: false },
      { host: '127.0.0.1', query: '?sslmode=require', isEncrypted: true },
      { host: '127.0.0.1', query: '?sslmode=verify-ca&sslrootcert=AUTHORITY', isEncrypted: true },
      { host: 'localhost', query: '?sslmode=verify-full&sslrootcert=AUTHORITY', isEncrypted: true },
    ];
  for (const { host, query, isEncrypted } of reached) {
    test(`is reached ${isEncrypted ? 'with' : 'without'} TLS at ${host}${query}`, async () => {
      const store = await openStore(onHost(host, `${query}${query === '' ? '?' : '&'}application_name=tls`));
      const attached = await attachStore(store.handle());
      await Promise.all([store.ping(), attached.existing(1, 'tags', [randomUUID()])]);
      const sessions = await server.ask(
        'postgres',
        `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tls'`,
      );
      assert.deepEqual(sessions, [{ ssl: isEncrypted }, { ssl: isEncrypted }]);
      await Promise.all([store.close(), attached.close()]);
    });
  }

  test('is refused with verify-full if its certificate is for another name', async () => {
    const url = onHost('127.0.0.1', '?sslmode=verify-full&sslrootcert=AUTHORITY');
    assert.match(await reasonOf(url, StoreUnusable), /its certificate is not accepted: .*127\.0\.0\.1/);
  });

  test('is refused with verify-full if no trusted authority has signed its certificate', async () => {
    const url = onHost('localhost', '?sslmode=verify-full');
    assert.match(await reasonOf(url, StoreUnusable), /its certificate is not accepted: self-signed/);
  });
});

describe('an address with several hosts', () => {
  let own: TestDatabase;
  let standby: OwnTestServer;

  before(async () => {
    own = await server.newDatabase();
    standby = await startTestServer({}, server.password);
    await standby.ask('postgres', `CREATE DATABASE ${own.name}`);
    await (await openStore(own.url.replace(`:${server.port}/`, `:${standby.port}/`))).close();
  });
  after(() => own.drop());

  const through = (...ports: readonly number[]): string =>
    own.url.replace(/127\.0\.0\.1:\d+/, ports.map((port) => `127.0.0.1:${port}`).join(','));
  const restart = async (role: 'primary' | 'standby'): Promise<void> => {
    await standby.kill();
    await standby.start(role);
  };
  const untilServed = async (ping: () => Promise<void>): Promise<void> => {
    for (const deadlineMs = performance.now() + 10_000; ; await sleep(20)) {
      const error = await ping().catch((reason: unknown) => reason);
      if (error === undefined) return;
      assert.ok(error instanceof StoreUnavailable && performance.now() < deadlineMs, String(error));
    }
  };

  test('uses the first host that responds and accepts writes', async () => {
    await restart('standby');
    for (const ports of [
      [1, server.port],
      [standby.port, server.port],
      [1, standby.port, server.port],
    ]) {
      const store = await openStore(through(...ports));
      const attached = await attachStore(store.handle());
      const { organisation } = (await store.createOrganisation(`through ${ports}`, `id ${ports}`, 1))!;
      const upload = {
        organisation,
        type: 'tags',
        batches: [[recordRow('tags')]],
        idempotencyRecord: null,
        entry: null,
      } as const;
      assert.equal((await attached.write(upload)).kind, 'written');
      await Promise.all([store.close(), attached.close()]);
    }
  });

  test('is refused if no host accepts writes, and so is a single host that must accept them', async () => {
    await restart('standby');
    const expected = new RegExp(`127\\.0\\.0\\.1:${standby.port} is a read-only standby`);
    assert.match(await reasonOf(through(1, standby.port), StoreUnavailable), expected);
    const alone = `${through(standby.port)}?target_session_attrs=read-write`;
    assert.match(await reasonOf(alone, StoreUnavailable), expected);
  });

  test('switches to the second host if the first becomes a standby, and back', async () => {
    await restart('primary');
    const store = await openStore(through(standby.port, server.port));
    assert.ok(await store.createOrganisation('on the first', 'first', 1));
    await restart('standby');
    await untilServed(store.ping);
    assert.ok(await store.createOrganisation('on the other', 'other', 1));
    const shown = (await store.organisations()).map(({ name }) => name);
    assert.ok(shown.includes('on the other') && !shown.includes('on the first'), String(shown));
    await restart('primary');
    await server.ask('postgres', `ALTER DATABASE ${own.name} WITH ALLOW_CONNECTIONS false`);
    await server.ask(
      'postgres',
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${own.name}'`,
    );
    await untilServed(store.ping);
    assert.deepEqual(
      (await store.organisations()).map(({ name }) => name),
      ['on the first'],
    );
    await store.close();
  });
});
