// The processes that a process has started.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export async function childrenOf(parent: number): Promise<readonly number[]> {
  const found = await statesOfChildren(parent);
  return found.filter(({ state }) => !state.startsWith('Z')).map(({ pid }) => pid);
}

/** Resolves to the children that a signal has stopped. */
export async function stoppedChildrenOf(parent: number): Promise<readonly number[]> {
  const found = await statesOfChildren(parent);
  return found.filter(({ state }) => state.startsWith('T')).map(({ pid }) => pid);
}

async function statesOfChildren(parent: number): Promise<{ readonly pid: number; readonly state: string }[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,stat=']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/) as [string, string, string])
    .filter(([, ppid]) => Number(ppid) === parent)
    .map(([pid, , state]) => ({ pid: Number(pid), state }));
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
