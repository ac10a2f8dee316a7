import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { StoreUnavailable } from '../store.ts';
import { FileWatch, newOpenedFiles, type OpenedFiles } from './file-identity.ts';
import { testFolder } from './test-folder.ts';
import { openForWriting } from './writing-connection.ts';

interface Opened {
  readonly files: OpenedFiles;
  readonly watch: FileWatch;
}

function openedAt(t: TestContext, path: string): Opened {
  const files = newOpenedFiles(path);
  const watch = new FileWatch(files);
  const database = watch.open(() => openForWriting(path));
  t.after(() => database.close());
  return { files, watch };
}

/** Returns the loss as this thread and another one see it, synchronously and asynchronously. */
async function lossOf({ files, watch }: Opened): Promise<string | null> {
  const other = new FileWatch(files);
  const seen = [watch.loss(), await watch.lossSoon(), other.loss(), await other.lossSoon()];
  for (const loss of seen) assert.deepEqual(loss, seen[0]);
  return seen[0]?.kind ?? null;
}

test('no loss is reported while all files are in place, for a new and for a reopened database', async (t) => {
  const path = join(testFolder(t), 'headgate.db');
  openForWriting(path).close();
  assert.deepEqual(readdirSync(dirname(path)), ['headgate.db']);
  const opened = openedAt(t, path);
  assert.equal(await lossOf(opened), null);
  assert.ok(
    opened.files.identities.every((number) => number !== 0n),
    'all three files are watched',
  );
  const fresh = openedAt(t, join(testFolder(t), 'headgate.db'));
  assert.ok(fresh.files.identities.every((number) => number !== 0n));
});

test('no loss is reported before the database was opened', async (t) => {
  const files = newOpenedFiles(join(testFolder(t), 'headgate.db'));
  assert.equal(new FileWatch(files).loss(), null);
  assert.equal(await new FileWatch(files).lossSoon(), null);
});

test('a moved database is reported as gone until the same file is back', async (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const opened = openedAt(t, path);
  renameSync(path, `${path}.aside`);
  assert.equal(await lossOf(opened), 'gone');
  copyFileSync(`${path}.aside`, path);
  assert.equal(await lossOf(opened), 'replaced');
  renameSync(`${path}.aside`, path);
  assert.equal(await lossOf(opened), null);
});

test('a database is reported as gone if its folder is moved, or replaced by a file', async (t) => {
  const folder = join(testFolder(t), 'data');
  mkdirSync(folder);
  const opened = openedAt(t, join(folder, 'headgate.db'));
  renameSync(folder, `${folder}-moved`);
  assert.equal(await lossOf(opened), 'gone');
  writeFileSync(folder, '');
  assert.equal(await lossOf(opened), 'gone');
  rmSync(folder);
  renameSync(`${folder}-moved`, folder);
  assert.equal(await lossOf(opened), null);
});

for (const suffix of ['-wal', '-shm']) {
  test(`a missing or replaced ${suffix} file is reported`, async (t) => {
    const path = join(testFolder(t), 'headgate.db');
    const opened = openedAt(t, path);
    renameSync(path + suffix, `${path}.aside`);
    assert.equal(await lossOf(opened), 'log gone');
    writeFileSync(path + suffix, '');
    assert.equal(await lossOf(opened), 'log replaced');
    renameSync(`${path}.aside`, path + suffix);
    assert.equal(await lossOf(opened), null);
  });
}

test('for a symbolic link, the files next to its target and the link itself are watched', async (t) => {
  const folder = testFolder(t);
  const [real, other] = ['real', 'other'].map((name) => join(folder, name, 'headgate.db')) as [
    string,
    string,
  ];
  for (const path of [real, other]) {
    mkdirSync(dirname(path));
    openForWriting(path).close();
  }
  const link = join(folder, 'link.db');
  symlinkSync(real, link);
  const opened = openedAt(t, link);
  assert.ok(existsSync(`${real}-wal`));
  assert.equal(await lossOf(opened), null);
  renameSync(`${real}-wal`, `${real}-aside`);
  assert.equal(await lossOf(opened), 'log gone');
  renameSync(`${real}-aside`, `${real}-wal`);
  rmSync(link);
  symlinkSync(other, link);
  assert.equal(await lossOf(opened), 'replaced');
});

test('a lost database is not opened again, and no new one is created in its place', (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const { files } = openedAt(t, path);
  renameSync(path, `${path}.aside`);
  const open = (): DatabaseSync => assert.fail('the lost database was opened');
  assert.throws(() => new FileWatch(files).open(open), StoreUnavailable);
  assert.throws(() => new FileWatch(files).assertInPlace(), StoreUnavailable);
  assert.equal(existsSync(path), false);
});

test('a file that is replaced while it is opened is opened again', (t) => {
  const path = join(testFolder(t), 'headgate.db');
  openForWriting(path).close();
  copyFileSync(path, `${path}.other`);
  const watch = new FileWatch(newOpenedFiles(path));
  let openings = 0;
  const database = watch.open(() => {
    const opened = openForWriting(path);
    if (++openings === 1) renameSync(`${path}.other`, path);
    return opened;
  });
  t.after(() => database.close());
  assert.equal(openings, 2);
  assert.equal(watch.loss(), null);
});

test('the log of a lost database is renamed, and the log of another database is kept', async (t) => {
  const path = join(testFolder(t), 'headgate.db');
  const { watch } = openedAt(t, path);
  renameSync(path, `${path}.aside`);
  const aside = watch.setLogAside() ?? assert.fail('no log was renamed');
  assert.ok(aside.startsWith(`${path}-wal.of-lost-database-`));
  assert.ok(existsSync(aside));
  assert.equal(existsSync(`${path}-wal`), false);
  assert.equal(existsSync(`${path}-shm`), false);
  writeFileSync(`${path}-wal`, '');
  assert.equal(watch.setLogAside(), null);
  assert.ok(existsSync(`${path}-wal`));
});
