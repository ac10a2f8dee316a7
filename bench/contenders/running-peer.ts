// Runs a peer as a contender: starts the peer's server as a process, and sends the requests that set it up.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Contender, RunningContender } from './contender.ts';

export type NewDatabase = () => Promise<{ readonly url: string; drop(): Promise<void> }>;

/**
 * `start` registers with `cleanUp` how to remove everything that it creates. `cleanUp` runs after the measurement, or
 * if `start` fails.
 */
export function peerContender(
  name: string,
  start: (cleanUp: AsyncDisposableStack) => Promise<RunningContender['upload']>,
): Contender {
  return {
    name,
    async start(rowsPresent) {
      if (rowsPresent !== 0) {
        throw new Error(`${name} is measured on an empty store only, not on one with ${rowsPresent} records`);
      }
      await using cleanUp = new AsyncDisposableStack();
      const upload = await start(cleanUp);
      const made = cleanUp.move();
      return { upload, stop: () => made.disposeAsync() };
    },
  };
}

export interface PeerCommand {
  readonly name: string;
  /** The script and its arguments. */
  readonly script: readonly [string, ...string[]];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

const START_TIMEOUT_MS = 90_000;
const STOP_TIMEOUT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 10_000;
const STEP_MS = 50;
const SHOWN_OUTPUT_CHARACTERS = 4000;

interface Watched {
  /** Resolves when the process ends: to its exit code, or to null if a signal ended it. */
  readonly ended: Promise<number | null>;
  hasEnded(): boolean;
  output(): string;
  kill(signal: NodeJS.Signals): void;
}

function watch({ script, folder, env }: PeerCommand): Watched {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...script], {
    cwd: folder,
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const listen = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-SHOWN_OUTPUT_CHARACTERS);
  };
  child.stdout.on('data', listen);
  child.stderr.on('data', listen);
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal);
  const killAtExit = (): void => kill('SIGKILL');
  process.once('exit', killAtExit);
  const ended = once(child, 'close').then(([code]) => {
    process.removeListener('exit', killAtExit);
    return code as number | null;
  });
  return {
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    output: () => output,
    kill,
  };
}

/** Runs a command of the peer. If the command fails, rejects with its output. */
export async function runPeerCommand(command: PeerCommand): Promise<void> {
  const child = watch(command);
  const timer = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS);
  const code = await child.ended.finally(() => clearTimeout(timer));
  if (code !== 0) {
    throw new Error(
      `${command.name}: ${command.script.slice(1).join(' ')} ended with ${code}: ${child.output()}`,
    );
  }
}

/**
 * Starts the peer's server. Resolves when a request to `readyUrl` succeeds. `cleanUp` ends the process, if necessary by
 * force, and waits until it has ended.
 */
export async function startPeer(
  command: PeerCommand,
  readyUrl: string,
  cleanUp: AsyncDisposableStack,
): Promise<void> {
  const child = watch(command);
  cleanUp.defer(async () => {
    if (!child.hasEnded()) child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await child.ended.finally(() => clearTimeout(timer));
  });
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(readyUrl))) {
    if (child.hasEnded()) throw new Error(`${command.name} ended at its start: ${child.output()}`);
    if (performance.now() > deadlineMs) throw new Error(`${command.name} did not start: ${child.output()}`);
    await sleep(STEP_MS);
  }
}

/** Returns whether the server is ready. While it starts, it refuses connections, responds too late, or fails. */
async function answers(url: string): Promise<boolean> {
  try {
    const { ok } = await fetch(url, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    return ok;
  } catch {
    return false;
  }
}

/** Sends a POST request if `sent` is given, otherwise a GET request. Rejects if the response is not a success. */
export async function ask<Answer>(
  url: string,
  headers: Readonly<Record<string, string>>,
  sent?: unknown,
): Promise<Answer> {
  const response = await fetch(url, {
    headers: { ...headers, 'Content-Type': 'application/json' },
    ...(sent !== undefined && { method: 'POST', body: JSON.stringify(sent) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return (text === '' ? null : JSON.parse(text)) as Answer;
}
