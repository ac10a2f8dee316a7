// A real Headgate for tests: the real executable as a process of its own, on a database in a new folder.

import { type ChildProcess, execFile, type PromiseWithChild, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { issueKey } from '../../server/access/keys.ts';
import { createOrganisation } from '../../server/access/organisations.ts';
import { parseScopes } from '../../server/access/scopes.ts';
import { Failure } from '../../server/failure.ts';
import type { Organisation } from '../../server/store/organisations.ts';
import { type Keys, openKeys } from '../../server/store/test-keys.ts';

const executable = new URL('../../server/bin/headgate.js', import.meta.url).pathname;
/** The first line, of the form `#!/usr/bin/env -S VARIABLE=VALUE node --flag`. */
const [, , ...launching] = readFileSync(executable, 'utf8').split('\n', 1)[0]!.split(' ');
const nodeAt = launching.indexOf('node');
/** Its flags, for use with the Node that runs the tests instead of the first one in PATH. */
export const nodeFlags: readonly string[] = launching.slice(nodeAt + 1);
/** The variables that it sets. */
const launchedWith: Environment = Object.fromEntries(
  launching.slice(0, nodeAt).map((assignment) => assignment.split('=') as [string, string]),
);
const START_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 60_000;

export interface IssuedKey {
  readonly key_id: string;
  readonly key: string;
  readonly org_id: string;
}

export interface Headgate {
  readonly url: string;
  readonly database: string;
  readonly process: ChildProcess;
  /** Returns what it has written to standard output and standard error so far. */
  output(): string;
  /** Runs a command on the same database and returns the JSON that it prints. */
  command<Result = unknown>(...args: string[]): Promise<Result>;
  /** Creates an organisation and a key with all scopes, or with the given ones. */
  newKey(name?: string, scopes?: readonly string[]): Promise<IssuedKey>;
  /** Issues another key, with the given scopes, to an organisation. */
  anotherKey(orgId: string, scopes: readonly string[]): Promise<IssuedKey>;
  /** Sends SIGTERM and resolves to the exit code once the output is complete. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL, which leaves no time to finish anything. */
  kill(): Promise<void>;
}

/** Counted for all servers together, because several may use one database, one after the other. */
let organisations = 0;

export type Environment = Readonly<Record<string, string>>;

/** No rate limit, for tests that are not about it. */
const quiet: Environment = { HEADGATE_RATE_LIMIT: 'off' };

export async function newDatabaseFolder(): Promise<{ folder: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }) };
}

/**
 * Starts on the given database and, unless HEADGATE_PORT is given, on a free port. Resolves when it can respond. Its
 * log is a part of `output`, or goes to the given descriptor.
 */
export async function startHeadgate(
  database: string,
  environment: Environment = {},
  logTo: number | 'pipe' = 'pipe',
): Promise<Headgate> {
  const env = { ...process.env, ...launchedWith, ...quiet, ...environment, HEADGATE_DATABASE: database };
  const [program, ...args] = commandLine(['serve', '--port', environment.HEADGATE_PORT ?? '0']);
  const child = spawn(program!, args, {
    env,
    stdio: ['ignore', 'pipe', logTo],
  });
  let output = '';
  let isListening = false;
  const started = Promise.withResolvers<string>();
  const listen = (chunk: Buffer): void => {
    output += chunk.toString();
    if (isListening) return;
    const url = /^listening on (\S+)$/m.exec(output)?.[1];
    if (url === undefined) return;
    isListening = true;
    started.resolve(url);
  };
  child.stdout!.on('data', listen);
  child.stderr?.on('data', listen);
  const exited = once(child, 'exit');
  const closed = once(child, 'close');
  void exited.then(([code]) => started.reject(new Error(`headgate ended with ${code} at start: ${output}`)));
  const timer = setTimeout(() => {
    started.reject(new Error(`headgate did not start: ${output}`));
    child.kill('SIGKILL');
  }, START_TIMEOUT_MS);
  const url = await started.promise.finally(() => clearTimeout(timer));

  const command = async <Result>(...args: string[]): Promise<Result> =>
    JSON.parse((await runHeadgate([...args, '--json'], env)).stdout) as Result;
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  };
  return {
    url,
    database,
    process: child,
    output: () => output,
    command,
    newKey: (name = `organisation ${process.pid}-${++organisations}`, scopes = []) =>
      newKeyIn(database, name, scopes),
    anotherKey: (orgId, scopes) => anotherKeyIn(database, orgId, scopes),
    async stop() {
      const code = await end('SIGTERM');
      await closed;
      return code;
    },
    async kill() {
      await end('SIGKILL');
    },
  };
}

/** Does the same as `orgs create` and `keys issue`, but at once, because hundreds of tests need a key. */
async function newKeyIn(database: string, name: string, scopes: readonly string[]): Promise<IssuedKey> {
  const keys = await openKeys(database);
  try {
    const made = await createOrganisation(keys, name, Date.now());
    if (made.kind !== 'created') throw new Error(`no organisation ${name}`);
    return await issueIn(keys, made.organisation, scopes);
  } finally {
    await keys.close();
  }
}

async function anotherKeyIn(database: string, orgId: string, scopes: readonly string[]): Promise<IssuedKey> {
  const keys = await openKeys(database);
  try {
    const found = (await keys.organisations()).find((organisation) => organisation.orgId === orgId);
    return await issueIn(keys, found!, scopes);
  } finally {
    await keys.close();
  }
}

async function issueIn(
  keys: Keys,
  { organisation, orgId }: Organisation,
  scopes: readonly string[],
): Promise<IssuedKey> {
  const parsed = parseScopes(scopes);
  if (parsed instanceof Failure) throw new Error(`no key with ${scopes}`);
  const wish = { organisation, orgId, scopes: parsed, name: null, expiresAtMs: null, nowMs: Date.now() };
  const { apiKey, key } = await issueKey(keys, wish);
  return { key_id: key.keyId, key: apiKey, org_id: orgId };
}

/** Runs the executable once. Rejects, with its exit code and what it printed, if it fails. */
export function runHeadgate(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): PromiseWithChild<{ stdout: string; stderr: string }> {
  const [program, ...rest] = commandLine(args);
  return promisify(execFile)(program!, rest, { env, timeout: COMMAND_TIMEOUT_MS });
}

/** Returns the program and arguments that run the executable, for tests that start it themselves. */
export function commandLine(args: readonly string[]): readonly string[] {
  return [process.execPath, ...nodeFlags, executable, ...args];
}
