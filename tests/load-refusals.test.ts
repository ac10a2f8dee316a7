// The errors of `headgate load` before anything is sent. It runs in this process, with an address without a server.

import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Ran, runWithin } from './harness/loading.ts';

interface Folder {
  readonly path: string;
  write(name: string, content: string | Buffer): Promise<void>;
  /** Takes the paths of files below the folder, and removes the folder from the messages. */
  run(...args: string[]): Promise<Ran>;
}

async function loadFolder(t: TestContext, env: Record<string, string>): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'headgate-load-'));
  t.after(() => rm(path, { recursive: true }));
  return {
    path,
    async write(name, content) {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), content);
    },
    async run(...args) {
      const placed = args.map((word) =>
        /^[a-z0-9.]+\.\w+$|^(closed|empty)$/.test(word) ? join(path, word) : word,
      );
      const { exitCode, out, err } = await runWithin(env, ...placed);
      const shortened = (text: string): string => text.replaceAll(`${path}/`, '');
      return { exitCode, out: shortened(out), err: shortened(err) };
    },
  };
}

/** An address without a server. */
const nowhere = { HEADGATE_URL: 'http://127.0.0.1:9', HEADGATE_KEY: 'hg_0123456789ab_x' };

test('invalid files are reported with their line and problem, and nothing is sent', async (t) => {
  const folder = await loadFolder(t, nowhere);
  const transaction = 'transaction_id,shop_id,region,savings,amount,branch_id\n';
  const wrong: [name: string, content: string | Buffer, sentence: RegExp][] = [
    [
      'shops.csv',
      'shop_id,nmae,region\n',
      /, line 1: shops have no column "nmae" \(did you mean name\?\); missing required columns: name/,
    ],
    [
      'branches.csv',
      transaction,
      /, line 1: its columns are those of transactions, not of branches; .*--type transactions/,
    ],
    ['shops.1.csv', 'shop_id,name,region,name\n', /the column "name" appears twice/],
    ['shops.2.csv', 'shop_id;name;region\n', /separated by ";"/],
    ['shops.3.csv', '', /is empty/],
    ['tags.csv', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0]), /not a text file/],
    ['tags.1.csv', gzipSync('tag_id,name\n'), /is gzip data; rename it so that its name ends in \.gz/],
    ['tags.csv.gz', 'tag_id,name\n', /is not gzip data/],
    ['tags.2.csv', Buffer.from('\ufefftag_id,name\n', 'utf16le'), /UTF-16/],
    ['offers.ndjson', '{"offer_id":\n', /, line 1: the line is not JSON/],
    ['courses.ndjson', '{"tag_id":"x","name":"y"}\n', /, line 1: its records are tags, not courses/],
    ['courses.json', '{"course_id":"x"}\n', /neither an array of records.*\.ndjson/],
    ['shop.csv', 'shop_id,name,region\n', /no type "shop"; did you mean shops\.csv\?/],
    ['shops.xlsx', 'x', /name must end in \.csv, /],
  ];
  for (const [name, content] of wrong) await folder.write(name, content);
  const { exitCode, out, err } = await folder.run('load', ...wrong.map(([name]) => name), 'missing.csv');
  assert.deepEqual([exitCode, out], [2, '']);
  const sentences = err.trimEnd().split('\n');
  for (const [name, , sentence] of wrong) {
    const found = sentences.filter((one) => one.startsWith(`headgate: ${name}`) && sentence.test(one));
    assert.equal(found.length, 1, `${name}: ${err}`);
  }
  assert.match(err, /missing\.csv: there is no such file or folder/);
  assert.equal(sentences.length, wrong.length + 2);
  assert.match(sentences.at(-1)!, /nothing was sent/);
});

