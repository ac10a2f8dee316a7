// Creates a temporary folder for a test, deleted when the test ends.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

export function testFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-sqlite-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
