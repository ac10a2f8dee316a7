import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { commitTogether, type Job } from './group-commit.ts';
import { testFolder } from './test-folder.ts';
import type { CallResult } from './thread-calls.ts';

function notesDatabase(t: TestContext): DatabaseSync {
  const database = new DatabaseSync(join(testFolder(t), 'notes.db'));
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE notes (note TEXT NOT NULL) STRICT');
  t.after(() => database.close());
  return database;
}

function note(database: DatabaseSync, text: string | null): Job {
  const insert = database.prepare('INSERT INTO notes VALUES (?)');
  return () => {
    insert.run(text);
    return `noted ${text?.slice(0, 10)}`;
  };
}

function notesIn(database: DatabaseSync): readonly string[] {
  const notes = database.prepare('SELECT note FROM notes ORDER BY rowid').all();
  return notes.map((row) => String(row.note).slice(0, 10));
}

function kindsOf(outcomes: readonly CallResult[]): readonly string[] {
  return outcomes.map(({ kind }) => kind);
}

test('jobs that all succeed share one commit', (t) => {
  const database = notesDatabase(t);
  let commits = 0;
  const exec = database.exec.bind(database);
  database.exec = (sql) => {
    if (sql === 'COMMIT') commits++;
    exec(sql);
  };
  const outcomes = commitTogether(
    database,
    ['a', 'b', 'c'].map((text) => note(database, text)),
  );
  assert.deepEqual(
    outcomes,
    ['a', 'b', 'c'].map((text) => ({ kind: 'done', value: `noted ${text}` })),
  );
  assert.equal(commits, 1);
  assert.deepEqual(notesIn(database), ['a', 'b', 'c']);
});

test('only jobs that cannot be done fail, and the others are committed in order', (t) => {
  const database = notesDatabase(t);
  const texts = ['a', 'b', null, 'd', 'e', 'f', null];
  const outcomes = commitTogether(
    database,
    texts.map((text) => note(database, text)),
  );
  assert.deepEqual(kindsOf(outcomes), ['done', 'done', 'bug', 'done', 'done', 'done', 'bug']);
  assert.match((outcomes[2] as { message: string }).message, /NOT NULL constraint failed: notes.note/);
  assert.deepEqual(notesIn(database), ['a', 'b', 'd', 'e', 'f']);
});

test('if the disk is full, only jobs that do not fit fail, and they succeed once there is room', (t) => {
  const database = notesDatabase(t);
  const pages = Number(database.prepare('PRAGMA page_count').get()?.page_count);
  database.exec(`PRAGMA max_page_count = ${pages + 5}`);
  const large = 'large '.repeat(10_000);
  const outcomes = commitTogether(
    database,
    ['a', large, 'c'].map((text) => note(database, text)),
  );
  assert.deepEqual(kindsOf(outcomes), ['done', 'unavailable', 'done']);
  assert.equal((outcomes[1] as { message: string }).message, 'database or disk is full');
  assert.deepEqual(notesIn(database), ['a', 'c']);
  database.exec('PRAGMA max_page_count = 1000');
  assert.deepEqual(kindsOf(commitTogether(database, [note(database, large)])), ['done']);
});

test('a job that throws an error of its own is reported as a bug, and is rolled back', (t) => {
  const database = notesDatabase(t);
  const broken: Job = () => {
    note(database, 'half')();
    throw new TypeError('broken');
  };
  const outcomes = commitTogether(database, [broken, note(database, 'whole')]);
  assert.deepEqual(kindsOf(outcomes), ['bug', 'done']);
  assert.deepEqual(notesIn(database), ['whole']);
});
