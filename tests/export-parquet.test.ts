// `headgate export --format parquet`, the real executable against a real server. DuckDB reads its files back.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import {
  DuckDBBlobValue,
  DuckDBDateValue,
  DuckDBInstance,
  DuckDBTimestampTZValue,
  DuckDBUUIDValue,
  type DuckDBValue,
} from '@duckdb/node-api';
import type { Fields } from '@headgate/catalogue/declaration.ts';
import type { KindName } from '@headgate/catalogue/kinds/kind.ts';
import { recordTypes, storedInteraction } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { type Api, apiOf } from './harness/api.ts';
import { startFaultyProxy } from './harness/faulty-proxy.ts';
import { commandLine } from './harness/headgate.ts';
import { type LoadFolder, loadFolder, runWithin } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { fullRecord, idOf, leastRecord, type TestRecord } from './harness/records.ts';
import { rejected } from './harness/rejected.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram, waitUntil } from './harness/waiting.ts';

const withoutScript = (await hasProgram('script')) ? false : 'this machine has no script';
const types = [...uploadOrder(recordTypes), 'user-interactions'];

const awkwardTexts = ['a, "b"\r\nc\n', ' ', "it's\ttab\\", 'null', '007', '\ufeffé🎓', '=1+1', '{"a":[1]}'];
const awkwardNumbers = [0.1, 1e21, 5e-324, 123_456_789.125, 2 ** 53 + 2];
const awkwardTimes = [
  '2024-05-01T09:30:00.123456Z',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999Z',
  '1969-12-31T23:59:59.999999Z',
];
const awkwardDates = ['0001-01-01', '1969-12-31', '2000-02-29', '9999-12-31'];

/** The columns of a Parquet file, by the kinds of the fields. */
const expectedTypes: Readonly<Record<KindName, string>> = {
  uuid: 'UUID',
  'date-time': 'TIMESTAMP WITH TIME ZONE',
  date: 'DATE',
  region: 'VARCHAR',
  text: 'VARCHAR',
  number: 'DOUBLE',
  boolean: 'BOOLEAN',
  choice: 'VARCHAR',
  'event-timestamp': 'VARCHAR',
};

function fieldsOf(type: string): Fields {
  return type === 'user-interactions' ? storedInteraction : recordTypes[type as 'shops'].fields;
}

/** Returns good records with values that are easily misread, and one with the required fields only. */
function awkwardRecords(type: 'shops', references: TestRecord): TestRecord[] {
  const records = awkwardTexts.map((text, at) => {
    const cycle = <Value>(values: readonly Value[]): Value => values[at % values.length]!;
    const values = Object.entries(fieldsOf(type)).flatMap(([name, { kind }]): [string, unknown][] => {
      if (kind.name === 'text') return [[name, text]];
      if (kind.name === 'date-time') return [[name, cycle(awkwardTimes)]];
      if (kind.name === 'date') return [[name, cycle(awkwardDates)]];
      const isFree =
        kind.name === 'number' && /^a number( greater than 0| of 0 or more)?$/.test(kind.accepts);
      return isFree ? [[name, cycle(awkwardNumbers)]] : [];
    });
    return fullRecord(type, { ...Object.fromEntries(values), is_deleted: at % 5 === 4, ...references });
  });
  return [...records, leastRecord(type, references)];
}

async function uploadAwkward(api: Api): Promise<void> {
  const ids: Record<string, string> = {};
  for (const type of uploadOrder(recordTypes) as 'shops'[]) {
    const references = Object.entries(fieldsOf(type)).flatMap(([name, { references: target }]) =>
      typeof target === 'string' ? [[name, ids[target]]] : [],
    );
    const records = awkwardRecords(type, Object.fromEntries(references));
    ids[type] = idOf(type, records[0]!);
    const { status, text } = await api.upload(type, records);
    assert.equal(status, 200, text);
  }
  for (const [at, event_timestamp] of [1_700_000_000, '2024-05-01T09:30:00.5+02:00'].entries()) {
    const interaction = {
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: ids.shops,
      city: awkwardTexts[at],
      event_timestamp,
      ...(at === 0 ? {} : { source: 'SERVICE', recommendation_id: randomUUID() }),
    };
    assert.equal((await api.record(interaction)).status, 201);
  }
}

