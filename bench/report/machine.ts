// What the run was measured on, as far as it bears on speed, and nothing that names the machine or its user.

import { execFile } from 'node:child_process';
import { readFile, statfs } from 'node:fs/promises';
import os from 'node:os';
import { promisify } from 'node:util';

export interface Machine {
  readonly cpu: string;
  /** That this process may use. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly architecture: string;
  readonly kernel: string;
  /** Of the disk that holds the stores; null where the system does not tell cheaply. */
  readonly fileSystem: string | null;
}

/** From linux/magic.h. A store on tmpfs never waits for a disk, so the name belongs in the report. */
const fileSystems: ReadonlyMap<number, string> = new Map([
  [0xef53, 'ext2/3/4'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x2fc12fc1, 'zfs'],
  [0xf2f52010, 'f2fs'],
  [0x794c7630, 'overlayfs'],
  [0x01021994, 'tmpfs'],
  [0x6969, 'nfs'],
  [0x01021997, '9p'],
  [0x65735546, 'fuse'],
]);

/** `storesFolder`: where the measured stores are kept. */
export async function thisMachine(storesFolder: string): Promise<Machine> {
  return {
    cpu: os.cpus()[0]?.model.trim() || 'unknown',
    cores: os.availableParallelism(),
    memoryBytes: memoryBytes(),
    architecture: process.arch,
    kernel: kernelOf(os.type(), os.release()),
    fileSystem: await fileSystemOf(storesFolder),
  };
}

export interface GivenVersions {
  /** As the server tells it; left out when no PostgreSQL took part. */
  readonly PostgreSQL?: string;
  readonly [name: string]: string | undefined;
}

export function versionsOf(given: GivenVersions = {}): Record<string, string> {
  const versions = { 'Node.js': process.versions.node, SQLite: process.versions.sqlite, ...given };
  return Object.fromEntries(
    Object.entries(versions).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** With the commit, and a plus where something was changed since; the package's version alone where git does not know. */
export async function headgateVersion(): Promise<string> {
  const folder = new URL('../../', import.meta.url);
  const { version } = JSON.parse(await readFile(new URL('server/package.json', folder), 'utf8')) as {
    readonly version: string;
  };
  const git = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)('git', args, { cwd: folder })).stdout.trim();
  try {
    const commit = await git('rev-parse', '--short', 'HEAD');
    const changed = await git('status', '--porcelain', '--', ':!bench/results');
    return `${version} (${commit}${changed === '' ? '' : '+'})`;
  } catch {
    return version;
  }
}

/** The version only: what follows it is chosen by whoever built the kernel, and may name a machine. */
export function kernelOf(type: string, release: string): string {
  return `${type} ${/^\d+(\.\d+)*/.exec(release)?.[0] ?? ''}`.trimEnd();
}

function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}

async function fileSystemOf(folder: string): Promise<string | null> {
  // Elsewhere the number is another one, or changes from release to release.
  if (process.platform !== 'linux') return null;
  const { type } = await statfs(folder);
  return fileSystems.get(type) ?? `0x${type.toString(16)}`;
}
