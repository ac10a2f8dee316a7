// Describes what affects speed on the machine of the run. The description does not identify the machine or its user.

import { execFile } from 'node:child_process';
import { readFile, statfs } from 'node:fs/promises';
import os from 'node:os';
import { promisify } from 'node:util';

export interface Machine {
  readonly cpu: string;
  /** The cores that this process may use. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly architecture: string;
  readonly kernel: string;
  /** The file system of the stores, or null if the machine does not run Linux. */
  readonly fileSystem: string | null;
}

/** Numbers from linux/magic.h. The file system is reported because a store on tmpfs never waits for a disk. */
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

/** `storesFolder` is the folder of the measured stores. */
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
  /** The version that the PostgreSQL server reports. Omitted if PostgreSQL was not measured. */
  readonly PostgreSQL?: string;
  readonly [name: string]: string | undefined;
}

export function versionsOf(given: GivenVersions = {}): Record<string, string> {
  const versions = { 'Node.js': process.versions.node, SQLite: process.versions.sqlite, ...given };
  return Object.fromEntries(
    Object.entries(versions).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/**
 * Returns Headgate's version and the commit, with a plus if there are uncommitted changes. Without git, returns only
 * the version.
 */
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

/**
 * Returns the name and version number of the kernel. Leaves out the rest of the release, because the builder of the
 * kernel chooses it and it may identify a machine.
 */
export function kernelOf(type: string, release: string): string {
  return `${type} ${/^\d+(\.\d+)*/.exec(release)?.[0] ?? ''}`.trimEnd();
}

function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}

async function fileSystemOf(folder: string): Promise<string | null> {
  // On other systems the file systems have other numbers, or numbers that change between releases.
  if (process.platform !== 'linux') return null;
  const { type } = await statfs(folder);
  return fileSystems.get(type) ?? `0x${type.toString(16)}`;
}