interface ReadBack {
  /** DuckDB's type of each column. */
  readonly types: Readonly<Record<string, string>>;
  readonly rows: readonly Readonly<Record<string, DuckDBValue>>[];
}

/** Reads a file with a DuckDB of its own, in another time zone than UTC. */
async function readBack(path: string): Promise<ReadBack> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await connection.run(`SET TimeZone = 'Asia/Tokyo'`);
    const described = await connection.runAndReadAll('DESCRIBE FROM read_parquet(?)', [path]);
    const [names, columnTypes] = described.getColumns() as [string[], string[]];
    // DuckDB's library drops a byte order mark at the beginning of a text, so the bytes are read.
    const columns = names.map((name, at) =>
      columnTypes[at] === 'VARCHAR' ? `encode("${name}") AS "${name}"` : `"${name}"`,
    );
    const reader = await connection.runAndReadAll(`SELECT ${columns.join(', ')} FROM read_parquet(?)`, [
      path,
    ]);
    return {
      types: Object.fromEntries(names.map((name, at) => [name, columnTypes[at]!])),
      rows: reader
        .getRowObjects()
        .map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, textOr(value)]))),
    };
  } finally {
    connection.disconnectSync();
    instance.closeSync();
  }
}

function textOr(value: DuckDBValue): DuckDBValue {
  return value instanceof DuckDBBlobValue ? Buffer.from(value.bytes).toString() : value;
}

function microsOf(text: string): bigint {
  const [, toTheSecond, fraction] = /^(.*?)(?:\.(\d+))?Z$/.exec(text)!;
  return BigInt(Date.parse(`${toTheSecond}Z`)) * 1000n + BigInt((fraction ?? '').padEnd(6, '0'));
}

/** Checks that the rows are the records, with every value in the type of its kind. */
function assertRows(rows: ReadBack['rows'], records: readonly TestRecord[], type: string): void {
  assert.equal(rows.length, records.length);
  const fields = Object.entries(fieldsOf(type));
  const key = type === 'user-interactions' ? 'interaction_id' : recordTypes[type as 'shops'].key;
  const byId = new Map(rows.map((row) => [String(row[key]), row]));
  for (const record of records) {
    const row = byId.get(record[key] as string)!;
    for (const [name, { kind }] of fields) {
      const [value, read] = [record[name], row[name]];
      const what = `${type}.${name} of ${String(record[key])}`;
      if (value === null) assert.equal(read, null, what);
      else if (kind.name === 'uuid') {
        assert.ok(read instanceof DuckDBUUIDValue, what);
        assert.equal(read.toString(), value, what);
      } else if (kind.name === 'date-time') {
        assert.ok(read instanceof DuckDBTimestampTZValue, what);
        assert.equal(read.micros, microsOf(value as string), what);
      } else if (kind.name === 'date') {
        assert.ok(read instanceof DuckDBDateValue, what);
        assert.equal(read.days, Date.parse(value as string) / 86_400_000, what);
      } else if (kind.name === 'event-timestamp') assert.equal(read, String(value), what);
      else assert.equal(read, value, what);
    }
  }
}

