import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { takePartial } from '../store/sqlite/backup-folder.ts';
import { SCHEMA_VERSION } from '../store/sqlite/migrations.ts';
import { openKeys } from '../store/test-keys.ts';
import { runHeadgate } from './run.ts';

interface Ran {
  readonly exitCode: number;
  readonly out: string[];
  readonly err: string[];
}

interface Place {
  readonly folder: string;
  readonly database: string;
  run(...args: string[]): Promise<Ran>;
  /** Runs `headgate backup`, and asserts that it prints nothing and leaves no new file in the folder. */
  refused(...args: string[]): Promise<Pick<Ran, 'exitCode' | 'err'>>;
}

/** A folder with a database that has one organisation. */
async function place(t: TestContext, isTerminal = false): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-backup-'));
  t.after(() => rm(folder, { recursive: true }));
  const database = join(folder, 'headgate.db');
  const run = async (...args: string[]): Promise<Ran> => {
    const out: string[] = [];
    const err: string[] = [];
    const exitCode = await runHeadgate(args, {
      out: (line) => out.push(line),
      err: (line) => err.push(line),
      isTerminal,
      rewrite: (text) => err.push(text),
      env: { HEADGATE_DATABASE: database },
      nowMs: Date.now,
    });
    return { exitCode, out, err };
  };
  const keys = await openKeys(database);
  await keys.createOrganisation('acme', randomUUID(), Date.now());
  await keys.close();
  const refused = async (...args: string[]): Promise<Pick<Ran, 'exitCode' | 'err'>> => {
    const before = readdirSync(folder, { recursive: true }).sort();
    const { exitCode, out, err } = await run('backup', ...args);
    assert.deepEqual(out, []);
    assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), before);
    return { exitCode, err };
  };
  return { folder, database, run, refused };
}

test('a backup is one file, and the command reports what it contains', async (t) => {
  const { folder, run } = await place(t);
  const file = join(folder, 'monday.db');
  const { exitCode, out, err } = await run('backup', file);
  assert.deepEqual([exitCode, err], [0, []]);
  assert.match(
    out.join('\n'),
    /^Backed up 1 organisation, 0 records and 0 interactions to \S+monday\.db: \d+\.\d MiB in \d+\.\d s, and the integrity check has passed\.$/,
  );
  assert.deepEqual(readdirSync(folder).sort(), ['headgate.db', 'monday.db']);
  const [name] = JSON.parse((await run('orgs', 'list', '--json', '--database', file)).out[0]!);
  assert.equal(name.name, 'acme');
});

test('a backup has no WAL file, so it can be read from a read-only folder', async (t) => {
  const { folder, run } = await place(t);
  const file = join(folder, 'monday.db');
  await run('backup', file);
  const copy = new DatabaseSync(file, { readOnly: true });
  t.after(() => copy.close());
  assert.equal(copy.prepare('PRAGMA journal_mode').get()?.journal_mode, 'delete');
  assert.equal(copy.prepare('SELECT name FROM organisations').get()?.name, 'acme');
  assert.deepEqual(readdirSync(folder).sort(), ['headgate.db', 'monday.db']);
});

test('with --json the command prints one JSON value', async (t) => {
  const { folder, run } = await place(t);
  const file = join(folder, 'monday.db');
  const { out, err } = await run('backup', file, '--json');
  const { duration_ms: elapsedMs, ...summary } = JSON.parse(out.join('\n'));
  assert.ok(Number.isInteger(elapsedMs));
  const { size } = statSync(file);
  assert.deepEqual(
    [summary, err],
    [
      { file, bytes: size, schema_version: SCHEMA_VERSION, organisations: 1, records: 0, interactions: 0 },
      [],
    ],
  );
});

test('on a terminal the progress is shown, and erased at the end', async (t) => {
  const { folder, run } = await place(t, true);
  const { err } = await run('backup', join(folder, 'monday.db'));
  assert.match(err.join('\n'), /checking \d+\.\d MiB/);
  assert.equal(err.at(-1), '');
});

test('an existing file is not overwritten without --force', async (t) => {
  const { folder, run, refused } = await place(t);
  const file = join(folder, 'notes.txt');
  writeFileSync(file, 'precious');
  assert.deepEqual(await refused(file), {
    exitCode: 1,
    err: [`headgate: ${file} already exists; name another file, or give --force to replace it`],
  });
  assert.equal(readFileSync(file, 'utf8'), 'precious');
  assert.equal((await run('backup', file, '--force')).exitCode, 0);
  assert.equal((await run('orgs', 'list', '--database', file)).exitCode, 0);
});

