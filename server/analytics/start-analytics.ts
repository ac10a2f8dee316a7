// Starts the analytics process.

import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { settledWithin } from '../settled-within.ts';
import { type AnalyticsSetup, SETUP_VARIABLE } from './analytics-orders.ts';

/** How long to wait for the last line of a process that has ended. */
const LAST_LINE_WITHIN_MS = 200;

export interface EndedProcess {
  /** Null if a signal ended the process, or if it could not be started. */
  readonly code: number | null;
  /** The last line that it printed, which says why it could not start. */
  readonly lastLine: string;
}

/** Starts the process, which ends at once if another one runs. */
export function startAnalytics(
  setup: AnalyticsSetup,
  log: (message: string) => void,
): { readonly ended: Promise<EndedProcess>; kill(): void } {
  mkdirSync(setup.folder, { recursive: true, mode: 0o700 });
  const program = fileURLToPath(new URL('./analytics-process.ts', import.meta.url));
  const env = { ...process.env, [SETUP_VARIABLE]: JSON.stringify(setup) };
  const child = spawn(process.execPath, [program], {
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  child.unref();
  let lastLine = 'it ended when it was started';
  createInterface(child.stderr!).on('line', (line) => {
    lastLine = line;
    log(line);
  });
  (child.stderr as unknown as { unref(): void }).unref();
  const { promise: ended, resolve } = Promise.withResolvers<EndedProcess>();
  child.once('error', ({ message }) => resolve({ code: null, lastLine: message }));
  const closed = new Promise((resolve) => child.once('close', resolve));
  child.once('exit', async (code, signal) => {
    // Replica processes have the same pipe, and may end later.
    await settledWithin(closed, LAST_LINE_WITHIN_MS);
    if (code !== 0) log(`the analytics process ended unexpectedly (${signal ?? `exit code ${code}`})`);
    resolve({ code, lastLine });
  });
  return { ended, kill: () => void child.kill('SIGKILL') };
}
