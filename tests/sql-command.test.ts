// `headgate sql` and the client's `sqlStream`, on a real server.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { BrokenOffError, HeadgateClient, RefusedError, UnreachableError } from '@headgate/client/client.ts';
import { whyFailed } from '../server/cli/connect.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { type Api, apiOf } from './harness/api.ts';
import { commandLine } from './harness/headgate.ts';
import { type LoadFolder, loadFolder, type Ran } from './harness/loading.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram } from './harness/waiting.ts';

const withoutScript = (await hasProgram('script')) ? false : 'this machine has no script';
/** Its last row cannot be read as a number, so that it fails after the first rows were sent. */
const FAILS_LATE =
  "SELECT (CASE WHEN range = 1999999 THEN 'x' ELSE range::VARCHAR END)::INTEGER AS n FROM range(2000000)";

describe('headgate sql', () => {
  const running = runningHeadgate(testDatabases[0]!);

  async function newSetting(
    t: TestContext,
    scopes?: readonly string[],
  ): Promise<{ folder: LoadFolder; api: Api; sql(...args: string[]): Promise<Ran> }> {
    const { key } = await running.headgate.newKey(undefined, scopes);
    const { url } = running.headgate;
    const folder = await loadFolder(t, { HEADGATE_URL: url, HEADGATE_KEY: key });
    return { folder, api: apiOf(url, key), sql: (...args) => folder.run('sql', ...args) };
  }

  /** Runs it on a terminal of the width. */
  async function onTerminal(folder: LoadFolder, width: number, ...args: string[]): Promise<string> {
    const command = commandLine(['sql', ...args]).map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    const { stdout } = await promisify(execFile)(
      'script',
      ['-qec', `stty cols ${width}; ${command.join(' ')}`, '/dev/null'],
      { env: { ...process.env, ...folder.environment } },
    ).catch((error: { stdout: string }) => error);
    return stdout.replaceAll('\r\n', '\n');
  }

  test('prints a table, the number of rows, and up to where the query has seen the data', async (t) => {
    const { api, sql } = await newSetting(t);
    await api.upload('shops', [
      leastRecord('shops', { name: 'Corner Books', region: 'GB' }),
      leastRecord('shops', { name: 'Harbour\u001b[31m Coffee', region: 'IE' }),
    ]);
    await api.upload('tags', [leastRecord('tags')]);
    const { exitCode, out, err } = await sql(
      'SELECT name, region, length(name) AS letters, created FROM shops ORDER BY name',
    );
    assert.equal(exitCode, 0, err);
    assert.equal(
      out,
      [
        'name                      region  letters  created',
        '────────────────────────  ──────  ───────  ───────',
        'Corner Books              GB           12',
        'Harbour\\u001b[31m Coffee  IE           19',
        '',
      ].join('\n'),
    );
    assert.equal(err, '2 rows, as of entry 2\n');
    const one = await sql('SELECT count(*) AS n FROM tags');
    assert.deepEqual([one.out, one.err], ['n\n─\n1\n', '1 row, as of entry 2\n']);
  });

  test('says that there are more rows than a table has', async (t) => {
    const { sql } = await newSetting(t);
    const { exitCode, out, err } = await sql('SELECT range FROM range(10001)');
    assert.deepEqual([exitCode, out.split('\n').length], [0, 10_003]);
    assert.match(err, /^10,000 rows, as of entry 0\nthere are more rows .* --format csv has all of them\n$/);
  });

  test('passes on CSV, NDJSON, Parquet and JSON', async (t) => {
    const { sql, folder } = await newSetting(t);
    const query = "SELECT range AS n, 'a, b' AS t FROM range(2)";
    const run = async (format: string): Promise<string> => {
      const { exitCode, out, err } = await sql(query, '--format', format);
      assert.deepEqual([exitCode, err], [0, '']);
      return out;
    };
    assert.equal(await run('csv'), 'n,t\n0,"a, b"\n1,"a, b"\n');
    assert.equal(await run('ndjson'), '{"n":0,"t":"a, b"}\n{"n":1,"t":"a, b"}\n');
    const { rows, truncated } = JSON.parse(await run('json')) as { rows: unknown; truncated: boolean };
    const expected = [
      [0, 'a, b'],
      [1, 'a, b'],
    ];
    assert.deepEqual([rows, truncated], [expected, false]);
    const { exitCode, err } = await sql(query, '--out', 'result.parquet');
    assert.deepEqual([exitCode, err], [0, 'the result is in result.parquet\n']);
    const parquet = await readFile(join(folder.path, 'result.parquet'));
    assert.deepEqual([parquet.subarray(0, 4).toString(), parquet.subarray(-4).toString()], ['PAR1', 'PAR1']);
    const all = await sql('SELECT range FROM range(10001)', '--format', 'ndjson');
    assert.equal(all.out.split('\n').length, 10_002);
  });

  test('marks the formulas in CSV that is meant for a spreadsheet', async (t) => {
    const { sql, folder } = await newSetting(t);
    const query = 'SELECT \'=1+1\' AS "-a", -5 AS n';
    const marked = "'-a,n\n'=1+1,-5\n";
    const plain = await sql(query, '--format', 'csv');
    assert.equal(plain.out, '-a,n\n=1+1,-5\n');
    const { exitCode, out, err } = await sql(query, '--format', 'csv', '--spreadsheet-safe');
    assert.deepEqual([exitCode, out, err], [0, marked, '']);
    assert.equal((await sql(query, '--out', 'people.csv', '--spreadsheet-safe')).exitCode, 0);
    assert.equal(await folder.read('people.csv'), marked);
    for (const args of [[], ['--format', 'ndjson'], ['--out', 'people.parquet']]) {
      const misused = await sql(query, ...args, '--spreadsheet-safe');
      assert.equal(misused.exitCode, 2);
      assert.match(misused.err, /--spreadsheet-safe is for CSV; give --format csv/);
    }
    const { HEADGATE_URL: url, HEADGATE_KEY: apiKey } = folder.environment;
    const client = new HeadgateClient({ url: url!, apiKey: apiKey! });
    const { stream } = await client.sqlStream(query, [], 'csv', { spreadsheetSafe: true });
    assert.equal(await new Response(stream).text(), marked);
    await assert.rejects(client.sqlStream(query, [], 'json', { spreadsheetSafe: true }), {
      name: 'TypeError',
      message: 'spreadsheetSafe is for the format csv, not "json"',
    });
  });

  test('writes to a file, which it replaces only with --force', async (t) => {
    const { sql, folder } = await newSetting(t);
    await folder.write('result.csv', 'precious');
    const refused = await sql('SELECT 1 AS n', '--out', 'result.csv');
    assert.equal(refused.exitCode, 1);
    assert.match(refused.err, /result\.csv exists already; .*--force/);
    assert.equal(await folder.read('result.csv'), 'precious');
    assert.equal((await sql('SELECT 1 AS n', '--out', 'result.csv', '--force')).exitCode, 0);
    assert.equal(await folder.read('result.csv'), 'n\n1\n');
    assert.equal((await sql('SELECT 1 AS n', '--out', 'result.ndjson.gz')).exitCode, 0);
    const packed = await readFile(join(folder.path, 'result.ndjson.gz'));
    assert.equal(gunzipSync(packed).toString(), '{"n":1}\n');
    const toOutput = await sql('SELECT 1 AS n', '--format', 'csv', '--out', '/dev/stdout');
    assert.equal(toOutput.out, 'n\n1\n');
    for (const [args, sentence] of [
      [['--out', 'result'], /"result" is not clear; give --format csv\|ndjson\|parquet\|json/],
      [['--out', 'other.csv', '--format', 'ndjson'], /has the name of a csv file, and the format is ndjson/],
      [['--out', 'result.parquet.gz'], /Parquet is compressed already/],
      [['--format', 'xml'], /--format must be one of csv, ndjson, parquet, json, not "xml"/],
    ] as const) {
      const { exitCode, err } = await sql('SELECT 1', ...args);
      assert.equal(exitCode, 2, err);
      assert.match(err, sentence);
    }
    assert.deepEqual((await folder.names('.')).toSorted(), ['result.csv', 'result.ndjson.gz']);
  });

  test('a result that breaks off is a failure, and leaves no file', async (t) => {
    const { sql, folder } = await newSetting(t);
    for (const args of [
      ['--format', 'csv'],
      ['--out', 'result.csv'],
    ]) {
      const { exitCode, err } = await sql(FAILS_LATE, ...args);
      assert.equal(exitCode, 1);
      assert.match(err, /is not complete: the query failed, or the connection was lost/);
    }
    assert.deepEqual(await folder.names('.'), []);
    const { HEADGATE_URL: url, HEADGATE_KEY: apiKey } = folder.environment;
    const client = new HeadgateClient({ url: url!, apiKey: apiKey! });
    const { stream } = await client.sqlStream(FAILS_LATE, [], 'csv');
    await assert.rejects(new Response(stream).bytes(), BrokenOffError);
  });

  test('says why it waits if the server responds that it cannot run the query at the moment', async (t) => {
    const { folder } = await newSetting(t);
    let isFirst = true;
    const proxy = createServer(async ({ url, headers, method }, response) => {
      if (url === '/v1/sql' && isFirst) {
        isFirst = false;
        const body = { error: 'Service Unavailable', message: 'The disk is full.', request_id: randomUUID() };
        response.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '0' });
        response.end(JSON.stringify(body));
        return;
      }
      const body = method === 'POST' ? JSON.stringify({ sql: 'SELECT 5 AS n' }) : null;
      const answer = await fetch(`${running.headgate.url}${url}`, {
        method: method!,
        body,
        headers: { Authorization: headers.authorization!, 'Content-Type': 'application/json' },
      });
      response.writeHead(answer.status, { 'Content-Type': answer.headers.get('Content-Type')! });
      response.end(await answer.text());
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    t.after(() => proxy.close());
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const { exitCode, out, err } = await folder.run('sql', 'SELECT 5 AS n', '--url', url);
    assert.equal(exitCode, 0, err);
    assert.match(out, /^n\n.*5/s);
    assert.match(err, /^retrying, because http.* failed: 503 The disk is full\.$/m);
  });

  test('asks whether the server is running only if it has not answered', () => {
    const refusal = { status: 503, error: '', message: 'The disk is full.', requestId: null, details: [] };
    const answered = new UnreachableError('it failed', 1, new RefusedError(refusal, false));
    assert.equal(whyFailed(answered, 'http://a'), 'it failed');
    const silent = new UnreachableError('it failed', 1, new TypeError('fetch failed'));
    assert.equal(whyFailed(silent, 'http://a'), 'it failed. Is the server running there?');
  });

  test('a stream says what its query has seen', async (t) => {
    const { api, folder } = await newSetting(t);
    const { HEADGATE_URL: url, HEADGATE_KEY: apiKey } = folder.environment;
    const client = new HeadgateClient({ url: url!, apiKey: apiKey! });
    await api.upload('tags', [leastRecord('tags')]);
    for (const format of ['csv', 'ndjson', 'parquet', 'json'] as const) {
      const { as_of, stream } = await client.sqlStream('SELECT tag_id FROM tags', [], format);
      assert.deepEqual({ ...as_of, at: null }, { seq: 1, at: null, complete: true });
      assert.ok(Math.abs(Date.parse(as_of!.at) - Date.now()) < 60_000);
      assert.ok((await new Response(stream).bytes()).length > 0);
    }
    const withoutHeader: typeof fetch = async (...args) => {
      const response = await fetch(...args);
      const headers = new Headers(response.headers);
      headers.delete('Headgate-As-Of');
      return new Response(response.body, { headers });
    };
    const behindProxy = new HeadgateClient({ url: url!, apiKey: apiKey!, fetch: withoutHeader });
    const { as_of, stream } = await behindProxy.sqlStream('SELECT 1 AS n', [], 'csv');
    assert.equal(as_of, null);
    assert.equal(await new Response(stream).text(), 'n\n1\n');
  });

  test('reads the query from a file or from standard input', async (t) => {
    const { sql, folder } = await newSetting(t);
    await folder.write('empty.sql', '\n');
    await folder.write('query.sql', '-- A comment\nSELECT ? AS n;\n');
    const { out } = await sql('--file', 'query.sql', '--format', 'csv', '--param', '7');
    assert.equal(out, 'n\n7\n');
    const [program, ...args] = commandLine(['sql', '--file', '-', '--format', 'csv']);
    const started = promisify(execFile)(program!, args, { env: { ...process.env, ...folder.environment } });
    started.child.stdin!.end('SELECT 8 AS n');
    assert.equal((await started).stdout, 'n\n8\n');
    assert.equal((await sql('-- A = comment\nSELECT 9 AS n', '--format', 'csv')).out, 'n\n9\n');
    for (const [args, sentence] of [
      [[], /sql needs QUERY, or --file FILE/],
      [[' '], /^headgate: the query is empty$/m],
      [['--file', 'empty.sql'], /^headgate: the query is empty$/m],
      [['SELECT 1', '--file', 'query.sql'], /QUERY or --file FILE, not both/],
      [['--file', 'no.sql'], /"no\.sql" cannot be read/],
      [['SELECT 1', 'SELECT 2'], /does not take the argument "SELECT 2"/],
    ] as const) {
      const { exitCode, err } = await sql(...args);
      assert.equal(exitCode, 2, err);
      assert.match(err, sentence);
    }
  });

  test('a parameter is a number, a boolean, null or a text', async (t) => {
    const { sql } = await newSetting(t);
    const values = ['5', '1.5', 'true', 'null', 'DE', '007', '"x"', '[1]', '12345678901234567890'];
    const params = [...values.map((value) => `--param=${value}`), '--param=-2'];
    const { out, err } = await sql(
      `SELECT ${params.map((_, at) => `typeof(?) AS t${at}`).join(', ')}`,
      ...params,
      '--format',
      'csv',
    );
    const types = out.split('\n')[1]!.replaceAll('"', '').split(',');
    const text = 'VARCHAR';
    assert.deepEqual(
      types,
      ['INTEGER', 'DOUBLE', 'BOOLEAN', 'NULL', text, text, text, text, text, 'INTEGER'],
      err,
    );
  });

  test('an error of the query is shown with its line and a caret under the place', async (t) => {
    const { sql, folder } = await newSetting(t);
    await folder.write('query.sql', 'SELECT name,\n  nam\nFROM shops');
    for (const args of [[], ['--format', 'csv'], ['--out', 'a.parquet']]) {
      const { exitCode, out, err } = await sql('--file', 'query.sql', ...args);
      assert.deepEqual([exitCode, out], [1, '']);
      assert.match(err, /^headgate: .*"nam" not found/);
      assert.ok(err.endsWith('\nline 2:   nam\n          ^\n'), err);
    }
    const missing = await sql('SELECT ?');
    assert.deepEqual(
      [missing.exitCode, missing.err],
      [1, 'headgate: The query has 1 parameter, but params has 0 values.\n'],
    );
  });

  test('a key without the scope is refused', async (t) => {
    const { sql } = await newSetting(t, ['data:read']);
    for (const args of [[], ['--format', 'csv']]) {
      const { exitCode, err } = await sql('SELECT 1', ...args);
      assert.equal(exitCode, 1);
      assert.match(err, /analytics:read.*; ask the operator for a key that has it/);
    }
  });

  test('on a terminal, a table fits its width', { skip: withoutScript }, async (t) => {
    const { folder } = await newSetting(t);
    const query = "SELECT lpad('', 100, 'x') AS long, 123456789 AS n, lpad('', 100, 'y') AS other";
    const shown = await onTerminal(folder, 60, query);
    assert.deepEqual(shown.split('\n'), [
      `long${' '.repeat(29)}n  other`,
      `${'─'.repeat(23)}  ${'─'.repeat(9)}  ${'─'.repeat(23)}`,
      `${'x'.repeat(22)}…  123456789  ${'y'.repeat(22)}…`,
      '1 row, as of entry 0',
      'values that end in … are cut; --format csv has them in full',
      '',
    ]);
    const narrow = await onTerminal(folder, 20, 'SELECT 123456789 AS n, 1234567890 AS m');
    assert.match(narrow, /there is no room for m; select fewer columns/);
  });

  test('a terminal gets printable text, and no Parquet', { skip: withoutScript }, async (t) => {
    const { folder } = await newSetting(t);
    const csv = await onTerminal(folder, 80, "SELECT 1 AS n, chr(27) || '[31m' AS t", '--format', 'csv');
    assert.equal(csv, 'n,t\n1,\\u001b[31m\n');
    const json = await onTerminal(folder, 80, 'SELECT 1 AS n', '--format', 'json');
    assert.match(json, /^\{"columns":.*\}\n$/);
    const parquet = await onTerminal(folder, 80, 'SELECT 1', '--format', 'parquet');
    assert.match(parquet, /a terminal cannot show Parquet; give --out FILE\.parquet/);
  });
});
