// Tests which files `headgate sample` writes, where it writes them, and what it refuses.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { type RecordTypeName, recordTypeNames, recordTypes } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { runHeadgate } from '../run.ts';

const CUSTOMERS = 200;
const typesInOrder: readonly string[] = [...uploadOrder(recordTypes), 'user-interactions'];
const oneSentence = /^[^\n]+$/;

interface Written {
  readonly folder: string;
  readonly customers: number;
  readonly seed: number;
  readonly until: string;
  readonly files: readonly { file: string; type: string; records: number; bytes: number }[];
}

interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-sample-'));
});
after(() => rm(folder, { recursive: true }));

async function run(...args: readonly string[]): Promise<Ran> {
  const out: string[] = [];
  const err: string[] = [];
  const exitCode = await runHeadgate(['sample', ...args], {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    isTerminal: false,
    rewrite: (text) => err.push(text),
    env: {},
    nowMs: () => 0,
  });
  return { exitCode, stdout: out.join('\n'), stderr: err.join('\n') };
}

async function sampleIn(name: string, ...args: string[]): Promise<Written> {
  const ran = await run(join(folder, name), '--customers', `${CUSTOMERS}`, ...args, '--json');
  assert.deepEqual([ran.exitCode, ran.stderr], [0, '']);
  return JSON.parse(ran.stdout) as Written;
}

/** Returns a digest of each file, because comparing the files themselves would be slow. */
async function contentOf(path: string, unpack = (bytes: Buffer) => bytes): Promise<Map<string, string>> {
  const names = (await readdir(path)).sort();
  return new Map(
    await Promise.all(
      names.map(async (name) => {
        const bytes = unpack(await readFile(join(path, name)));
        return [name, createHash('sha256').update(bytes).digest('hex')] as const;
      }),
    ),
  );
}

test('a sample has one file per type, in upload order, with the same bytes every time', async () => {
  const written = await sampleIn('first');
  assert.deepEqual([written.customers, written.seed, written.until], [CUSTOMERS, 1, '2026-09-30']);
  assert.deepEqual(
    written.files.map(({ type }) => type),
    typesInOrder,
  );
  for (const { file, type, records, bytes } of written.files) {
    const extension = type === 'user-interactions' ? 'ndjson' : 'csv';
    assert.equal(file, `${type}.${extension}`);
    const content = await readFile(join(folder, 'first', file), 'utf8');
    assert.equal(Buffer.byteLength(content), bytes);
    const [header, ...lines] = content.trimEnd().split('\n');
    if (extension === 'csv') {
      assert.equal(header, Object.keys(recordTypes[type as RecordTypeName].fields).join());
    }
    assert.equal(lines.length + (extension === 'csv' ? 0 : 1), records, file);
  }
  const first = await contentOf(join(folder, 'first'));
  await sampleIn('again', '--seed', '1', '--until', '2026-09-30');
  assert.deepEqual(await contentOf(join(folder, 'again')), first);
  await sampleIn('other', '--seed', '2');
  const other = await contentOf(join(folder, 'other'));
  for (const [name, digest] of first) assert.notEqual(other.get(name), digest, name);
});

test('compressed files have the same contents as plain ones', async () => {
  await sampleIn('plain', '--format', 'ndjson');
  await sampleIn('packed', '--format', 'ndjson', '--gzip');
  const plain = await contentOf(join(folder, 'plain'));
  const packed = await contentOf(join(folder, 'packed'), gunzipSync);
  assert.deepEqual(new Map([...packed].map(([name, digest]) => [name.replace(/\.gz$/, ''), digest])), plain);
  assert.equal(plain.size, recordTypeNames.length + 1);
});

