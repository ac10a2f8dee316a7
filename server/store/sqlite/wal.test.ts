import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { recordRow } from '../test-rows.ts';
import { openSqliteStore } from './open-sqlite-store.ts';
import { testFolder } from './test-folder.ts';
import type { Tuning } from './tuning.ts';

const MIB = 1024 * 1024;

/** Writes without pause while others read, and says how large the files became. */
async function writeWithoutPause(
  t: TestContext,
  tuning: Tuning,
): Promise<{
  readonly largestWalBytes: number;
  readonly databaseBytes: number;
  readonly walAfterClose: boolean;
}> {
  const path = join(testFolder(t), 'headgate.db');
  const store = await openSqliteStore(path, tuning);
  const { organisation } = (await store.createOrganisation('one', randomUUID(), 1))!;
  let uploadsLeft = 80;
  let largestWalBytes = 0;
  const upload = async (): Promise<void> => {
    while (uploadsLeft-- > 0) {
      const rows = Array.from({ length: 1000 }, () => recordRow('tags', { name: 'a tag'.repeat(20) }));
      await store.write({ organisation, type: 'tags', batches: [rows], dryRun: false, memory: null });
      largestWalBytes = Math.max(largestWalBytes, statSync(`${path}-wal`).size);
    }
  };
  const read = async (): Promise<void> => {
    while (uploadsLeft > 0) {
      await store.records(organisation, 'tags', { afterId: null, limit: 1000, includeDeleted: true });
    }
  };
  await Promise.all([upload(), upload(), upload(), read()]);
  const databaseBytes = statSync(path).size;
  await store.close();
  return { largestWalBytes, databaseBytes, walAfterClose: existsSync(`${path}-wal`) };
}

test('the log stays within its limit under writing and reading without pause', async (t) => {
  const unlimited = await writeWithoutPause(t, {
    groupRows: 2000,
    checkpointAfterBytes: 1024 * MIB,
    walLimitBytes: 1024 * MIB,
  });
  const limited = await writeWithoutPause(t, {
    groupRows: 2000,
    checkpointAfterBytes: 1 * MIB,
    walLimitBytes: 4 * MIB,
  });
  assert.ok(unlimited.largestWalBytes > 48 * MIB, `without a limit ${unlimited.largestWalBytes} bytes`);
  // Reads hold the log open, the longer the busier the machine is, so only a bound against the other run holds.
  assert.ok(
    limited.largestWalBytes < unlimited.largestWalBytes / 2,
    `with a limit ${limited.largestWalBytes} bytes, without ${unlimited.largestWalBytes}`,
  );
});

test('the checkpointer copies the log into the database while the writer goes on', async (t) => {
  const { databaseBytes, walAfterClose } = await writeWithoutPause(t, {
    groupRows: 2000,
    checkpointAfterBytes: 1 * MIB,
    walLimitBytes: 1024 * MIB,
  });
  assert.ok(databaseBytes > 2 * MIB, `only ${databaseBytes} bytes were copied before the end`);
  assert.equal(walAfterClose, false);
});
