// `headgate export` against a real server, as a process of its own, or within this one if that makes no difference.
// `headgate load` can load its files.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { link, lstat, readFile, stat, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import type { Field } from '@headgate/catalogue/declaration.ts';
import { type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { type Api, apiOf } from './harness/api.ts';
import { startFaultyProxy } from './harness/faulty-proxy.ts';
import { commandLine } from './harness/headgate.ts';
import { loadFolder, runWithin } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { fullRecord, idOf, leastRecord, type TestRecord } from './harness/records.ts';
import { residentMemory } from './harness/resident-memory.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

/** Texts that are difficult to represent in CSV. */
const awkwardTexts = [
  'a, "b"\r\nc\n',
  '',
  ' ',
  '"',
  '""',
  'true',
  '007',
  'null',
  '\ufeffé🎓',
  '=1+1',
  "it's; a\ttab",
  '\r',
];
/** A process that does nothing takes 80 MB. */
const MOST_EXPORT_MB = 160;
const awkwardNumbers = [0.1, 1e21, 5e-324, 123_456_789.125];

/** Returns good records with values that are easily misread, and one with the required fields only. */
function awkwardRecords(type: RecordTypeName, references: TestRecord): TestRecord[] {
  const fields: Record<string, Field> = recordTypes[type].fields;
  const records = awkwardTexts.map((text, at) => {
    const values = Object.entries(fields).flatMap(([name, { kind, required }]) => {
      if (kind.name === 'text') return [[name, required && text === '' ? 'x' : text]];
      const isFree =
        kind.name === 'number' && /^a number( greater than 0| of 0 or more)?$/.test(kind.accepts);
      return isFree ? [[name, awkwardNumbers[at % awkwardNumbers.length]]] : [];
    });
    return fullRecord(type, { ...Object.fromEntries(values), is_deleted: at % 5 === 4, ...references });
  });
  return [...records, leastRecord(type, references)];
}

async function uploadAwkward(api: Api): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  for (const type of uploadOrder(recordTypes)) {
    const references = Object.entries(recordTypes[type].fields).flatMap(([name, { references: target }]) =>
      typeof target === 'string' ? [[name, ids[target]]] : [],
    );
    const records = awkwardRecords(type, Object.fromEntries(references));
    ids[type] = idOf(type, records[0]!);
    const { status, text } = await api.upload(type, records);
    assert.equal(status, 200, text);
  }
  return ids;
}

const running = runningHeadgate(testDatabases[0]!);

async function asNewOrganisation(t: TestContext) {
  const { headgate } = running;
  const { key } = await headgate.newKey();
  const folder = await loadFolder(t, { HEADGATE_URL: headgate.url, HEADGATE_KEY: key });
  return { folder, api: apiOf(headgate.url, key) };
}

