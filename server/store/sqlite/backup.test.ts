import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { type BackupProgress, startBackup } from './backup.ts';
import { testFolder } from './test-folder.ts';
import { startProcess } from './test-process.ts';
import { openForWriting } from './writing-connection.ts';

const ANSWERS = 1200;
const ANSWER_BYTES = 20_000;

/** A program that commits organisations without pause, and prints a word after the first. */
const writingWithoutPause = `
  import { DatabaseSync } from 'node:sqlite';
  const database = new DatabaseSync(process.argv[1], { timeout: 30_000 });
  const insert = database.prepare("INSERT INTO organisations VALUES (NULL, hex(randomblob(16)), hex(randomblob(16)), 0)");
  for (let written = 0; ; written++) {
    insert.run();
    if (written === 0) process.stdout.write('writing');
  }`;

test('a backup during constant writes does not restart, and is of one moment', async (t) => {
  const folder = testFolder(t);
  const [path, file] = [join(folder, 'headgate.db'), join(folder, 'backup.db')];
  const database = openForWriting(path);
  t.after(() => database.close());
  fill(database);
  const writer = startProcess(writingWithoutPause, path);
  t.after(() => writer.kill('SIGKILL'));
  await once(writer.stdout, 'data');
  const organisations = (): number =>
    Number(database.prepare('SELECT count(*) AS count FROM organisations').get()?.count);

  const before = organisations();
  const progress: BackupProgress[] = [];
  const facts = await startBackup(path, file, false, (step) => progress.push(step)).ended;
  const after = organisations();

  assert.ok(after > before, 'nothing was written during the backup');
  assert.ok(facts.organisations >= before && facts.organisations <= after);
  const copied = progress.filter(({ kind }) => kind === 'copying').map(({ doneBytes }) => doneBytes);
  assert.ok(copied.length >= 5, `the database was copied in ${copied.length} steps`);
  assert.deepEqual(
    copied,
    copied.toSorted((one, other) => one - other),
  );
});

test('a file that another process creates during the backup is not overwritten', async (t) => {
  const folder = testFolder(t);
  const path = join(folder, 'headgate.db');
  openForWriting(path).close();
  for (const [taken, reason] of [
    ['backup.db', / already exists; /],
    ['backup.db-journal', / exists, from a database /],
  ] as const) {
    const running = startBackup(path, join(folder, 'backup.db'), false, () => {});
    writeFileSync(join(folder, taken), 'precious');
    await assert.rejects(running.ended, { name: 'StoreUnusable', message: reason });
    assert.deepEqual(readdirSync(folder).sort(), [taken, 'headgate.db']);
    assert.equal(readFileSync(join(folder, taken), 'utf8'), 'precious');
    unlinkSync(join(folder, taken));
  }
});

function fill(database: DatabaseSync): void {
  database
    .prepare(
      `WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers LIMIT ${ANSWERS})
      INSERT INTO idempotency_answers
      SELECT 1, '/v1/data/shops', number, '', randomblob(${ANSWER_BYTES}), '[]', 0, 0 FROM numbers`,
    )
    .run();
}