describe('headgate export --format parquet', () => {
  const running = runningHeadgate(testDatabases[0]!);
  let awkwardKey: string;
  before(async () => {
    ({ key: awkwardKey } = await running.headgate.newKey());
    await uploadAwkward(apiOf(running.headgate.url, awkwardKey));
  });

  async function newSetting(
    t: TestContext,
    key?: string,
  ): Promise<{ folder: LoadFolder; api: Api; pathOf(name: string): string }> {
    const given = key ?? (await running.headgate.newKey()).key;
    const { url } = running.headgate;
    const folder = await loadFolder(t, { HEADGATE_URL: url, HEADGATE_KEY: given });
    return { folder, api: apiOf(url, given), pathOf: (name) => join(folder.path, name) };
  }

  test('export all writes every value of every type as it was uploaded', async (t) => {
    const { folder, api, pathOf } = await newSetting(t, awkwardKey);
    const { exitCode, err } = await folder.run('export', 'all', 'everything', '--format', 'parquet');
    assert.equal(exitCode, 0, err);
    const records = types.map((type) => `${type}.parquet`);
    assert.deepEqual(await folder.names('everything'), [...records, 'position'].sort());
    for (const type of types) {
      const { mode } = await stat(pathOf(`everything/${type}.parquet`));
      assert.equal(mode & 0o077, 0, 'only the owner can read it');
      const { types: read, rows } = await readBack(pathOf(`everything/${type}.parquet`));
      const expected = Object.entries(fieldsOf(type)).map(([name, { kind }]) => [
        name,
        expectedTypes[kind.name],
      ]);
      assert.deepEqual(Object.entries(read), expected, type);
      const uploaded =
        type === 'user-interactions'
          ? await readAllInteractions(api)
          : await readAllRecords(api, type, '&include_deleted=true');
      assertRows(rows, uploaded as TestRecord[], type);
    }
  });

  test('the file is compressed with zstd, and says that times are in UTC', async (t) => {
    const { folder, pathOf } = await newSetting(t, awkwardKey);
    const path = pathOf('shops.parquet');
    const { err } = await runWithin(folder.environment, 'export', 'shops', '--out', path);
    assert.equal(err, `8 shops are in ${path}\n`);
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const schema = await connection.runAndReadAll(
      "SELECT name, type, logical_type FROM parquet_schema(?) WHERE name IN ('shop_id', 'created') ORDER BY name",
      [path],
    );
    assert.deepEqual(schema.getRowsJson(), [
      [
        'created',
        'INT64',
        'TimestampType(isAdjustedToUTC=1, unit=TimeUnit(MILLIS=<null>, MICROS=MicroSeconds(), NANOS=<null>))',
      ],
      ['shop_id', 'FIXED_LEN_BYTE_ARRAY', 'UUIDType()'],
    ]);
    const metadata = await connection.runAndReadAll('SELECT DISTINCT compression FROM parquet_metadata(?)', [
      path,
    ]);
    assert.deepEqual(metadata.getRowsJson(), [['ZSTD']]);
    connection.disconnectSync();
  });

  test('--text-ids writes ids as texts', async (t) => {
    const { folder, api, pathOf } = await newSetting(t, awkwardKey);
    const path = pathOf('ids.parquet');
    await runWithin(folder.environment, 'export', 'branches', '--text-ids', '--out', path);
    const { types: read, rows } = await readBack(path);
    assert.deepEqual(
      [read.branch_id, read.shop_id, read.created],
      ['VARCHAR', 'VARCHAR', expectedTypes['date-time']],
    );
    const ids = (await readAllRecords(api, 'branches')).map(({ branch_id }) => branch_id);
    assert.deepEqual(
      rows.map(({ branch_id }) => branch_id),
      ids,
    );
  });

  test('deleted records, changes since a position and an empty type', async (t) => {
    const { folder, api, pathOf } = await newSetting(t);
    const [kept, deleted] = [leastRecord('tags'), leastRecord('tags', { is_deleted: true })];
    await api.upload('tags', [kept, deleted]);
    const others = Array.from({ length: 1500 }, () => leastRecord('tags'));
    await api.upload('tags', others);
    await api.upload('tags', [{ ...kept, name: 'renamed' }]);
    const exported = async (name: string, type: string, ...args: string[]): Promise<ReadBack> => {
      const { environment } = folder;
      const { exitCode, err } = await runWithin(environment, 'export', type, '--out', pathOf(name), ...args);
      assert.equal(exitCode, 0, err);
      if (args[0] === '--since')
        assert.match(err, /the position is 3; to continue from there, give --since 3/);
      return readBack(pathOf(name));
    };
    assert.equal((await exported('a.parquet', 'tags')).rows.length, 1501);
    assert.equal((await exported('b.parquet', 'tags', '--include-deleted')).rows.length, 1502);
    const { rows } = await exported('c.parquet', 'tags', '--since', '0');
    assert.equal(rows.length, 1502);
    assert.deepEqual(
      rows.filter(({ tag_id }) => String(tag_id) === kept.tag_id).map(({ name }) => name),
      ['renamed'],
    );
    const ndjson = await folder.run('export', 'tags', '--since', '0');
    assert.equal(ndjson.out.trimEnd().split('\n').length, 1503, 'as NDJSON, the renamed tag is there twice');
    const empty = await exported('empty.parquet', 'shops');
    assert.deepEqual([empty.rows.length, empty.types.shop_id], [0, 'UUID']);
  });

  test('a program gets it from standard output or a pipe, a terminal does not', {
    skip: withoutScript,
  }, async (t) => {
    const { folder, api, pathOf } = await newSetting(t);
    await api.upload('tags', [leastRecord('tags', { name: 'a' })]);
    await mkdir(pathOf('temporary'));
    const env = { ...process.env, ...folder.environment, TMPDIR: pathOf('temporary') };
    const [program, ...args] = commandLine(['export', 'tags', '--format', 'parquet']);
    const { stdout, stderr } = await promisify(execFile)(program!, args, { env, encoding: 'buffer' });
    assert.equal(stderr.toString(), '');
    await writeFile(pathOf('piped.parquet'), stdout);
    assert.deepEqual((await readBack(pathOf('piped.parquet'))).rows[0]!.name, 'a');

    await promisify(execFile)('mkfifo', [pathOf('fifo')]);
    const [read] = await Promise.all([
      readFile(pathOf('fifo')),
      promisify(execFile)(program!, [...args, '--out', pathOf('fifo')], { env }),
    ]);
    assert.deepEqual(read, stdout);

    const early = ['-c', '"$@" | head -c 4', 'bash', program!, ...args];
    assert.equal((await promisify(execFile)('bash', early, { env })).stdout, 'PAR1');
    assert.deepEqual(await folder.names('temporary'), []);

    const typed = ['-qec', [program, ...args].join(' '), '/dev/null'];
    const onTerminal = await rejected(promisify(execFile)('script', typed, { env }), Error);
    const { stdout: shown } = onTerminal as Error & { stdout: string };
    assert.match(shown, /a terminal cannot show Parquet; give --out FILE\.parquet, or another format/);
  });

  test('what makes no sense is refused with a sentence', async (t) => {
    const { folder, pathOf } = await newSetting(t);
    const run = (...args: string[]) => runWithin(folder.environment, ...args);
    await folder.write('mixed/shops.ndjson', '');
    await folder.write('only/shops.parquet', 'PAR1');
    const wrong: [args: string[], exitCode: number, sentence: RegExp][] = [
      [['tags', '--out', 'tags.parquet.gz'], 2, /Parquet is compressed already; .* not "tags\.parquet\.gz"/],
      [['tags', '--format', 'parquet', '--out', 'tags.zst'], 2, /Parquet is compressed already/],
      [
        ['tags', '--format', 'csv', '--out', 'tags.parquet'],
        2,
        /name of a parquet file, and the format is csv/,
      ],
      [['tags', '--format', 'parquet', '--out', 'a.csv'], 2, /name of a csv file, and the format is parquet/],
      [['tags', '--out', 'a.parquet', '--spreadsheet-safe'], 2, /--spreadsheet-safe is for CSV/],
      [['tags', '--text-ids'], 2, /--text-ids is for Parquet; give --format parquet/],
      [['all', pathOf('x'), '--text-ids'], 2, /--text-ids is for Parquet/],
      [['all', pathOf('x'), '--format', 'xml'], 2, /--format must be one of csv, ndjson, parquet, not "xml"/],
      [['all', pathOf('mixed'), '--format', 'parquet'], 1, /has shops\.ndjson, which is in another format/],
      [['tags', '--out', pathOf('none/tags.parquet')], 1, /none\/tags\.parquet cannot be written: ENOENT/],
    ];
    for (const [args, exitCode, sentence] of wrong) {
      const ran = await run('export', ...args);
      assert.deepEqual([ran.exitCode, ran.out], [exitCode, ''], ran.err);
      assert.match(ran.err, sentence);
    }
    const file = await run('load', pathOf('only/shops.parquet'));
    assert.equal(file.exitCode, 2);
    assert.match(file.err, /shops\.parquet: load does not read Parquet; export the records as NDJSON or CSV/);
    const inFolder = await run('load', pathOf('only'));
    assert.equal(inFolder.exitCode, 2);
    assert.match(inFolder.err, /^skipped, because load does not read Parquet; .*: .*shops\.parquet\n/);
    assert.match(inFolder.err, /there is nothing to load in .*: load does not read Parquet/);
    assert.deepEqual(await folder.names('.'), ['mixed', 'only']);
  });

  test('an interrupted export leaves the old file unchanged and no temporary files', async (t) => {
    const { folder, api, pathOf } = await newSetting(t);
    const proxy = await startFaultyProxy(running.headgate.url);
    t.after(() => proxy.close());
    await api.upload(
      'tags',
      Array.from({ length: 1500 }, () => leastRecord('tags')),
    );
    await folder.write('tags.parquet', 'an earlier one');
    await mkdir(pathOf('temporary'));
    proxy.fault = ({ path }) => (path.includes('cursor=') ? 'silence' : null);
    const env = { ...process.env, ...folder.environment, TMPDIR: pathOf('temporary') };
    const toFile = folder.start('export', 'tags', '--out', 'tags.parquet', '--force', '--url', proxy.url);
    const [program, ...args] = commandLine(['export', 'tags', '--format', 'parquet', '--url', proxy.url]);
    const toPipe = promisify(execFile)(program!, args, { env });
    const pipeFailed = rejected(toPipe, Error);
    await waitUntil('both ask for the second page', () => {
      return proxy.requests.filter(({ path }) => path.includes('cursor=')).length >= 2;
    });
    assert.ok((await folder.names('.')).some((name) => /^tags\.parquet\.\d+\.part$/.test(name)));
    toFile.child.kill('SIGINT');
    toPipe.child.kill('SIGTERM');
    const { exitCode, err } = await toFile.ended;
    assert.equal(exitCode, 1);
    assert.match(err, /the export was interrupted; tags\.parquet was not written/);
    const piped = (await pipeFailed) as Error & { code: number; stderr: string };
    assert.deepEqual([piped.code, piped.stderr], [1, 'headgate: the export was interrupted\n']);
    assert.equal(await folder.read('tags.parquet'), 'an earlier one');
    assert.deepEqual(await folder.names('.'), ['tags.parquet', 'temporary']);
    assert.deepEqual(await folder.names('temporary'), []);
  });

  test('other formats do not load DuckDB', async () => {
    const script = `
      await import('./server/cli/export.ts');
      await import('./server/cli/report.ts');
      const isLoaded = () => process.report.getReport().sharedObjects.some((path) => path.includes('duckdb'));
      const before = isLoaded();
      await import('./server/analytics/parquet-file.ts');
      console.log(before, isLoaded());`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      cwd: join(import.meta.dirname, '..'),
    });
    assert.equal(stdout, 'false true\n');
  });
});