describe('with awkward records of every type', () => {
  test('everything that is exported loads back unchanged, as CSV and as NDJSON', async (t) => {
    const source = await asNewOrganisation(t);
    const ids = await uploadAwkward(source.api);
    for (const [at, event_timestamp] of [1_700_000_000, '2024-05-01T09:30:00+02:00'].entries()) {
      const interaction = {
        interaction_type: 'SHARE',
        item_type: 'SHOP',
        item_id: ids.shops,
        city: awkwardTexts[at],
        event_timestamp,
        ...(at === 0 ? {} : { source: 'SERVICE', recommendation_id: randomUUID() }),
      };
      assert.equal((await source.api.record(interaction)).status, 201);
    }
    const types = [...uploadOrder(recordTypes), 'user-interactions'];
    const endings = ['csv', 'ndjson'] as const;
    await Promise.all(
      endings.map(async (ending) => {
        for (const type of types) {
          const out = join(source.folder.path, `${type}.${ending}`);
          const args = type === 'user-interactions' ? [] : ['--include-deleted'];
          const { exitCode, err } = await runWithin(
            source.folder.environment,
            'export',
            type,
            '--out',
            out,
            ...args,
          );
          assert.equal(exitCode, 0, err);
        }
        const target = await asNewOrganisation(t);
        const paths = types.map((type) => join(source.folder.path, `${type}.${ending}`));
        const { exitCode, out, err } = await target.folder.run('load', ...paths);
        assert.equal(exitCode, 0, out + err);
        for (const type of uploadOrder(recordTypes)) {
          const everything = '&include_deleted=true';
          const [had, has] = [
            await readAllRecords(source.api, type, everything),
            await readAllRecords(target.api, type, everything),
          ];
          assert.deepEqual(has, had, `${type} as ${ending}`);
          assert.ok(has.length > awkwardTexts.length && has.some(({ is_deleted }) => is_deleted));
        }
        const interactions = await readAllInteractions(target.api);
        assert.equal(interactions.length, 2);
        assert.deepEqual(interactions, await readAllInteractions(source.api));
      }),
    );
  });

  test('it writes to standard output by default, compresses .gz files, omits deleted records', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    const [kept, deleted] = [leastRecord('tags'), leastRecord('tags', { is_deleted: true })];
    await api.upload('tags', [kept, deleted]);
    const printed = await folder.run('export', 'tags');
    assert.deepEqual([printed.exitCode, printed.err], [0, '']);
    assert.deepEqual(
      printed.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
      await readAllRecords(api, 'tags'),
    );
    const csv = await folder.run('export', 'tags', '--format', 'csv');
    assert.equal(csv.out, `tag_id,name,created,updated,is_deleted\n${kept.tag_id},some text,,,false\n`);
    const packed = await folder.runWithin('export', 'tags', '--out', 'tags.csv.gz');
    assert.equal(packed.err, '1 tags are in tags.csv.gz\n');
    assert.equal(gunzipSync(await readFile(join(folder.path, 'tags.csv.gz'))).toString(), csv.out);
  });
});

describe('for a spreadsheet', () => {
  test('cells that would be formulas are marked as text, numbers are not', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    const shop = leastRecord('shops');
    await api.upload('shops', [shop]);
    const formula = '=HYPERLINK("http://x","y")';
    const branch = leastRecord('branches', { shop_id: shop.shop_id, name: formula, latitude: -5.5 });
    await api.upload('branches', [branch]);
    const args = ['export', 'branches', '--format', 'csv'];
    const plain = await folder.run(...args);
    const safe = await folder.run(...args, '--spreadsheet-safe');
    assert.ok(plain.out.includes(',"=HYPERLINK(""http://x"",""y"")",'), plain.out);
    assert.ok(safe.out.includes(`,"'=HYPERLINK(""http://x"",""y"")",`), safe.out);
    assert.ok(safe.out.includes(',-5.5,'), safe.out);
    const misused = await folder.runWithin('export', 'branches', '--spreadsheet-safe');
    assert.equal(misused.exitCode, 2);
    assert.match(misused.err, /--spreadsheet-safe is for CSV; give --format csv/);
  });
});

