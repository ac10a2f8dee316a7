// The processes that a process has started.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export async function childrenOf(parent: number): Promise<readonly number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,stat=']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/) as [string, string, string])
    .filter(([, ppid, state]) => Number(ppid) === parent && !state.startsWith('Z'))
    .map(([pid]) => Number(pid));
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
