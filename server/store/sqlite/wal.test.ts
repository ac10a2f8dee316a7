import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { recordRow } from '../test-rows.ts';
import { sleep } from './database.ts';
import { openSqliteStore } from './open-sqlite-store.ts';
import { testFolder } from './test-folder.ts';
import type { Tuning } from './tuning.ts';
import { keepWal } from './wal.ts';
import { openForWriting } from './writing-connection.ts';

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

test('a log over its limit starts anew as soon as the checkpointer has copied all but the newest commit', async (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const database = openForWriting(path);
  database.exec('CREATE TABLE filler (bytes BLOB)');
  const commitBytes = MIB;
  const tuning = { groupRows: 2000, checkpointAfterBytes: 2 * MIB, walLimitBytes: 4 * MIB };
  const wal = keepWal(database, path, tuning);
  const look = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  const walBytes = (): number => Number(look.get()?.log) * 4120;
  const restBytes = (): number => walBytes() - Number(look.get()?.checkpointed) * 4120;
  let bytesBefore = 0;
  let timesAnew = 0;
  for (let commit = 0; commit < 40; commit++) {
    database.exec(`INSERT INTO filler VALUES (randomblob(${commitBytes}))`);
    const bytes = walBytes();
    assert.ok(bytes < tuning.walLimitBytes + 2.5 * commitBytes, `the log has ${bytes} bytes`);
    if (bytes < bytesBefore) timesAnew++;
    bytesBefore = bytes;
    wal.noteCommitted(1000);
    wal.keepInBounds();
    // Slower than the checkpointer, but like a busy writer without ever reaching the event loop.
    const isCopying = bytes > tuning.walLimitBytes || restBytes() > tuning.checkpointAfterBytes;
    for (let pauses = 0; isCopying && restBytes() > 0 && pauses < 2000; pauses++) sleep(5);
  }
  await wal.close();
  database.close();
  assert.ok(timesAnew >= 5, `the log started anew ${timesAnew} times`);
});