describe('the target of an export', () => {
  test('an export takes much less memory than its file', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    const shop = leastRecord('shops');
    await api.upload('shops', [shop]);
    const long = 'x'.repeat(10_000);
    const texts = { name: long, type: long, allowed_branches: long, allowed_days: long };
    for (let upload = 0; upload < 4; upload++) {
      const offers = Array.from({ length: 700 }, () =>
        leastRecord('offers', { ...texts, shop_id: shop.shop_id }),
      );
      const { status, text } = await api.upload('offers', offers);
      assert.equal(status, 200, text.slice(0, 300));
    }
    const exporting = folder.start('export', 'offers', '--out', 'offers.ndjson');
    let peakMb = 0;
    const looking = setInterval(async () => {
      peakMb = (await residentMemory(exporting.child.pid!))?.peakMb ?? peakMb;
    }, 20);
    const { exitCode, err } = await exporting.ended;
    clearInterval(looking);
    assert.equal(exitCode, 0, err);
    const { size } = await stat(join(folder.path, 'offers.ndjson'));
    t.diagnostic(`${peakMb} MB of memory for ${size} bytes`);
    assert.ok(peakMb > 0 && peakMb < MOST_EXPORT_MB, `${peakMb} MB of memory for ${size} bytes`);
  });

  test('pipes and devices are written to, not replaced', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    await api.upload('tags', [leastRecord('tags')]);
    const { out: expected } = await folder.run('export', 'tags');
    const device = await folder.run('export', 'tags', '--out', '/dev/stdout');
    assert.deepEqual([device.exitCode, device.out], [0, expected], device.err);
    assert.equal((await folder.run('export', 'tags', '--out', '/dev/null')).exitCode, 0);
    assert.ok((await stat('/dev/null')).isCharacterDevice());

    const pipe = join(folder.path, 'tags.ndjson');
    await promisify(execFile)('mkfifo', [pipe]);
    const [read, { exitCode, err }] = await Promise.all([
      readFile(pipe, 'utf8'),
      folder.run('export', 'tags', '--out', 'tags.ndjson'),
    ]);
    assert.deepEqual([exitCode, read], [0, expected], err);
    assert.ok((await stat(pipe)).isFIFO(), 'it stays a pipe');
    assert.deepEqual(await folder.names('.'), ['tags.ndjson']);

    const { path: cwd, environment } = folder;
    const substituted = ['-c', '"$@" --out >(cat >substituted)', 'bash', ...commandLine(['export', 'tags'])];
    await promisify(execFile)('bash', substituted, { cwd, env: { ...process.env, ...environment } });
    await waitUntil('it has come through the pipe', async () => {
      return (await folder.read('substituted')) === expected;
    });
  });

  test('a symbolic link stays, and the file behind it is replaced', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    await api.upload('tags', [leastRecord('tags')]);
    await folder.write('kept/today.csv', 'of yesterday');
    await symlink('kept/today.csv', join(folder.path, 'tags.csv'));
    assert.equal((await folder.runWithin('export', 'tags', '--out', 'tags.csv', '--force')).exitCode, 0);
    assert.ok((await lstat(join(folder.path, 'tags.csv'))).isSymbolicLink());
    assert.match(await folder.read('kept/today.csv'), /^tag_id,/);
    assert.deepEqual(await folder.names('kept'), ['today.csv']);
  });

  test('an existing file is replaced only with --force', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    await api.upload('tags', [leastRecord('tags')]);
    await folder.write('tags.csv', 'of yesterday');
    await symlink('nowhere', join(folder.path, 'link.csv'));
    for (const name of ['tags.csv', 'link.csv']) {
      const refused = await folder.runWithin('export', 'tags', '--out', name);
      assert.equal(refused.exitCode, 1);
      assert.equal(
        refused.err,
        `headgate: ${name} exists already; name another file, or give --force to replace it\n`,
      );
    }
    assert.equal(await folder.read('tags.csv'), 'of yesterday');
    const forced = await folder.runWithin('export', 'tags', '--out', 'tags.csv', '--force');
    assert.equal(forced.exitCode, 0, forced.err);
    assert.match(await folder.read('tags.csv'), /^tag_id,/);
    assert.deepEqual(await folder.names('.'), ['link.csv', 'tags.csv']);
  });

  test('a file that appears while the export runs is not replaced', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    const proxy = await startFaultyProxy(running.headgate.url);
    t.after(() => proxy.close());
    await api.upload('tags', [leastRecord('tags')]);
    const held = Promise.withResolvers<null>();
    proxy.fault = ({ path }) => (path.startsWith('/v1/data/tags') ? held.promise : null);
    const exporting = folder.start('export', 'tags', '--out', 'tags.csv', '--url', proxy.url);
    await waitUntil('it asks for the tags', () =>
      proxy.requests.some(({ path }) => path.startsWith('/v1/data/tags')),
    );
    await folder.write('tags.csv', 'of somebody else');
    held.resolve(null);
    const { exitCode, err } = await exporting.ended;
    assert.equal(exitCode, 1);
    assert.match(err, /tags\.csv exists already/);
    assert.equal(await folder.read('tags.csv'), 'of somebody else');
    assert.deepEqual(await folder.names('.'), ['tags.csv']);
  });

  test('a database and its files are never replaced, under any name', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    await api.upload('tags', [leastRecord('tags')]);
    const database = running.headgate.database.replace('sqlite:', '');
    const other = join(folder.path, 'other.db');
    await folder.runWithin('orgs', 'create', 'acme', '--database', other);
    await symlink(database, join(folder.path, 'symbolic'));
    await link(database, join(dirname(database), 'hard'));
    const names = [
      database,
      join(dirname(database), '..', basename(dirname(database)), basename(database)),
      join(folder.path, 'symbolic'),
      join(dirname(database), 'hard'),
      `${database}-wal`,
      `${database}-shm`,
      `${database}-journal`,
      other,
      `${other}-wal`,
    ];
    for (const out of names) {
      for (const force of [[], ['--force']]) {
        const refused = await runWithin(folder.environment, 'export', 'tags', '--out', out, ...force);
        assert.equal(refused.exitCode, 1, out);
        assert.match(refused.err, /(is|belongs to) a database, which an export never replaces/);
      }
    }
    assert.deepEqual(await folder.names('.'), ['other.db', 'symbolic']);
    const { status } = await api.upload('tags', [leastRecord('tags')]);
    assert.equal(status, 200);
    assert.deepEqual(await testDatabases[0]!.damages(running.headgate.database), []);
  });

  test('a folder cannot be the target', async (t) => {
    const { folder } = await asNewOrganisation(t);
    await folder.write('folder/file', 'x');
    const { exitCode, err } = await folder.runWithin('export', 'tags', '--out', 'folder');
    assert.equal(exitCode, 1);
    assert.match(err, /^headgate: folder cannot be written: /);
    assert.deepEqual(await folder.names('.'), ['folder']);
  });
});

