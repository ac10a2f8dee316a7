// Small disks for tests: a tmpfs in a mount namespace disappears when its process ends, however that ends.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { isThorough } from '../../server/store/test-thoroughness.ts';

export const noMountNamespace = 'this machine does not let the tests make a mount namespace';

/**
 * Returns the flags with which `unshare` makes a mount namespace; null if this machine does not allow it. For root it
 * throws instead if nothing may be skipped; few machines allow it to other users.
 */
export async function mountNamespaceFlags(): Promise<readonly string[] | null> {
  for (const flags of [['--mount'], ['--map-root-user', '--mount']]) {
    const isAllowed = await promisify(execFile)('unshare', [...flags, 'true']).then(
      () => true,
      () => false,
    );
    if (isAllowed) return flags;
  }
  if (isThorough && process.getuid?.() === 0) {
    throw new Error(`${noMountNamespace}, and HEADGATE_TEST_ALL is 1`);
  }
  return null;
}