describe('an existing folder', () => {
  test('is refused if it contains a file that no sample has written', async () => {
    const path = join(folder, 'mine');
    await mkdir(join(path, 'old'), { recursive: true });
    await writeFile(join(path, 'notes.txt'), 'mine');
    for (const force of [[], ['--force']]) {
      const { exitCode, stderr } = await run(path, ...force);
      assert.equal(exitCode, 1);
      assert.match(stderr, oneSentence);
      assert.match(stderr, /holds "notes\.txt" and 1 more, which no sample has made; choose a new folder/);
    }
    assert.deepEqual(await readdir(path), ['notes.txt', 'old']);
  });

  test('with an earlier sample is overwritten only with --force', async () => {
    const path = join(folder, 'earlier');
    await sampleIn('earlier', '--seed', '3', '--gzip');
    // A killed run leaves such a file.
    await writeFile(join(path, 'shops.ndjson.partial'), '{');
    const before = await contentOf(path);
    const { exitCode, stderr } = await run(path);
    assert.equal(exitCode, 1);
    assert.match(stderr, oneSentence);
    assert.match(stderr, /--force/);
    assert.deepEqual(await contentOf(path), before);

    await sampleIn('earlier', '--force');
    await sampleIn('elsewhere');
    assert.deepEqual(await contentOf(path), await contentOf(join(folder, 'elsewhere')));
  });

  test('that is empty is accepted', async () => {
    await mkdir(join(folder, 'empty'));
    assert.equal((await sampleIn('empty')).files.length, typesInOrder.length);
  });
});

describe('an invalid option is refused in one sentence, and no folder is created', () => {
  const cases: readonly [string, readonly string[], RegExp][] = [
    [
      'customers that are not a number',
      ['--customers', 'many'],
      /--customers must be a whole number from 1 to 10000000/,
    ],
    ['zero customers', ['--customers', '0'], /--customers must be/],
    ['a fraction of a customer', ['--customers', '1.5'], /--customers must be/],
    ['too many customers', ['--customers', '10000001'], /--customers must be .* not "10000001"/],
    ['a negative seed', ['--seed=-1'], /--seed must be a whole number from 0 to 4294967295/],
    ['a day that does not exist', ['--until', '2026-02-30'], /--until must be a day .* not "2026-02-30"/],
    ['a day before 1980', ['--until', '1969-01-01'], /--until must be a day from 1980-01-01/],
    ['an unknown format', ['--format', 'parquet'], /--format must be csv or ndjson, not "parquet"/],
  ];
  for (const [what, args, says] of cases) {
    test(what, async () => {
      const path = join(folder, 'never');
      const { exitCode, stderr } = await run(path, ...args);
      assert.equal(exitCode, 2);
      assert.match(stderr, oneSentence);
      assert.match(stderr, says);
      assert.ok(!existsSync(path));
    });
  }
});

describe('a folder that cannot be written to is refused', () => {
  test('because it is a file', async () => {
    const path = join(folder, 'file');
    await writeFile(path, 'mine');
    for (const name of [path, join(path, 'below')]) {
      const { exitCode, stderr } = await run(name);
      assert.equal(exitCode, 1);
      assert.match(stderr, oneSentence);
      assert.match(stderr, /is not a folder/);
    }
    assert.equal(await readFile(path, 'utf8'), 'mine');
  });

  const isRoot = process.getuid?.() === 0;
  test('because of its permissions', { skip: isRoot && 'root may write everywhere' }, async () => {
    const path = join(folder, 'locked');
    await mkdir(path);
    await chmod(path, 0o555);
    const { exitCode, stderr } = await run(path);
    assert.equal(exitCode, 1);
    assert.match(stderr, oneSentence);
    assert.match(stderr, /this user may not write/);
    assert.deepEqual(await readdir(path), []);
  });
});

test('without --json the command prints a table of the files, and how to load them', async () => {
  const path = join(folder, 'for people');
  const { exitCode, stdout, stderr } = await run(path, '--customers', '10');
  assert.deepEqual([exitCode, stderr], [0, '']);
  assert.match(stdout, /^FILE +RECORDS +SIZE\ncustomers\.csv +10 +\d kB\n/);
  assert.match(stdout, /headgate load '[^']+for people'$/);
});
