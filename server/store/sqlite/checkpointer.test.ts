import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { Checkpointer } from './checkpointer.ts';
import { newOpenedFiles } from './file-identity.ts';
import { testFolder } from './test-folder.ts';
import { openForWriting } from './writing-connection.ts';

const PATIENCE_MS = 20_000;
const MOST_TRIES = 5;

function openWithLog(t: TestContext): { readonly database: DatabaseSync; readonly path: string } {
  const path = join(testFolder(t), 'headgate.db');
  const database = openForWriting(path);
  t.after(() => database.close());
  database.exec('CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (randomblob(1000000))');
  return { database, path };
}

function framesLeft(database: DatabaseSync): number {
  const state = database.prepare('PRAGMA wal_checkpoint(NOOP)').get();
  return Number(state?.log) - Number(state?.checkpointed);
}

test('passes are made and counted even if the ordering thread never reaches its event loop', async (t) => {
  const { database, path } = openWithLog(t);
  assert.ok(framesLeft(database) > 200);
  const checkpointer = new Checkpointer(newOpenedFiles(path), () => {});
  t.after(() => checkpointer.close());
  assert.equal(checkpointer.passesLeft, 0);
  checkpointer.orderPass();
  checkpointer.orderPass();
  checkpointer.waitForPasses(PATIENCE_MS);
  assert.equal(checkpointer.passesLeft, 0);
  assert.equal(framesLeft(database), 0);

  database.exec('INSERT INTO filler VALUES (randomblob(1000000))');
  checkpointer.orderPass();
  checkpointer.waitForPasses(PATIENCE_MS);
  assert.equal(framesLeft(database), 0);
});

test('a pass also copies what is appended while it copies, so that little is left for whoever restarts the log', async (t) => {
  const { database, path } = openWithLog(t);
  const checkpointer = new Checkpointer(newOpenedFiles(path), () => {});
  t.after(() => checkpointer.close());
  // The thread runs once it has made a pass. While it starts, what is appended would be copied in any case.
  checkpointer.orderPass();
  checkpointer.waitForPasses(PATIENCE_MS);
  const append = database.prepare('INSERT INTO filler VALUES (randomblob(1000))');
  const tries: string[] = [];
  for (let isLittleLeft = false; !isLittleLeft; ) {
    database.exec('INSERT INTO filler VALUES (randomblob(100000000))');
    checkpointer.orderPass();
    let rowsAppended = 0;
    for (; checkpointer.passesLeft > 0; rowsAppended++) append.run();
    // Each row appends a page or more. If only the first copy were made, all of these would be left.
    const framesNotCopied = framesLeft(database);
    isLittleLeft = framesNotCopied < rowsAppended / 4;
    tries.push(`${framesNotCopied} pages were left of ${rowsAppended} rows`);
    // The disk, or other work on the machine, may delay only the last copy.
    assert.ok(isLittleLeft || tries.length < MOST_TRIES, tries.join(', '));
  }
});

test('a checkpointer that cannot open the file ends the wait, and reports why', async (t) => {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  // The thread does not keep the process alive by itself.
  const timer = setTimeout(reject, PATIENCE_MS, new Error('the checkpointer has not reported that it ended'));
  t.after(() => clearTimeout(timer));
  const checkpointer = new Checkpointer(
    newOpenedFiles(join(testFolder(t), 'missing', 'headgate.db')),
    resolve,
  );
  checkpointer.orderPass();
  checkpointer.orderPass();
  assert.equal(checkpointer.passesLeft, 2);
  const startedAtMs = performance.now();
  checkpointer.waitForPasses(PATIENCE_MS);
  const waitedMs = performance.now() - startedAtMs;
  assert.ok(waitedMs < PATIENCE_MS / 2, `waited ${waitedMs} ms`);
  assert.equal(checkpointer.isGone, true);
  assert.equal(checkpointer.passesLeft, 0);
  assert.match(String(await promise), /unable to open/);
});

test('a wait for the checkpointer ends after its timeout', async (t) => {
  const { path } = openWithLog(t);
  const checkpointer = new Checkpointer(newOpenedFiles(path), () => {});
  await checkpointer.close();
  checkpointer.orderPass();
  const startedAtMs = performance.now();
  checkpointer.waitForPasses(100);
  const waitedMs = performance.now() - startedAtMs;
  assert.ok(waitedMs >= 99 && waitedMs < PATIENCE_MS, `waited ${waitedMs} ms`);
  assert.equal(checkpointer.passesLeft, 1);
});
