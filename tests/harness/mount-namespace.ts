// Small disks for tests: a tmpfs in a mount namespace disappears when its process ends, however that ends. A test file
// that needs one therefore runs itself again inside such a namespace.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isThorough } from '../../server/store/test-thoroughness.ts';
import { newDatabaseFolder } from './headgate.ts';

const run = promisify(execFile);
const FOLDER_VARIABLE = 'HEADGATE_TEST_SMALL_DISK';
const TIMEOUT_MS = 180_000;

/**
 * Declares a suite in a mount namespace of its own. It gets a folder for what it mounts. `file` is the `import.meta.url` of
 * the test file, which may declare nothing else.
 */
export async function describeWithDisks(
  title: string,
  file: string,
  suite: (folder: string) => void,
): Promise<void> {
  const given = process.env[FOLDER_VARIABLE];
  if (given !== undefined) {
    describe(title, () => suite(given));
    return;
  }
  const flags = await mountNamespaceFlags();
  const skip = flags === null && noMountNamespace;
  test(title, { skip }, async (t) => {
    const { folder, remove } = await newDatabaseFolder();
    const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
    try {
      const { stdout } = await run(
        'unshare',
        [...flags!, process.execPath, ...process.execArgv, fileURLToPath(file)],
        { env: { ...environment, [FOLDER_VARIABLE]: folder }, timeout: TIMEOUT_MS },
      ).catch((error: { stdout: string; stderr: string }) =>
        assert.fail(`the tests in the namespace failed:\n${error.stdout}\n${error.stderr}`),
      );
      const passed = /^(?:# |ℹ )pass (\d+)$/m.exec(stdout)?.[1];
      assert.ok(Number(passed) > 0, stdout);
      t.diagnostic(`${passed} tests passed`);
    } finally {
      await remove();
    }
  });
}

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
