// Tests the real executable, started as a person or an init system starts it.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import packageJson from '../package.json' with { type: 'json' };

const executable = fileURLToPath(new URL('../bin/headgate.js', import.meta.url));
/** A command that hangs is killed after this time; its exit code is then null. */
const COMMAND_TIMEOUT_MS = 30_000;
const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;

interface Ran {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

interface Place {
  readonly env: Record<string, string>;
  readonly folder: string;
  run(...args: string[]): Promise<Ran>;
}

async function place(t: TestContext): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-executable-'));
  t.after(() => rm(folder, { recursive: true }));
  const env = {
    PATH,
    // With the cache of compiled modules, a server starts in half the time.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
    HEADGATE_DATABASE: join(folder, 'headgate.db'),
    HEADGATE_LOG_LEVEL: 'silent',
  };
  const run = (...args: string[]): Promise<Ran> =>
    new Promise((resolve) => {
      const deadline = { timeout: COMMAND_TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
      const child = execFile(executable, args, { env, cwd: folder, ...deadline }, (_, out, err) =>
        resolve({ exitCode: child.exitCode, out, err }),
      );
    });
  return { env, folder, run };
}

interface Serving {
  readonly child: ChildProcess;
  readonly url: string;
  /** Everything printed before the line with the address. */
  readonly greeting: string;
  readonly ended: Promise<Ran>;
}

async function serve(
  t: TestContext,
  { env, folder }: Place,
  more: Record<string, string> = {},
): Promise<Serving> {
  const child = spawn(executable, ['serve', '--port', '0'], { env: { ...env, ...more }, cwd: folder });
  t.after(() => child.kill('SIGKILL'));
  let out = '';
  let err = '';
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const ended = once(child, 'close').then(([exitCode]) => ({ exitCode, out, err }));
  const listening = new Promise<string>((resolve) => {
    createInterface(child.stdout).on('line', (line) => {
      if (line.startsWith('listening on ')) resolve(line.slice('listening on '.length));
      else out += `${line}\n`;
    });
  });
  const url = await Promise.race([
    listening,
    ended.then((ran) => assert.fail(`the server ended: ${JSON.stringify(ran)}`)),
  ]);
  return { child, url, greeting: out, ended };
}

function statusWith(url: string, key: string): Promise<number> {
  return fetch(`${url}/v1/data/shops`, { headers: { authorization: `Bearer ${key}` } }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status;
    },
  );
}

test('the executable runs by its shebang line and prints its version, without a warning', async (t) => {
  const { run } = await place(t);
  assert.deepEqual(await run('--version'), { exitCode: 0, out: `${packageJson.version}\n`, err: '' });
});

test('with --json, standard output has exactly one JSON value and standard error nothing', async (t) => {
  const { run } = await place(t);
  const made = await run('orgs', 'create', 'acme', '--json');
  assert.deepEqual([made.exitCode, made.err], [0, '']);
  assert.equal(JSON.parse(made.out).name, 'acme');
  assert.equal(made.out, `${JSON.stringify(JSON.parse(made.out))}\n`);
});

test('wrong usage exits with 2 and a failed command with 1, each with one sentence', async (t) => {
  const { run } = await place(t);
  assert.deepEqual(await run('kyes'), {
    exitCode: 2,
    out: '',
    err: 'headgate: there is no command "kyes"; did you mean keys?\n',
  });
  assert.equal((await run('orgs', 'create', 'acme')).exitCode, 0);
  const unknown = await run('keys', 'revoke', '000000000000');
  assert.deepEqual([unknown.exitCode, unknown.out], [1, '']);
  assert.match(unknown.err, /^headgate: there is no key [^\n]+\n$/);
});