test('the files that a killed backup has left are replaced', async (t) => {
  const { folder, run } = await place(t);
  const file = join(folder, 'monday.db');
  for (const left of [['copy.db', 'copy.db-journal', 'lock'], ['lock'], []]) {
    mkdirSync(`${file}.partial`);
    for (const name of left) writeFileSync(join(`${file}.partial`, name), name === 'lock' ? '' : 'half');
    assert.deepEqual(await run('backup', file, '--force').then(({ err }) => err), []);
    assert.deepEqual(readdirSync(folder).sort(), ['headgate.db', 'monday.db']);
  }
});

test('the files of another running backup are not touched', async (t) => {
  const { folder, refused } = await place(t);
  const file = join(folder, 'monday.db');
  const other = takePartial(`${file}.partial`);
  t.after(() => other.release());
  writeFileSync(other.copy, 'half');
  assert.deepEqual(await refused(file), {
    exitCode: 1,
    err: [`headgate: another backup is being written to ${file}.partial; wait for it, or name another file`],
  });
  assert.equal(readFileSync(other.copy, 'utf8'), 'half');
});

test('a file or folder that no backup has created is not removed', async (t) => {
  const { folder, database, run, refused } = await place(t);
  const path = (name: string): string => join(folder, name);
  writeFileSync(path('text.db.partial'), 'precious');
  await run('backup', path('backup.db.partial'));
  mkdirSync(path('folder.db.partial'));
  writeFileSync(join(path('folder.db.partial'), 'copy.db'), 'precious');
  writeFileSync(join(path('folder.db.partial'), 'notes.txt'), 'precious');
  mkdirSync(path('elsewhere'));
  symlinkSync(path('elsewhere'), path('link.db.partial'));
  for (const name of ['text.db', 'backup.db', 'folder.db', 'link.db']) {
    assert.deepEqual(await refused(path(name), '--force', '--database', database), {
      exitCode: 1,
      err: [
        `headgate: ${path(name)}.partial, where the backup is written until it is complete, already exists, ` +
          'and was not left by a backup; move it away, or name another file',
      ],
    });
  }
  assert.equal(readFileSync(path('text.db.partial'), 'utf8'), 'precious');
  assert.equal((await run('orgs', 'list', '--database', path('backup.db.partial'))).exitCode, 0);
});

test('the database itself is never overwritten, whatever path is given for it', async (t) => {
  const { folder, database, refused } = await place(t);
  const server = new DatabaseSync(database);
  t.after(() => server.close());
  server.prepare('SELECT * FROM organisations').all();
  const path = (name: string): string => join(folder, name);
  linkSync(database, path('hard-link.db'));
  linkSync(`${database}-wal`, path('hard-linked-log'));
  symlinkSync(database, path('symbolic-link.db'));
  symlinkSync(folder, path('same-folder'));
  const names = ['headgate.db', 'headgate.db-wal', 'headgate.db-shm', 'headgate.db-journal'];
  for (const file of [
    ...names.map((name) => path(name)),
    ...names.map((name) => join(path('same-folder'), name)),
    path('hard-link.db'),
    path('hard-linked-log'),
    path('symbolic-link.db'),
  ]) {
    for (const named of [database, path('symbolic-link.db'), join(path('same-folder'), 'headgate.db')]) {
      assert.deepEqual(await refused(file, '--force', '--database', named), {
        exitCode: 1,
        err: [`headgate: ${file} belongs to the database itself; name another file for the backup`],
      });
    }
  }
});

test('a database at the path of the partial backup is not removed', async (t) => {
  const { folder, run, refused } = await place(t);
  mkdirSync(join(folder, 'within.db.partial'));
  symlinkSync(folder, join(folder, 'same-folder'));
  for (const [file, database] of [
    ['live.db', 'live.db.partial'],
    ['same-folder/other.db', 'other.db.partial'],
    ['within.db', 'within.db.partial/copy.db'],
  ] as const) {
    const path = join(folder, database);
    await run('orgs', 'create', 'acme', '--database', path);
    const server = new DatabaseSync(path);
    t.after(() => server.close());
    server.prepare("UPDATE organisations SET name = 'changed'").run();
    assert.deepEqual(await refused(join(folder, file), '--database', path), {
      exitCode: 1,
      err: [
        `headgate: ${join(folder, file)}.partial, where the backup is written until it is complete, belongs to ` +
          'the database itself; name another file for the backup',
      ],
    });
    assert.match((await run('orgs', 'list', '--database', path)).out.join('\n'), /changed/);
  }
});

test('the name of a WAL, shared-memory or journal file of another database is refused', async (t) => {
  const { folder, run, refused } = await place(t);
  const other = join(folder, 'other.db');
  await run('orgs', 'create', 'other', '--database', other);
  for (const companion of ['-journal', '-wal', '-shm']) {
    assert.deepEqual(await refused(other + companion, '--force'), {
      exitCode: 1,
      err: [
        `headgate: ${other}${companion} belongs to the database ${other}; name another file for the backup`,
      ],
    });
  }
});

