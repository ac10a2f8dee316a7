import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { chmodSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { recordRow } from '../test-rows.ts';
import { newOpenedFiles } from './file-identity.ts';
import { sleep } from './lock-waiting.ts';
import { openSqliteStore } from './open-sqlite-store.ts';
import { testFolder } from './test-folder.ts';
import { defaultTuning, type Tuning } from './tuning.ts';
import { keepWal, patienceAfter, type Step, stepFor } from './wal.ts';
import { openForWriting } from './writing-connection.ts';

const MIB = 1024 * 1024;
const PATIENCE_MS = 20_000;
const smallTuning: Tuning = {
  ...defaultTuning,
  groupRows: 2000,
  checkpointAfterBytes: MIB,
  walLimitBytes: MIB,
};

/** Writes without pause during reads, and returns how large the files became. */
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
      await store.write({
        organisation,
        type: 'tags',
        batches: [rows],
        idempotencyRecord: null,
        entry: null,
      });
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

test('a limit keeps the log much smaller during constant writes and reads', async (t) => {
  const unlimited = await writeWithoutPause(t, {
    ...defaultTuning,
    groupRows: 2000,
    checkpointAfterBytes: 1024 * MIB,
    walLimitBytes: 1024 * MIB,
  });
  const limited = await writeWithoutPause(t, {
    ...defaultTuning,
    groupRows: 2000,
    checkpointAfterBytes: 1 * MIB,
    walLimitBytes: 4 * MIB,
  });
  assert.ok(unlimited.largestWalBytes > 48 * MIB, `without a limit ${unlimited.largestWalBytes} bytes`);
  // Reads prevent a reset of the log, longer on a busy machine, so it is only compared with the other run.
  assert.ok(
    limited.largestWalBytes < unlimited.largestWalBytes / 2,
    `with a limit ${limited.largestWalBytes} bytes, without ${unlimited.largestWalBytes}`,
  );
});

test('the log does not grow while many idempotency records expire', async (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const store = await openSqliteStore(path, smallTuning);
  const { organisation } = (await store.createOrganisation('one', randomUUID(), 1))!;
  const storeRecord = (): Promise<unknown> =>
    store.write({
      organisation,
      type: 'tags',
      batches: [[recordRow('tags')]],
      idempotencyRecord: {
        organisation,
        path: '/v1/data/tags',
        key: randomUUID(),
        fingerprint: 'a fingerprint',
        response: randomBytes(1500),
        storedAtMs: 1,
        expiresAtMs: 2,
      },
      entry: null,
    });
  for (let stored = 0; stored < 20_000; stored += 1000) {
    await Promise.all(Array.from({ length: 1000 }, storeRecord));
  }
  const walBytes = (): number => statSync(`${path}-wal`).size;
  const bytesBefore = walBytes();
  await store.deleteExpiredResponses(3);
  const addedBytes = walBytes() - bytesBefore;
  await store.close();
  assert.ok(addedBytes < 32 * MIB, `the log grew from ${bytesBefore} by ${addedBytes} bytes`);
});

test('the checkpointer copies the log into the database during writes', async (t) => {
  const { databaseBytes, walAfterClose } = await writeWithoutPause(t, {
    ...defaultTuning,
    groupRows: 2000,
    checkpointAfterBytes: 1 * MIB,
    walLimitBytes: 1024 * MIB,
  });
  assert.ok(databaseBytes > 2 * MIB, `only ${databaseBytes} bytes were copied before the end`);
  assert.equal(walAfterClose, false);
});

test('the next step for the log depends on its size and on how much of it is copied', () => {
  const tuning: Tuning = { ...defaultTuning, groupRows: 2000, checkpointAfterBytes: 100, walLimitBytes: 200 };
  const cases: readonly [walBytes: number, copiedBytes: number, walBytesBefore: number, step: Step][] = [
    [100, 0, 0, 'nothing'],
    [101, 0, 0, 'copy'],
    [200, 100, 150, 'nothing'],
    [200, 50, 150, 'copy'],
    [250, 0, 200, 'copy'],
    [250, 200, 200, 'start anew'],
    [250, 250, 200, 'start anew'],
    [250, 199, 200, 'copy'],
    // The last upload changed nothing.
    [250, 200, 250, 'copy'],
    [250, 250, 250, 'nothing'],
    // The log was reset since, and is already over its limit.
    [250, 0, 300, 'start anew'],
    [400, 250, 350, 'copy'],
    [401, 251, 351, 'wait for copying'],
    [401, 351, 351, 'start anew'],
  ];
  for (const [walBytes, copiedBytes, walBytesBefore, step] of cases) {
    const state = { walBytes, copiedBytes, walBytesBefore };
    assert.equal(stepFor(state, tuning), step, JSON.stringify(state));
  }
});

test('the writer copies what the checkpointer has left, and the log is reset', async (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const database = openForWriting(path);
  const reader = new DatabaseSync(path);
  database.exec('CREATE TABLE filler (bytes BLOB); PRAGMA wal_checkpoint(TRUNCATE)');
  const wal = keepWal(database, newOpenedFiles(path), smallTuning, assert.fail);
  t.after(async () => {
    await wal.close();
    if (reader.isOpen) reader.close();
    database.close();
  });
  const frames = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  const logFrames = (): number => Number(frames.get()?.log);
  const framesLeft = (): number => logFrames() - Number(frames.get()?.checkpointed);
  const commit = (bytes: number): void => {
    database.exec(`INSERT INTO filler VALUES (randomblob(${bytes}))`);
    wal.noteCommitted(1000);
  };

  commit(0.75 * MIB);
  wal.keepInBounds();
  assert.ok(framesLeft() > 190, 'the log is not copied while it is below its limit');
  commit(0.75 * MIB);
  // A reader at the end of the log allows copying all of it, but prevents its reset.
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM filler').get();
  wal.keepInBounds();
  for (let pauses = 0; framesLeft() > 0 && pauses < 4000; pauses++) sleep(5);
  assert.equal(framesLeft(), 0, 'the checkpointer has copied the log without a turn of the event loop');

  const framesBefore = logFrames();
  commit(0.25 * MIB);
  assert.ok(logFrames() > framesBefore, 'the reader prevents the reset of the log');
  assert.ok(framesLeft() > 60);
  reader.close();
  wal.keepInBounds();
  while (wal.isBehind()) sleep(5);
  assert.equal(framesLeft(), 0, 'the writer has copied the newest commit');
  database.exec('INSERT INTO filler VALUES (randomblob(100))');
  assert.ok(logFrames() < 10, `the log has ${logFrames()} frames`);
});

test('the writer does not wait while a log that is far over its limit is copied', async (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const database = openForWriting(path);
  database.exec(`CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (randomblob(${3 * MIB}))`);
  const wal = keepWal(database, newOpenedFiles(path), smallTuning, assert.fail);
  t.after(async () => {
    await wal.close();
    database.close();
  });
  assert.equal(wal.isBehind(), false);
  database.exec(`INSERT INTO filler VALUES (randomblob(${3 * MIB}))`);
  wal.noteCommitted(1000);
  wal.keepInBounds();
  assert.equal(wal.isBehind(), true, 'the checkpointer has only been started');
  for (let pauses = 0; wal.isBehind() && pauses < 4000; pauses++) sleep(5);
  assert.equal(wal.isBehind(), false);
  // The writer may have stopped waiting before the checkpointer's thread had started.
  const copied = (): number => Number(database.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.checkpointed);
  for (let pauses = 0; copied() <= 700 && pauses < 4000; pauses++) sleep(5);
  assert.ok(copied() > 700);
});

/** Opens a database whose log has three times its limit, with a checkpointer that cannot open its file. */
function openWithUselessCheckpointer(t: TestContext): {
  readonly troubles: readonly string[];
  look(): void;
  logFrames(): number;
} {
  const folder = testFolder(t);
  const database = openForWriting(join(folder, 'headgate.db'));
  database.exec(`CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (randomblob(${3 * MIB}))`);
  const troubles: string[] = [];
  const missing = join(folder, 'missing', 'headgate.db');
  const wal = keepWal(database, newOpenedFiles(missing), smallTuning, (trouble) => troubles.push(trouble));
  t.after(async () => {
    await wal.close();
    database.close();
  });
  return {
    troubles,
    look() {
      database.exec('INSERT INTO filler VALUES (randomblob(100))');
      wal.noteCommitted(1000);
      wal.keepInBounds();
      while (wal.isBehind()) sleep(5);
    },
    logFrames: () => Number(database.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.log),
  };
}

test('if the checkpointer fails, the writer copies the log itself, and the failure is reported', {
  timeout: PATIENCE_MS,
}, async (t) => {
  const { troubles, look, logFrames } = openWithUselessCheckpointer(t);
  // The failure is reported through the event loop, which this loop does not reach.
  for (let looks = 0; logFrames() > 100 && looks < 5; looks++) look();
  assert.ok(logFrames() < 100, `the log has ${logFrames()} frames`);
  while (troubles.length === 0) await setTimeout(10, undefined, { signal: t.signal });
  assert.equal(troubles.length, 1);
  assert.match(troubles[0]!, /missing.headgate\.db could not be copied into it.*unable to open/);
});

test('waits for a checkpointer that does not keep up become longer, up to a limit', () => {
  const waitsMs = [500];
  while (waitsMs.length < 8) waitsMs.push(patienceAfter(waitsMs.at(-1)!, false));
  assert.deepEqual(waitsMs, [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  assert.equal(patienceAfter(15_000, true), 500);
});

test('a log that cannot be copied is reported to the process that opened the store', {
  timeout: PATIENCE_MS,
}, async (t) => {
  const folder = testFolder(t);
  const path = join(folder, 'headgate.db');
  const told = Promise.withResolvers<string>();
  const tuning = { ...defaultTuning, groupRows: 2000, checkpointAfterBytes: 1, walLimitBytes: 1024 * MIB };
  const store = await openSqliteStore(path, tuning, told.resolve);
  const { organisation } = (await store.createOrganisation('one', randomUUID(), 1))!;
  const rows = Array.from({ length: 1000 }, () => recordRow('tags', { name: 'a tag' }));
  // Open connections keep working. The checkpointer opens the file only now, and fails.
  chmodSync(folder, 0o755);
  chmodSync(path, 0o000);
  const root = process.geteuid?.() === 0;
  // Permissions do not apply to root, so the process switches to another user here.
  if (root) process.seteuid!(65_534);
  try {
    await store.write({
      organisation,
      type: 'tags',
      batches: [rows],
      idempotencyRecord: null,
      entry: null,
    });
    assert.match(await told.promise, /could not be copied into it/);
  } finally {
    if (root) process.seteuid!(0);
    chmodSync(path, 0o600);
  }
  assert.equal(await store.countRecords(organisation, 'tags'), 1000);
  await store.close();
});
