// Small disks for tests: a tmpfs in a mount namespace is gone when the process in it is, however that ends.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The flags with which `unshare` makes a mount namespace here; null where this machine does not let it. */
export async function mountNamespaceFlags(): Promise<readonly string[] | null> {
  for (const flags of [['--mount'], ['--map-root-user', '--mount']]) {
    const isAllowed = await promisify(execFile)('unshare', [...flags, 'true']).then(
      () => true,
      () => false,
    );
    if (isAllowed) return flags;
  }
  return null;
}

export const noMountNamespace = 'this machine does not let the tests make a mount namespace';