test('a name is refused if a WAL, shared-memory or journal file of that name exists', async (t) => {
  const { folder, run, refused } = await place(t);
  const file = join(folder, 'other.db');
  const refusesFor = async (companion: string): Promise<void> =>
    assert.deepEqual(await refused(file, '--force'), {
      exitCode: 1,
      err: [
        `headgate: ${file}${companion} exists, from a database that is in use as ${file} or was not closed, ` +
          'and would spoil the backup; name another file for the backup',
      ],
    });
  for (const companion of ['-journal', '-wal', '-shm']) {
    writeFileSync(file + companion, 'left');
    await refusesFor(companion);
    unlinkSync(file + companion);
  }
  await run('orgs', 'create', 'other', '--database', file);
  const server = new DatabaseSync(file);
  t.after(() => server.close());
  server.prepare('SELECT * FROM organisations').all();
  await refusesFor('-wal');
});

test('a path where no file can be created is refused with one sentence', async (t) => {
  const { folder, refused } = await place(t);
  mkdirSync(join(folder, 'folder'));
  const cases = [
    [
      join(folder, 'none', 'monday.db'),
      /^headgate: there is no folder \S+none to put the backup into; make it first$/,
    ],
    [join(folder, 'headgate.db', 'monday.db'), /^headgate: there is no folder \S+headgate\.db to put /],
    [join(folder, 'folder'), /^headgate: \S+folder is not a file; name another one for the backup$/],
    ['/dev/null', /^headgate: \/dev\/null is not a file; /],
    ['/sys/monday.db', /^headgate: .*\/sys.*: (EACCES|EPERM|EROFS): /],
    [join(folder, 'x'.repeat(300)), /^headgate: .*ENAMETOOLONG: /],
  ] as const;
  for (const [file, sentence] of cases) {
    const { exitCode, err } = await refused(file, '--force');
    assert.deepEqual([exitCode, err.length], [1, 1]);
    assert.match(err[0]!, sentence);
  }
});

test('a database that cannot be backed up is refused with one sentence', async (t) => {
  const { folder, run, refused } = await place(t);
  const path = (name: string): string => join(folder, name);
  const file = path('monday.db');
  writeFileSync(
    path('text.db'),
    'no database at all, but longer than the header that would tell of one'.repeat(9),
  );
  writeFileSync(path('empty.db'), '');
  const foreign = new DatabaseSync(path('foreign.db'));
  foreign.exec('CREATE TABLE someone_elses (value)');
  foreign.close();
  await run('orgs', 'create', 'newer', '--database', path('newer.db'));
  const newer = new DatabaseSync(path('newer.db'));
  newer.exec('PRAGMA journal_mode = DELETE; PRAGMA user_version = 1000');
  newer.close();
  const cases = [
    [
      path('none.db'),
      1,
      /^headgate: there is no database \S+none\.db; name the one to back up with --database$/,
    ],
    [folder, 1, /^headgate: the database \S+ is not a file$/],
    [path('text.db'), 1, /^headgate: \S+text\.db is not a SQLite database$/],
    [path('empty.db'), 1, /^headgate: the database \S+empty\.db is empty: there is nothing to back up$/],
    [path('foreign.db'), 1, /^headgate: \S+foreign\.db is a SQLite database that Headgate has not made: /],
    [path('newer.db'), 1, /^headgate: \S+newer\.db was made by a newer Headgate /],
    [
      'postgres://headgate:secret@db.internal/headgate',
      2,
      /^headgate: .* pg_dump --format=custom --file=FILE; /,
    ],
    ['mysql://db.internal/headgate', 2, /^headgate: --database must be /],
  ] as const;
  for (const [database, expected, sentence] of cases) {
    const { exitCode, err } = await refused(file, '--database', database);
    assert.deepEqual([exitCode, err.length], [expected, 1], err.join('\n'));
    assert.match(err[0]!, sentence);
    assert.doesNotMatch(err[0]!, /secret/);
  }
});

test('a damaged database is detected, and an earlier backup is kept', async (t) => {
  const { folder, database, run, refused } = await place(t);
  const file = join(folder, 'monday.db');
  await run('backup', file);
  const earlier = readFileSync(file);
  loseIndexEntries(database);
  const { exitCode, err } = await refused(file, '--force');
  assert.deepEqual([exitCode, err.length], [1, 1]);
  assert.match(
    err[0]!,
    /^headgate: the copy of \S+ does not pass SQLite's integrity check \(.+\), so the database /,
  );
  assert.ok(readFileSync(file).equals(earlier));
});

/** Creates an empty index for a table that has a row, as a lost write would leave it. */
function loseIndexEntries(path: string): void {
  const database = new DatabaseSync(path, { defensive: false });
  database.exec(`PRAGMA journal_mode = DELETE;
    CREATE INDEX lost ON organisations (created_at_ms) WHERE created_at_ms < 0;
    PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET sql = 'CREATE INDEX lost ON organisations (created_at_ms)' WHERE name = 'lost';`);
  database.close();
}
