// Starts a real PgBouncer for tests, in front of this process's PostgreSQL, on a free port and in its own folder. It is
// removed when the process ends, however it ends.

import { spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { isThorough } from '../test-thoroughness.ts';
import { freePort, type TestServer, unprivilegedUser } from './test-server.ts';

export type PoolMode = 'session' | 'transaction' | 'statement';

export interface TestPooler {
  /** The URL that leads to the same database through the pooler. */
  urlOf(database: string): string;
}

/**
 * Few, so that clients share them and a client's next transaction runs in a session with the settings of another
 * client.
 */
const SERVER_CONNECTIONS = 3;
const START_TIMEOUT_MS = 30_000;
const STEP_MS = 20;

/** Debian installs it in /usr/sbin, which is not on the PATH of other users. */
const lookup = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };

/** Returns whether PgBouncer is installed. Throws if it is not and HEADGATE_TEST_ALL forbids skipping tests. */
export function hasPooler(): boolean {
  const isThere = spawnSync('sh', ['-c', 'command -v pgbouncer'], { env: lookup }).status === 0;
  if (!isThere && isThorough) {
    throw new Error('this machine has no pgbouncer, and HEADGATE_TEST_ALL is 1');
  }
  return isThere;
}

export async function startPooler(server: TestServer, mode: PoolMode): Promise<TestPooler> {
  const user = unprivilegedUser();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pgbouncer-'));
  const port = await freePort();
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${server.port} user=postgres password=${server.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${mode === 'session' ? 50 : SERVER_CONNECTIONS}
max_client_conn = 200
`,
  );
  if (user !== null) {
    chownSync(folder, user.uid, user.gid);
    chownSync(join(folder, 'pgbouncer.ini'), user.uid, user.gid);
  }
  // The shell briefly outlives this process: when its input ends, it stops the pooler and removes the folder.
  const watcher = spawn(
    'sh',
    [
      '-c',
      'pgbouncer --quiet "$1/pgbouncer.ini" & cat >/dev/null; kill $! 2>/dev/null; wait; rm -rf "$1"',
      'sh',
      folder,
    ],
    { ...user, cwd: folder, env: lookup, detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
  );
  watcher.unref();
  (watcher.stdin as unknown as { unref(): void }).unref();
  const urlOf = (database: string): string => `postgres://postgres@127.0.0.1:${port}/${database}`;
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const client = new pg.Client({ connectionString: urlOf('postgres') });
    client.on('error', () => {});
    try {
      await client.connect();
      return { urlOf };
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
      await sleep(STEP_MS);
    } finally {
      await client.end();
    }
  }
}