test('keys that are issued, rotated and revoked take effect in a running server', async (t) => {
  const at = await place(t);
  const { child, url, ended } = await serve(t, at);
  const issued = JSON.parse((await at.run('keys', 'issue', '--org', 'demo', '--json')).out);
  assert.equal(await statusWith(url, issued.key), 200, 'a new key works at once');
  const rotated = JSON.parse((await at.run('keys', 'rotate', issued.key_id, '--json')).out);
  assert.equal(await statusWith(url, rotated.key), 200);
  assert.equal(await statusWith(url, issued.key), 200, 'the old key works through the overlap');
  await at.run('keys', 'revoke', issued.key_id);
  const deadlineMs = Date.now() + 5000;
  while ((await statusWith(url, issued.key)) !== 401) {
    assert.ok(Date.now() < deadlineMs, 'a revoked key still works after 5 seconds');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(await statusWith(url, rotated.key), 200);

  child.kill('SIGTERM');
  assert.equal((await ended).exitCode, 0);
  const keys = JSON.parse((await at.run('keys', 'list', '--org', 'demo', '--json')).out);
  const used = keys.find(({ key_id }: { key_id: string }) => key_id === rotated.key_id);
  assert.notEqual(used.last_used_at, null, 'the last use is stored');
});

test('Ctrl-C stops a server with exit code 0, also if npm sends the signal a second time', async (t) => {
  const { child, ended } = await serve(t, await place(t));
  child.kill('SIGINT');
  child.kill('SIGINT');
  const { exitCode, err } = await ended;
  assert.deepEqual([exitCode, err], [0, '']);
});

const upload = JSON.stringify({
  records: [{ shop_id: 'b5c0b7a6-9d4c-4a52-8c53-0f3f8a7b1c2d', name: 'Stop', region: 'GB' }],
});

/** Sends an upload with a declared length of 1000 bytes. A shorter `body` leaves it incomplete. */
async function sendUpload(t: TestContext, { url, greeting }: Serving, body: string): Promise<void> {
  const key = /hg_[0-9a-f]{12}_[0-9a-f]{48}/.exec(greeting)![0];
  const { connect } = await import('node:net');
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(
    'POST /v1/data/shops HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
      `Authorization: Bearer ${key}\r\nContent-Length: 1000\r\n\r\n${body}`,
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
}

test('a stop that cannot finish accepted requests in time ends with a sentence, exit code 1', async (t) => {
  const at = await place(t);
  const serving = await serve(t, at, { HEADGATE_SHUTDOWN_TIMEOUT: '500ms' });
  const other = new DatabaseSync(at.env.HEADGATE_DATABASE!);
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  await sendUpload(t, serving, upload.padEnd(1000));
  serving.child.kill('SIGTERM');
  const { exitCode, err } = await serving.ended;
  assert.equal(exitCode, 1);
  assert.match(err, /^headgate: requests in flight did not end within 0\.5 s[^\n]*\n$/);
});

test('a client that stalls does not make a stop fail', async (t) => {
  const serving = await serve(t, await place(t), {
    HEADGATE_SHUTDOWN_TIMEOUT: '10s',
    HEADGATE_LOG_LEVEL: 'warn',
  });
  await sendUpload(t, serving, upload);
  serving.child.kill('SIGTERM');
  const { exitCode, err } = await serving.ended;
  assert.equal(exitCode, 0, err);
  const { level, connections, message } = JSON.parse(err) as Record<string, unknown>;
  assert.deepEqual([level, connections], ['warn', 1]);
  assert.match(String(message), /closed the connections of stalled clients/);
});

test('a second signal ends a server at once, exit code 1', async (t) => {
  const serving = await serve(t, await place(t));
  await sendUpload(t, serving, upload);
  serving.child.kill('SIGTERM');
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.equal(serving.child.exitCode, null, 'the server waits for requests in flight');
  serving.child.kill('SIGTERM');
  assert.equal((await serving.ended).exitCode, 1);
});

test('a port that is taken is reported with one sentence, exit code 1, and not with the work that the server leaves', async (t) => {
  const { env, run } = await place(t);
  env.HEADGATE_LOG_LEVEL = 'warn';
  await run('orgs', 'create', 'acme');
  const database = new DatabaseSync(env.HEADGATE_DATABASE!);
  const insert = database.prepare(
    `INSERT INTO segments (organisation, segment, condition, uses, created_at_ms, saved_at_ms, members, last_seq,
      kept_after_seq) VALUES (1, ?, '{}', '[]', 1, 1, 0, 0, 0)`,
  );
  // The server deletes them one after another, which takes longer than finding out that the port is taken.
  for (let segment = 1; segment <= 100; segment++) insert.run(segment);
  database.close();
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const { exitCode, out, err } = await run('serve', '--port', String(port));
  assert.deepEqual([exitCode, out], [1, '']);
  assert.equal(
    err,
    `headgate: port ${port} on 127.0.0.1 is taken by another program; give another with --port\n`,
  );
});

test('wrong TLS files are reported once, not by every worker', async (t) => {
  const { env, folder, run } = await place(t);
  const missing = join(folder, 'missing.pem');
  Object.assign(env, { HEADGATE_TLS_KEY: missing, HEADGATE_TLS_CERT: missing });
  const nowhere = 'postgres://nobody@127.0.0.1:1/none';
  const { exitCode, err } = await run('serve', '--port', '0', '--workers', '2', '--database', nowhere);
  assert.equal(exitCode, 2);
  assert.match(err, /^headgate: HEADGATE_TLS_CERT names [^\n]+\n$/);
});

test('an unknown HEADGATE_ variable causes a warning, and the server starts', async (t) => {
  const { child, ended } = await serve(t, await place(t), { HEADGATE_PROT: '1' });
  child.kill('SIGTERM');
  const { exitCode, err } = await ended;
  assert.equal(exitCode, 0);
  assert.match(err, /^headgate: warning: HEADGATE_PROT is not a setting [^\n]*HEADGATE_PORT\?\n$/);
});
