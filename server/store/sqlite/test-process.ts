// Starts another process, for tests in which several processes use one file.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';

/** Runs module code that may import this folder's modules by `./name.ts`, with `args` in `process.argv`. */
export function startProcess(code: string, ...args: string[]): ChildProcessByStdio<null, Readable, null> {
  const withAddresses = code.replaceAll(
    /'(\.[^']*\.ts)'/g,
    (_, path) => `'${new URL(path, import.meta.url)}'`,
  );
  return spawn(process.execPath, ['--eval', withAddresses, '--', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Resolves, once the process has ended, with what it printed and its exit code or signal. */
export async function endOf(
  child: ReturnType<typeof startProcess>,
): Promise<{ readonly printed: string; readonly ending: number | string | null }> {
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  const ending = await new Promise<number | string | null>((resolve) => {
    child.on('close', (code, signal) => resolve(signal ?? code));
  });
  return { printed, ending };
}