describe('errors of an export', () => {
  test('a wrong command line, a missing folder and an unreachable server are reported', async (t) => {
    const { folder } = await asNewOrganisation(t);
    const wrong: [args: string[], exitCode: number, sentence: RegExp][] = [
      [['shosp'], 2, /TYPE must be a record type or user-interactions, not "shosp"; did you mean shops\?/],
      [['shops', '--format', 'xml'], 2, /--format must be one of csv, ndjson, parquet, not "xml"/],
      [
        ['shops', '--format', 'csv', '--out', 'shops.ndjson'],
        2,
        /name of a ndjson file, and the format is csv/,
      ],
      [['shops', '--out', 'shops.csv.zst'], 2, /packs with gzip only/],
      [['shops', '--out', 'none/shops.csv'], 1, /none\/shops\.csv cannot be written/],
      [['shops', '--url', 'http://127.0.0.1:9'], 1, /Is the server running there\?/],
    ];
    for (const [args, exitCode, sentence] of wrong) {
      const ran = await runWithin(folder.environment, 'export', ...args);
      assert.deepEqual([ran.exitCode, ran.out], [exitCode, ''], ran.err);
      assert.match(ran.err, sentence);
    }
    assert.deepEqual(await folder.names('.'), []);
  });

  test('an interrupted export leaves the old file unchanged and no part of a new one', async (t) => {
    const { folder, api } = await asNewOrganisation(t);
    const proxy = await startFaultyProxy(running.headgate.url);
    t.after(() => proxy.close());
    const records = Array.from({ length: 1500 }, () => leastRecord('tags'));
    await api.upload('tags', records);
    await folder.write('tags.csv', 'an earlier one');
    const second = () => proxy.requests.some(({ path }) => path.includes('cursor='));
    proxy.fault = ({ path }) => (path.includes('cursor=') ? 'silence' : null);
    const exporting = folder.start('export', 'tags', '--out', 'tags.csv', '--force', '--url', proxy.url);
    await waitUntil('it asks for the second page', second);
    exporting.child.kill('SIGINT');
    const { exitCode, err } = await exporting.ended;
    assert.equal(exitCode, 1);
    assert.match(err, /the export was interrupted; tags\.csv was not written/);
    assert.equal(await folder.read('tags.csv'), 'an earlier one');
    assert.deepEqual(await folder.names('.'), ['tags.csv']);

    proxy.fault = () => null;
    assert.equal((await folder.runWithin('export', 'tags', '--out', 'tags.csv', '--force')).exitCode, 0);
    assert.equal((await folder.read('tags.csv')).trimEnd().split('\n').length, 1501);
  });
});
