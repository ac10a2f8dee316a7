// `headgate load` with real files against a real server. It runs as a process of its own, or within this one if that makes
// no difference.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { recordTypes } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { csvLine } from '../server/cli/csv-lines.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { apiOf } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { commandLine } from './harness/headgate.ts';
import { csvOf, loadFolder } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { fullRecord, idOf, type TestRecord } from './harness/records.ts';
import { type RunningHeadgate, runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram } from './harness/waiting.ts';

const shopColumns = ['shop_id', 'name', 'region'];

function shopRows(count: number): string[][] {
  return Array.from({ length: count }, (_, at) => [randomUUID(), `Shop ${at}`, 'GB']);
}

/** Makes a folder to load from, for a new organisation. */
async function asNewOrganisation(t: TestContext, running: RunningHeadgate, scopes: readonly string[] = []) {
  const { headgate } = running;
  const { key } = await headgate.newKey(undefined, scopes);
  const folder = await loadFolder(t, { HEADGATE_URL: headgate.url, HEADGATE_KEY: key });
  return { folder, key, api: apiOf(headgate.url, key) };
}

const packings: Readonly<Record<string, (text: string) => string | Buffer>> = {
  'csv.gz': gzipSync,
  csv: (text) => text,
  'ndjson.zst': zstdCompressSync,
  'json.br': brotliCompressSync,
  'jsonl.gz': gzipSync,
  json: (text) => text,
};

function written(records: readonly TestRecord[], ending: string): string | Buffer {
  const names = Object.keys(records[0]!);
  const text = ending.startsWith('csv')
    ? csvLine(names) + records.map((record) => csvLine(names.map((name) => record[name] as string))).join('')
    : ending.startsWith('json.') || ending === 'json'
      ? JSON.stringify({ records })
      : records.map((record) => `${JSON.stringify(record)}\n`).join('');
  return packings[ending]!(text);
}

const onSqlite = runningHeadgate(testDatabases[0]!);

forEachStore((store) => {
  const running = store === testDatabases[0] ? onSqlite : runningHeadgate(store);

  test('a folder with every type, in any format, is loaded so that every reference is found', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    const ids: Record<string, string> = {};
    const endings = Object.keys(packings);
    const expected: Record<string, TestRecord[]> = {};
    for (const [place, type] of uploadOrder(recordTypes).entries()) {
      const references = Object.entries(recordTypes[type].fields).flatMap(([name, { references: target }]) =>
        typeof target === 'string' ? [[name, ids[target]]] : [],
      );
      const given = Object.fromEntries(references);
      const records = [fullRecord(type, given), fullRecord(type, { ...given, is_deleted: false })];
      ids[type] = idOf(type, records[0]!);
      expected[type] = records;
      const ending = endings[place % endings.length]!;
      await folder.write(`data/${type.replace('-', '_')}.part.${ending}`, written(records, ending));
    }
    const interaction = {
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: ids.shops,
      event_timestamp: 1_700_000_000,
    };
    await folder.write('data/user-interactions.json', JSON.stringify({ interactions: [interaction] }));
    await folder.write('data/notes.txt', 'nothing to load');

    const { exitCode, out, err } = await folder.run('load', 'data');
    assert.equal(exitCode, 0, err);
    assert.match(err, /^skipped.*: data\/notes\.txt$/m);
    assert.match(out, /^total +29 +29 +0 +0 +0$/m);
    for (const [type, records] of Object.entries(expected)) {
      const stored = await readAllRecords(api, type, '&include_deleted=true');
      const key = recordTypes[type as keyof typeof recordTypes].key;
      const byId = (one: TestRecord, other: TestRecord) => (String(one[key]) < String(other[key]) ? -1 : 1);
      assert.deepEqual(stored.sort(byId), records.sort(byId), type);
    }
    const [recorded] = await readAllInteractions(api);
    assert.partialDeepStrictEqual(recorded, interaction);
    assert.deepEqual(await folder.names('rejected'), [], 'nothing is left behind');

    const again = await folder.json('load', 'data');
    assert.deepEqual([again.total.unchanged, again.total.created], [29, 0]);
    assert.equal((await readAllInteractions(api)).length, 1, 'nothing is recorded twice');
  });
});

