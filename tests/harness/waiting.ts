// Waits for another process, without guessing how long it takes.

import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isThorough } from '../../server/store/test-thoroughness.ts';

const PATIENCE_MS = 30_000;
const TRY_EVERY_MS = 5;

export async function waitUntil(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error(`waited in vain until ${what}`);
    await sleep(TRY_EVERY_MS);
  }
}

export async function exitCodeOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

export async function takesConnections(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    // Connections that were waiting when the server stopped listening are reset.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ECONNREFUSED' && code !== 'ECONNRESET') throw error;
    return false;
  } finally {
    socket.destroy();
  }
}

/** Returns whether this machine has the program. Throws if it is missing and no test may be skipped. */
export async function hasProgram(name: string): Promise<boolean> {
  return promisify(execFile)('sh', ['-c', `command -v ${name}`]).then(
    () => true,
    () => {
      if (isThorough) throw new Error(`this machine has no ${name}, and HEADGATE_TEST_ALL is 1`);
      return false;
    },
  );
}
