// Installs the peers, the services that Headgate is compared with. They come from npm and go into a folder outside the
// checkout. Each pinned version is installed once and kept for later runs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Peer {
  readonly name: string;
  /** This is part of the folder's name, so change it whenever a package or an override changes. */
  readonly version: string;
  /** The packages with exact versions. Install scripts are not run, so the packages must include their binaries. */
  readonly packages: Readonly<Record<string, string>>;
  /** Exact versions of dependencies, which replace the versions that the packages require. */
  readonly overrides?: Readonly<Record<string, string>>;
}

/** The folder with the packages in `node_modules`, or the reason why they could not be installed. */
export type Installed = { readonly folder: string } | { readonly reason: string };

const INSTALL_TIMEOUT_MS = 10 * 60_000;
/** This file is written last, so a folder without it is an incomplete installation. */
const MARKER = 'installed';
const SHOWN_OUTPUT_CHARACTERS = 500;

export function peerFolder({ name, version }: Peer): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(cache, 'headgate-bench', `${name}-${version}`);
}

export async function installPeer(peer: Peer): Promise<Installed> {
  const folder = peerFolder(peer);
  if (existsSync(join(folder, MARKER))) return { folder };
  try {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const { packages: dependencies, overrides = {} } = peer;
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({ private: true, dependencies, overrides }, null, 2),
    );
    await npmInstall(folder);
    await writeFile(join(folder, MARKER), '');
    return { folder };
  } catch (error) {
    return { reason: `${peer.name} ${peer.version} could not be installed: ${(error as Error).message}` };
  }
}

async function npmInstall(folder: string): Promise<void> {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];
  const [program, ...first] = npmCommand();
  const npm = spawn(program, [...first, 'install', '--prefix', folder, ...flags], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: INSTALL_TIMEOUT_MS,
  });
  let output = '';
  const listen = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  npm.stdout.on('data', listen);
  npm.stderr.on('data', listen);
  const [code, signal] = (await once(npm, 'close')) as [number | null, NodeJS.Signals | null];
  if (signal !== null)
    throw new Error(`npm was ended by ${signal}; it has ${INSTALL_TIMEOUT_MS / 60_000} minutes`);
  if (code !== 0)
    throw new Error(
      `npm ended with ${code}: ${output.trim().replaceAll(/\s+/g, ' ').slice(0, SHOWN_OUTPUT_CHARACTERS)}`,
    );
}

/**
 * Returns the command of the npm that runs this script, so that packages are installed with this Node. Without one,
 * returns the npm on the PATH.
 */
function npmCommand(): [string, ...string[]] {
  const { npm_execpath: script } = process.env;
  return script === undefined ? ['npm'] : [process.execPath, script];
}
