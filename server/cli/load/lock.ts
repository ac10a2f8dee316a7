// Prevents two processes from running the same load at once. A lock is a file whose name contains the process id. The
// lock of a process that has ended is deleted.

import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.ts';

export interface Lock {
  release(): void;
}

/** A lock that another process holds. */
export interface Held {
  readonly pid: number;
  readonly path: string;
}

/**
 * Takes the lock of a load, or returns the lock that another process holds. If two processes try at the same time, it
 * can happen that neither gets the lock, but never that both do.
 */
export function takeLock(folder: string, loadId: string): Lock | Held {
  makeFolder(folder);
  const path = join(folder, lockName(loadId, process.pid));
  writeFileSync(path, '');
  const release = (): void => rmSync(path, { force: true });
  const held = heldByAnother(folder, loadId);
  if (held === null) return { release };
  release();
  return held;
}

/** Returns the lock of another process that runs the load, or null if there is none. */
export function heldByAnother(folder: string, loadId: string): Held | null {
  for (const name of readdirSync(folder)) {
    const pid = Number(/\.(\d+)\.lock$/.exec(name)?.[1]);
    if (name !== lockName(loadId, pid) || pid === process.pid) continue;
    const path = join(folder, name);
    if (isRunning(pid)) return { pid, path };
    rmSync(path, { force: true });
  }
  return null;
}

function lockName(loadId: string, pid: number): string {
  return `.load-${loadId}.${pid}.lock`;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM means that the process exists, but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
