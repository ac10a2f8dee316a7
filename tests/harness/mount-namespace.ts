// Small disks for tests: a tmpfs in a mount namespace is gone when the process in it is, however that ends.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { isThorough } from '../../server/store/test-thoroughness.ts';

export const noMountNamespace = 'this machine does not let the tests make a mount namespace';

/**
 * The flags with which `unshare` makes a mount namespace here; null where this machine does not let it. Throws where
 * nothing may be skipped, but for users without rights, whom few machines let.
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