test('a header of very many columns is read in seconds, and only the first few are named', async (t) => {
  const folder = await loadFolder(t, nowhere);
  const many = Array.from({ length: 100_000 }, (_, at) => `x${at}`);
  await folder.write('shops.csv', `shop_id,name,region,${many.join(',')}\n`);
  await folder.write('shops.1.csv', `shop_id,name,region,${many.join(',')},${many.join(',')}\n`);
  await folder.write('shops.2.csv', `"shop_id",name,region${',x'.repeat(1_000_000)}\n`);
  const startedAtMs = performance.now();
  const { exitCode, err } = await folder.run('load', 'shops.csv', 'shops.1.csv', 'shops.2.csv');
  const elapsedMs = performance.now() - startedAtMs;
  assert.equal(exitCode, 2);
  const [first, second, third] = err.split('\n') as [string, string, string];
  assert.ok(elapsedMs < 15_000, `it took ${elapsedMs} ms`);
  assert.match(
    first,
    /: shops have no column "x0"; .*shops have no column "x4"; nor 99,995 more; the columns of shops are /,
  );
  assert.doesNotMatch(first, /"x5"/);
  assert.match(
    second,
    /the column "x0" appears twice; .*"x4" appears twice; so do 99,995 more; shops have no/,
  );
  assert.match(third, /the column "x" appears twice; shops have no column "x"; the columns of shops are /);
  assert.ok(err.length < 3000, `it has ${err.length} characters`);
});

test('an unreachable server is reported at once', async (t) => {
  const folder = await loadFolder(t, nowhere);
  await folder.write('shops.csv', 'shop_id,name,region\n');
  const { exitCode, err } = await folder.run('load', 'shops.csv');
  assert.equal(exitCode, 2);
  assert.match(err, /^headgate: http:\/\/127\.0\.0\.1:9.*Is the server running there\?\n$/);
});

test('a wrong command line fails with one sentence and exit code 2', async (t) => {
  const folder = await loadFolder(t, nowhere);
  await folder.write('empty/notes.txt', '');
  const lines: [args: string[], sentence: RegExp][] = [
    [['load'], /load needs PATH/],
    [['load', 'x.csv', '--type', 'shosp'], /--type must be .*did you mean shops\?/],
    [['load', 'x.csv', '--concurrency', '0'], /--concurrency must be a whole number from 1 to 64, not "0"/],
    [['load', 'empty'], /there is nothing to load in ".*empty"/],
    [['load', 'x.csv', '--url', 'ftp://x'], /--url must be an address/],
    [['load', 'x.csv', '--key-file', 'none'], /key file "none" cannot be read/],
  ];
  for (const [args, sentence] of lines) {
    const { exitCode, out, err } = await folder.run(...args);
    assert.deepEqual([exitCode, out], [2, ''], err);
    assert.match(err, sentence);
  }
  const keyless = await loadFolder(t, { HEADGATE_URL: nowhere.HEADGATE_URL });
  const { exitCode, err } = await keyless.run('load', 'x.csv');
  assert.equal(exitCode, 2);
  assert.match(err, /load needs an API key: set HEADGATE_KEY, or give --key-file FILE/);
});

test('an unreadable file or folder is reported', async (t) => {
  const folder = await loadFolder(t, nowhere);
  await folder.write('shops.csv', 'shop_id,name,region\n');
  await folder.write('closed/shops.csv', 'shop_id,name,region\n');
  await chmod(folder.path, 0o755);
  await chmod(join(folder.path, 'shops.csv'), 0o000);
  await chmod(join(folder.path, 'closed'), 0o000);
  const { exitCode, err } = await asNobody(() => folder.run('load', 'shops.csv', 'closed'));
  await chmod(join(folder.path, 'closed'), 0o700);
  assert.equal(exitCode, 2);
  assert.match(err, /shops\.csv: this user may not read it/);
  assert.match(err, /closed: this user may not read it/);
});

const NOBODY = 65_534;

/** Runs it as the user `nobody` if this user is root, because root may read everything. */
async function asNobody<Result>(run: () => Promise<Result>): Promise<Result> {
  if (process.geteuid?.() !== 0) return run();
  process.seteuid!(NOBODY);
  try {
    return await run();
  } finally {
    process.seteuid!(0);
  }
}