describe('loaded and rejected records', () => {
  const running = onSqlite;

  test('rejected records are named by file and line, and load once they are corrected', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    const [good, noName, badRegion] = [randomUUID(), randomUUID(), randomUUID()];
    await folder.write(
      'shops.csv',
      `shop_id,name,region,is_public\n${good},"A, ""b""\nc",GB,TRUE\n${noName},,GB,\n${badRegion},B,Britain,maybe\n`,
    );
    const first = await folder.runWithin('load', 'shops.csv');
    assert.equal(first.exitCode, 1, first.err);
    assert.match(first.out, /^shops +3 +1 +0 +0 +2$/m);
    assert.match(first.out, /shops: 1 rejected as required\..*\n +shops\.csv:4 +name is required/);
    assert.match(first.out, /shops\.csv:5 +region must be a two-letter country code/);
    assert.match(first.out, /headgate load rejected\/shops\.ndjson/);
    assert.equal((await readAllRecords(api, 'shops'))[0]!.name, 'A, "b"\nc');

    const lines = (await folder.read('rejected/shops.ndjson')).trimEnd().split('\n');
    const [one, other] = lines.map(
      (line) => JSON.parse(line) as { record: TestRecord; errors: TestRecord[] },
    );
    assert.deepEqual(other, {
      record: { shop_id: badRegion, name: 'B', region: 'Britain', is_public: 'maybe' },
      errors: [
        { field: 'region', code: 'invalid_format', message: other!.errors[0]!.message },
        { field: 'is_public', code: 'wrong_type', message: other!.errors[1]!.message },
      ],
      file: 'shops.csv',
      line: 5,
    });

    const mended = { ...one, record: { ...one!.record, name: 'Mended' } };
    await folder.write('rejected/shops.ndjson', `${JSON.stringify(mended)}\n${JSON.stringify(other)}\n`);
    const second = await folder.jsonWithin('load', 'rejected');
    assert.deepEqual([second.total.created, second.total.rejected], [1, 1]);
    assert.deepEqual(await folder.names('rejected'), ['shops.ndjson']);
    const [still, ...more] = (await folder.read('rejected/shops.ndjson')).trimEnd().split('\n');
    assert.deepEqual([(JSON.parse(still!) as { record: unknown }).record, more], [other!.record, []]);

    const all = { ...other, record: { shop_id: badRegion, name: 'B', region: 'GB' } };
    await folder.write('rejected/shops.ndjson', `${JSON.stringify(all)}\n`);
    const third = await folder.runWithin('load', 'rejected/shops.ndjson');
    assert.equal(third.exitCode, 0, third.err);
    assert.deepEqual(await folder.names('rejected'), [], 'all of them are accepted now');
    assert.equal((await readAllRecords(api, 'shops')).length, 3);
  });

  test('rejected records of an earlier load are set aside, never mixed up or lost', async (t) => {
    const { folder } = await asNewOrganisation(t, running);
    await folder.write('one/shops.csv', csvOf(shopColumns, [['bad', 'One', 'GB']]));
    await folder.write('two/shops.csv', csvOf(shopColumns, [['bad', 'Two', 'GB']]));
    await folder.runWithin('load', 'one');
    const { set_aside } = await folder.jsonWithin('load', 'two');
    assert.deepEqual(set_aside, ['rejected/shops.earlier-1.ndjson']);
    assert.match(await folder.read('rejected/shops.earlier-1.ndjson'), /"name":"One"/);
    assert.match(await folder.read('rejected/shops.ndjson'), /"name":"Two"/);
    const both = await folder.jsonWithin('load', 'rejected');
    assert.equal(both.total.rejected, 2);
    assert.deepEqual(await folder.names('rejected'), ['shops.ndjson']);
  });

  test('a file of the user is never overwritten with rejected records', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    const own = `${JSON.stringify({ shop_id: 'bad', name: 'One', region: 'GB' })}\n`;
    await folder.write('shops.ndjson', own);
    const { exitCode, err } = await folder.runWithin('load', '.', '--rejected', '.');
    assert.equal(exitCode, 2);
    assert.match(err, /would be written to shops\.ndjson, which contains something else.*--rejected/);
    assert.equal(await folder.read('shops.ndjson'), own);
    assert.equal((await readAllRecords(api, 'shops')).length, 0);
  });

  test('a dry run writes nothing, and does not reject references to records of the load', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    const shops = shopRows(2);
    const branch = (shop: string) => [randomUUID(), shop, 'Branch', 'GB'];
    await folder.write('data/shops.csv', csvOf(shopColumns, [...shops, ['bad', 'x', 'GB']]));
    await folder.write(
      'data/branches.csv',
      csvOf(['branch_id', 'shop_id', 'name', 'region'], [branch(shops[0]![0]!), [...branch('bad')]]),
    );
    const { types, total } = await folder.jsonWithin('load', 'data', '--dry-run');
    assert.deepEqual(
      types.map(({ type, created, rejected, unchecked }) => [type, created, rejected, unchecked]),
      [
        ['shops', 2, 1, 0],
        ['branches', 0, 1, 1],
      ],
    );
    assert.equal(total.received, 5);
    assert.equal((await readAllRecords(api, 'shops')).length, 0);
    assert.deepEqual(await folder.names('rejected'), []);
    const { exitCode, out } = await folder.runWithin('load', 'data', '--dry-run');
    assert.equal(exitCode, 1);
    assert.match(out, /Dry run: nothing was stored/);
    assert.match(out, /1 branches could not be checked: they refer to records of this run/);
  });

  test('lines that are not interactions are rejected like invalid ones', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    const [shop] = shopRows(1);
    await folder.write('d/shops.csv', csvOf(shopColumns, [shop!]));
    const good = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop![0], event_timestamp: 1 };
    await folder.write('d/user-interactions.ndjson', `5\n[]\n${JSON.stringify(good)}\n{}\n`);
    const { total, rejected_files } = await folder.jsonWithin('load', 'd');
    assert.deepEqual([total.created, total.rejected], [2, 3]);
    assert.deepEqual(rejected_files, ['rejected/user-interactions.ndjson']);
    const lines = (await folder.read(rejected_files[0]!)).trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { line: number }).line),
      [1, 2, 4],
    );
    assert.equal((await readAllInteractions(api)).length, 1);
  });

  test('unknown columns are dropped and counted in a lenient load', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    await folder.write(
      'shops.csv',
      csvOf([...shopColumns, 'colour', 'cell', 'toJSON'], [[...shopRows(1)[0]!, 'red', 'x', 'y']]),
    );
    assert.equal((await folder.runWithin('load', 'shops.csv')).exitCode, 2);
    const { exitCode, out } = await folder.runWithin('load', 'shops.csv', '--lenient');
    assert.equal(exitCode, 0);
    assert.match(out, /shops\.colour +1 time/);
    assert.equal((await readAllRecords(api, 'shops')).length, 1);
  });

  test('a broken line far into a file is named, the lines before are kept, and the load resumes there', async (t) => {
    const brokenLine = times(70_000, 12_000);
    const count = brokenLine + 10;
    const { folder, api } = await asNewOrganisation(t, running);
    const rows = shopRows(count);
    const lines = csvOf(shopColumns, rows).split('\n');
    await folder.write(
      'shops.csv',
      lines.map((line, at) => (at === brokenLine - 1 ? line.replace('Shop', '"Shop') : line)).join('\n'),
    );
    const broken = await folder.runWithin('load', 'shops.csv');
    assert.equal(broken.exitCode, 2);
    assert.match(
      broken.err,
      new RegExp(
        `^headgate: shops\\.csv, line ${brokenLine}: the quote that is opened here is never closed$`,
        'm',
      ),
    );
    assert.match(
      broken.err,
      new RegExp(
        `all ${brokenLine - 2} records before that are settled.*Correct it, then run the same command again`,
      ),
    );
    assert.equal((await readAllRecords(api, 'shops')).length, brokenLine - 2);

    await folder.write('shops.csv', lines.join('\n'));
    const mended = await folder.runWithin('load', 'shops.csv');
    assert.equal(mended.exitCode, 0, mended.err);
    const shown = count.toLocaleString('en');
    assert.match(mended.err, new RegExp(`resuming at line ${brokenLine.toLocaleString('en')}`));
    assert.match(mended.out, new RegExp(`^shops +${shown} +${shown} +0 +0 +0$`, 'm'));
    assert.equal((await readAllRecords(api, 'shops')).length, count);
    assert.deepEqual(await folder.names('rejected'), []);
  });

  test('a file that was changed before the broken line starts over, as with --restart', async (t) => {
    const { folder } = await asNewOrganisation(t, running);
    const rows = shopRows(3);
    const good = csvOf(shopColumns, rows);
    await folder.write('shops.csv', `${good}x\n`);
    await folder.runWithin('load', 'shops.csv');
    await folder.write('shops.csv', good.replace('Shop 0', 'Changed'));
    const changed = await folder.runWithin('load', 'shops.csv');
    assert.match(
      changed.err,
      /shops\.csv has changed since it was partly loaded; the load starts from the beginning/,
    );
    assert.match(changed.out, /^shops +3 +0 +1 +2 +0$/m);

    await folder.write('shops.csv', `${good}bad,x,GB\nx\n`);
    await folder.runWithin('load', 'shops.csv');
    await folder.write('shops.csv', good);
    const { total } = await folder.jsonWithin('load', 'shops.csv', '--restart');
    assert.deepEqual([total.received, total.rejected], [3, 0]);
    assert.deepEqual(await folder.names('rejected'), [], 'rejected records of the earlier load are left');
  });

  test('the records before the end of a truncated file are kept', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    const packed = gzipSync(csvOf(shopColumns, shopRows(20_000)));
    await folder.write('shops.csv.gz', packed.subarray(0, packed.length - 100_000));
    const { exitCode, err } = await folder.runWithin('load', 'shops.csv.gz');
    assert.equal(exitCode, 2);
    assert.match(err, /shops\.csv\.gz: its gzip data ends too early: the file is truncated/);
    const kept = (await readAllRecords(api, 'shops')).length;
    assert.ok(kept > 5000 && kept < 20_000, String(kept));
    await folder.write('shops.csv.gz', packed);
    assert.equal((await folder.jsonWithin('load', 'shops.csv.gz')).total.received, 20_000);
    assert.equal((await readAllRecords(api, 'shops')).length, 20_000);
  });

  test('a missing scope is named, and the types that the key may write are loaded', async (t) => {
    const { folder } = await asNewOrganisation(t, running, ['data:write:shops', 'data:read']);
    const [shop] = shopRows(1);
    await folder.write('d/shops.csv', csvOf(shopColumns, [shop!]));
    await folder.write('d/tags.csv', csvOf(['tag_id', 'name'], [[randomUUID(), 'x']]));
    const { exitCode, out, err } = await folder.runWithin('load', 'd');
    assert.equal(exitCode, 2);
    assert.match(
      err,
      /d\/tags\.csv: This key lacks the scope data:write or data:write:tags; ask the operator/,
    );
    assert.match(out, /^shops +1 +1/m);
  });

  test('a wrong key is reported, and a key file is read', async (t) => {
    const { headgate } = running;
    const { key } = await headgate.newKey();
    const wrong = await loadFolder(t, { HEADGATE_URL: headgate.url, HEADGATE_KEY: 'hg_000000000000_wrong' });
    await wrong.write('shops.csv', csvOf(shopColumns, shopRows(1)));
    const refused = await wrong.runWithin('load', 'shops.csv');
    assert.equal(refused.exitCode, 2);
    assert.match(refused.err, /does not accept the API key: it is wrong, expired or revoked/);
    await wrong.write('key', `${key}\n`);
    assert.equal((await wrong.runWithin('load', 'shops.csv', '--key-file', 'key')).exitCode, 0);
    await wrong.write('key', 'two words');
    const bad = await wrong.runWithin('load', 'shops.csv', '--key-file', 'key');
    assert.match(bad.err, /key file "key" must hold an API key/);
    assert.doesNotMatch(bad.err, /two words/);
  });

  test('on a terminal the progress bar fits the width, and the file’s line stays', async (t) => {
    if (!(await hasProgram('script'))) return t.skip('there is no script(1) to make a terminal with');
    const { folder } = await asNewOrganisation(t, running);
    await folder.write('shops.csv', csvOf(shopColumns, shopRows(20_000)));
    const command = commandLine(['load', 'shops.csv']).map((word) => `'${word}'`);
    await folder.write('run.sh', `stty cols 60; ${command.join(' ')}`);
    const env = { ...process.env, ...folder.environment };
    const inTerminal = promisify(execFile)('script', ['-qec', 'sh run.sh', '/dev/null'], {
      cwd: folder.path,
      env,
      timeout: 60_000,
    });
    const { stdout: screen } = await inTerminal;
    const drawn = screen.split('\r\u001b[2K').filter((line) => line.includes('█'));
    assert.ok(drawn.length > 0, screen);
    assert.ok(drawn.every((line) => [...line.split('\n')[0]!].length < 60));
    assert.match(screen, /shops\.csv: 20,000 records in .*, 20,000 accepted, 0 rejected/);
  });
});

describe('a server with a lower limit of records per request', () => {
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_MAX_RECORDS: '1000' });

  test('gets all records within its limit', async (t) => {
    const { folder, api } = await asNewOrganisation(t, running);
    const rows = [...shopRows(5500), ['bad', 'x', 'GB'], ...shopRows(10)];
    await folder.write('shops.csv', csvOf(shopColumns, rows));
    const { exitCode, out, err } = await folder.run('load', 'shops.csv');
    assert.equal(exitCode, 1, err);
    assert.match(out, /^shops +5,511 +5,510 +0 +0 +1$/m);
    assert.match(out, /shops\.csv:5502 +shop_id must be/);
    assert.equal((await readAllRecords(api, 'shops')).length, 5510);
  });
});
