import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { times } from '../../store/test-thoroughness.ts';
import { BEGIN_READING } from '../duckdb.ts';
import { renderCsv, renderJson, renderNdjson } from './formats.ts';
import { QueryFailed } from './query-errors.ts';
import { type QueryParameter, type RunningQuery, runQuery } from './run-query.ts';
import { openTestReplica, type TestReplica } from './test-replica.ts';
import { dateText, timestampText } from './time-texts.ts';

let replica: TestReplica;
before(async () => {
  replica = await openTestReplica();
});
after(() => replica.close());

async function render(
  sql: string,
  format: (query: RunningQuery) => AsyncIterable<string>,
  parameters: readonly QueryParameter[] = [],
  maxRows = Number.POSITIVE_INFINITY,
): Promise<string> {
  const connection = await replica.instance.connect();
  try {
    await connection.run(BEGIN_READING);
    const query = await runQuery(connection, sql, parameters, { withinMs: 20_000, maxRows });
    assert.ok(query.kind === 'running', query.kind === 'running' ? '' : `${sql}: ${query.message}`);
    let text = '';
    for await (const piece of format(query)) text += piece;
    return text;
  } finally {
    connection.disconnectSync();
  }
}

const json = (query: RunningQuery) => renderJson(query, () => ({ ms: 5, as_of: { seq: 7 } }));

/** Each value as SQL, in JSON and in CSV. */
const values: readonly (readonly [sql: string, json: string, csv: string])[] = [
  ['NULL', 'null', ''],
  ['true', 'true', 'true'],
  ['(-5)::TINYINT', '-5', '-5'],
  ['300::SMALLINT', '300', '300'],
  ['70000', '70000', '70000'],
  ['255::UTINYINT', '255', '255'],
  ['65535::USMALLINT', '65535', '65535'],
  ['4294967295::UINTEGER', '4294967295', '4294967295'],
  ['9007199254740991', '9007199254740991', '9007199254740991'],
  ['9007199254740993', '"9007199254740993"', '9007199254740993'],
  ['-9223372036854775808', '"-9223372036854775808"', '-9223372036854775808'],
  ['18446744073709551615::UBIGINT', '"18446744073709551615"', '18446744073709551615'],
  ['5::HUGEINT', '5', '5'],
  [
    '170141183460469231731687303715884105727::HUGEINT',
    '"170141183460469231731687303715884105727"',
    '170141183460469231731687303715884105727',
  ],
  [
    '340282366920938463463374607431768211455::UHUGEINT',
    '"340282366920938463463374607431768211455"',
    '340282366920938463463374607431768211455',
  ],
  ['12::BIGNUM', '12', '12'],
  ['0.1::FLOAT', '0.1', '0.1'],
  ['16777216::FLOAT', '16777216', '16777216'],
  ['1.5::DOUBLE', '1.5', '1.5'],
  ['1e300::DOUBLE', '1e+300', '1e+300'],
  ["'-0'::DOUBLE", '-0', '-0'],
  ["'NaN'::DOUBLE", '"NaN"', 'NaN'],
  ["'infinity'::DOUBLE", '"Infinity"', 'Infinity'],
  ["'-infinity'::FLOAT", '"-Infinity"', '-Infinity'],
  ['10.20::DECIMAL(4,2)', '10.20', '10.20'],
  ['-0.05::DECIMAL(9,2)', '-0.05', '-0.05'],
  ['1234567890123.45::DECIMAL(18,2)', '1234567890123.45', '1234567890123.45'],
  ['12345678901234567.89::DECIMAL(38,2)', '"12345678901234567.89"', '12345678901234567.89'],
  ["'a'", '"a"', 'a'],
  ["''", '""', '""'],
  [
    `'say "hi", ä€😀' || chr(10) || chr(13) || chr(0)`,
    '"say \\"hi\\", ä€😀\\n\\r\\u0000"',
    '"say ""hi"", ä€😀\n\r\0"',
  ],
  ["'exactly 12 b'", '"exactly 12 b"', 'exactly 12 b'],
  ["'and thirteen.'", '"and thirteen."', 'and thirteen.'],
  ['\'{"a": 1}\'::JSON', '"{\\"a\\": 1}"', '"{""a"": 1}"'],
  ["'b'::ENUM('a', 'b')", '"b"', 'b'],
  [
    "'00112233-4455-6677-8899-aabbccddeeff'::UUID",
    '"00112233-4455-6677-8899-aabbccddeeff"',
    '00112233-4455-6677-8899-aabbccddeeff',
  ],
  [
    "'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID",
    '"ffffffff-ffff-ffff-ffff-ffffffffffff"',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
  ],
  ["TIMESTAMPTZ '2024-02-29 12:34:56+00'", '"2024-02-29T12:34:56Z"', '2024-02-29T12:34:56Z'],
  ["TIMESTAMPTZ '2024-02-29 12:34:56.7+02'", '"2024-02-29T10:34:56.700Z"', '2024-02-29T10:34:56.700Z'],
  [
    "TIMESTAMPTZ '1969-12-31 23:59:59.999999+00'",
    '"1969-12-31T23:59:59.999999Z"',
    '1969-12-31T23:59:59.999999Z',
  ],
  ["TIMESTAMPTZ 'infinity'", '"infinity"', 'infinity'],
  ["TIMESTAMP '2024-02-29 12:34:56.000001'", '"2024-02-29T12:34:56.000001"', '2024-02-29T12:34:56.000001'],
  [
    "TIMESTAMP '294247-01-10 04:00:54.775806'",
    '"+294247-01-10T04:00:54.775806"',
    '+294247-01-10T04:00:54.775806',
  ],
  ["TIMESTAMP_S '2024-02-29 12:34:56'", '"2024-02-29T12:34:56"', '2024-02-29T12:34:56'],
  ["TIMESTAMP_MS '2024-02-29 12:34:56.789'", '"2024-02-29T12:34:56.789"', '2024-02-29T12:34:56.789'],
  [
    "TIMESTAMP_NS '2024-02-29 12:34:56.123456789'",
    '"2024-02-29T12:34:56.123456789"',
    '2024-02-29T12:34:56.123456789',
  ],
  ["DATE '2024-02-29'", '"2024-02-29"', '2024-02-29'],
  ["DATE '0044-03-15 (BC)'", '"-000043-03-15"', '-000043-03-15'],
  ["DATE '-infinity'", '"-infinity"', '-infinity'],
  ["TIME '23:59:59.5'", '"23:59:59.500"', '23:59:59.500'],
  ["TIME '24:00:00'", '"24:00:00"', '24:00:00'],
  ["'12:00:00+05:30'::TIMETZ", '"12:00:00+05:30"', '12:00:00+05:30'],
  ["'12:00:00-01'::TIMETZ", '"12:00:00-01:00"', '12:00:00-01:00'],
  ["'12:00:00+00'::TIMETZ", '"12:00:00Z"', '12:00:00Z'],
  ["TIME_NS '12:00:00.000000001'", '"12:00:00.000000001"', '12:00:00.000000001'],
  ["INTERVAL '1 year 2 months 3 days 04:05:06.5'", '"P1Y2M3DT4H5M6.5S"', 'P1Y2M3DT4H5M6.5S'],
  ['INTERVAL (-1) MONTH', '"P-1M"', 'P-1M'],
  ["INTERVAL '-0.5 seconds'", '"PT-0.5S"', 'PT-0.5S'],
  ['INTERVAL 0 DAYS', '"PT0S"', 'PT0S'],
  ['INTERVAL 36 HOURS', '"PT36H"', 'PT36H'],
  ["'\\xFF\\x00'::BLOB", '"/wA="', '/wA='],
  ["'101'::BIT", '"101"', '101'],
  ["'POINT(1 2)'::GEOMETRY", '"AQEAAAAAAAAAAADwPwAAAAAAAABA"', 'AQEAAAAAAAAAAADwPwAAAAAAAABA'],
  ["['a', NULL, 'b\"']", '["a",null,"b\\""]', '"[""a"",null,""b\\""""]"'],
  ['[1, 2]::INTEGER[2]', '[1,2]', '"[1,2]"'],
  ['[]', '[]', '[]'],
  [
    "{'a': 1, 'b c': [DATE '2024-01-01'], 'n': NULL}",
    '{"a":1,"b c":["2024-01-01"],"n":null}',
    '"{""a"":1,""b c"":[""2024-01-01""],""n"":null}"',
  ],
  ["MAP {'k': 1.5::DOUBLE}", '{"k":1.5}', '"{""k"":1.5}"'],
  [
    "MAP {DATE '2024-01-01': true, DATE '2024-01-02': NULL}",
    '{"2024-01-01":true,"2024-01-02":null}',
    '"{""2024-01-01"":true,""2024-01-02"":null}"',
  ],
  ['MAP {7: 1}', '{"7":1}', '"{""7"":1}"'],
  ['[uuid()][2:]', '[]', '[]'],
  [
    "['00112233-4455-6677-8899-aabbccddeeff'::UUID]",
    '["00112233-4455-6677-8899-aabbccddeeff"]',
    '"[""00112233-4455-6677-8899-aabbccddeeff""]"',
  ],
  ["union_value(k := 'x')", '"x"', 'x'],
  ["{'a': 1}::VARIANT", '{"a":1}', '"{""a"":1}"'],
];

test('every type of value has its form in JSON and CSV', async () => {
  for (const [sql, inJson, inCsv] of values) {
    const text = await render(`SELECT ${sql} AS v`, json);
    assert.equal(text.slice(text.indexOf('"rows":') + 7, text.indexOf(',"row_count"')), `[[${inJson}]]`, sql);
    JSON.parse(text);
    assert.equal(await render(`SELECT ${sql} AS v`, renderNdjson), `{"v":${inJson}}\n`, sql);
    assert.equal(await render(`SELECT ${sql} AS v`, renderCsv), `v\n${inCsv}\n`, sql);
  }
});

test('JSON has the columns, the rows, and what is known at the end', async () => {
  assert.deepEqual(
    JSON.parse(await render('SELECT range AS n, range::VARCHAR AS t FROM range(3)', json, [], 2)),
    {
      columns: [
        { name: 'n', type: 'BIGINT' },
        { name: 't', type: 'VARCHAR' },
      ],
      rows: [
        [0, '0'],
        [1, '1'],
      ],
      row_count: 2,
      truncated: true,
      ms: 5,
      as_of: { seq: 7 },
    },
  );
  const empty = JSON.parse(await render('SELECT name FROM tags', json));
  assert.deepEqual([empty.rows, empty.row_count, empty.truncated], [[], 0, false]);
});

test('columns with the same name stay apart in NDJSON, and names are escaped', async () => {
  assert.equal(
    await render('SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS "x""y,z"', renderNdjson),
    '{"a":1,"a_2":2,"a_2_2":3,"x\\"y,z":4}\n',
  );
  assert.equal(await render('SELECT 1 AS a, 2 AS a, 4 AS "x""y,z"', renderCsv), 'a,a,"x""y,z"\n1,2,4\n');
});

test('for a spreadsheet, texts and names of columns that look like formulas are marked, and numbers are not', async () => {
  const safe = (query: RunningQuery) => renderCsv(query, true);
  for (const [sql, cell] of [
    ["'=1+1'", "'=1+1"],
    ["'-5'", "'-5"],
    [`'@SUM("a",b)'`, `"'@SUM(""a"",b)"`],
    ["chr(10) || '=1'", `"'\n=1"`],
    ["'a=1'", 'a=1'],
    ["'=b'::ENUM('=b')", "'=b"],
    ["union_value(k := '=1')", "'=1"],
    ["'=1'::VARIANT", "'=1"],
    ["'\\xFB\\xFF'::BLOB", "'+/8="],
    ["DATE '0044-03-15 (BC)'", "'-000043-03-15"],
    ['NULL', ''],
    ["''", '""'],
    ['-5', '-5'],
    ['-0.05::DECIMAL(9,2)', '-0.05'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['(-12345678901234567.89)::DECIMAL(38,2)', '-12345678901234567.89'],
    ['-1e300::DOUBLE', '-1e+300'],
    ["'-infinity'::FLOAT", '-Infinity'],
    ['[-1]', '[-1]'],
  ] as const) {
    assert.equal(await render(`SELECT ${sql} AS v`, safe), `v\n${cell}\n`, sql);
  }
  const names = 'SELECT 1 AS "=cmd|\'/c calc\'!A0", 2 AS "＋a,b", 3 AS "a=b"';
  assert.equal(await render(names, safe), `'=cmd|'/c calc'!A0,"'＋a,b",a=b\n1,2,3\n`);
  assert.equal(await render(names, renderCsv), `=cmd|'/c calc'!A0,"＋a,b",a=b\n1,2,3\n`);
});

test('nulls and texts of every length keep their places in large results', async () => {
  const sql = `
    SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE substr(md5(i::VARCHAR) || md5(i::VARCHAR) || 'ä', 1 + i % 65) END AS t,
      CASE WHEN i % 5 = 0 THEN NULL ELSE ('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID END AS u
    FROM range(10000) r(i) ORDER BY hash(i)`;
  const rows = (await render(sql, renderNdjson))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(rows.length, 10_000);
  const { createHash } = await import('node:crypto');
  for (const { i, t, u } of rows) {
    const md5 = createHash('md5').update(String(i)).digest('hex');
    assert.equal(t, i % 7 === 0 ? null : `${md5}${md5}ä`.slice(i % 65));
    assert.equal(u, i % 5 === 0 ? null : `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`);
  }
});

test('any text is the same after it was rendered and read', async () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 }).filter((value) => value.isWellFormed());
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 5 }), async (texts) => {
      const sql = `SELECT ${texts.map(() => '?').join(', ')}`;
      assert.deepEqual(JSON.parse(await render(sql, json, texts)).rows[0], texts);
      const csv = await render(sql, renderCsv, texts);
      const line = texts.map((value) =>
        value === '' || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value,
      );
      assert.ok(csv.endsWith(`\n${line.join(',')}\n`));
    }),
    { numRuns: times(100, 30) },
  );
});

test('dates and timestamps are those of JavaScript', () => {
  const maxMs = 8.64e15;
  fc.assert(
    fc.property(fc.integer({ min: -maxMs, max: maxMs }), (ms) => {
      const iso = new Date(ms).toISOString();
      assert.equal(timestampText(BigInt(ms) * 1000n, 'Z'), iso.replace('.000Z', 'Z'));
      assert.equal(dateText(Math.floor(ms / 86_400_000)), iso.slice(0, iso.indexOf('T')));
    }),
  );
});

test('a row that is too large is refused before its text is made', async () => {
  const text = "(SELECT string_agg(md5(i::VARCHAR), '') AS s FROM range(40000) t(i))";
  const rows = [
    "SELECT string_agg(md5(i::VARCHAR), '') FROM range(600000) t(i)",
    'SELECT list((i % 2)::UTINYINT) FROM range(1000000) t(i)',
    `SELECT list({'${'n'.repeat(1000)}': i}) FROM range(20000) t(i)`,
    "SELECT string_agg('1', '')::BIT FROM range(17000000)",
    `SELECT ${Array(20).fill('s').join(', ')} FROM ${text}`,
    `SELECT [${Array(20).fill('s').join(', ')}] FROM ${text}`,
    `SELECT [${Array(20).fill('s').join(', ')}]::VARCHAR[20] FROM ${text}`,
    `SELECT [[${Array(20).fill('{a: s}').join(', ')}]] FROM ${text}`,
    `SELECT map([${Array(20).keys().toArray().join(', ')}], [${Array(20).fill('s').join(', ')}]) FROM ${text}`,
    `SELECT union_value(u := [${Array(20).fill('s').join(', ')}]) FROM ${text}`,
    `SELECT [${Array(20).fill('s').join(', ')}]::VARIANT FROM ${text}`,
  ];
  for (const sql of rows) {
    await assert.rejects(
      render(sql, renderNdjson),
      (error) => error instanceof QueryFailed && error.failure.kind === 'too_large',
      sql,
    );
  }
});

test('the names of columns are made distinct without delay, however many are equal', async () => {
  const columns = Array.from({ length: 40_000 }, (_, at) => ({
    name: at === 3 ? 'a_2' : 'a',
    type: 'INTEGER',
  }));
  const startedAtMs = performance.now();
  for await (const _ of renderNdjson({ columns, types: [], rows: noRows() } as unknown as RunningQuery));
  assert.ok(performance.now() - startedAtMs < 2000);
  const [row] = (
    await render('SELECT 1 AS a, 2 AS a_2, 3 AS a, 4 AS a, 5 AS a_2, 6 AS a', renderNdjson)
  ).split('\n');
  assert.equal(row, '{"a":1,"a_2":2,"a_3":3,"a_4":4,"a_2_2":5,"a_5":6}');
});

async function* noRows(): AsyncGenerator<never> {}

test('rows of any width and length are rendered in short steps', async () => {
  const wide = Array.from({ length: 200 }, (_, column) => `now() AS c${column}`).join(', ');
  for (const sql of [
    `SELECT ${wide} FROM range(2048)`,
    'SELECT l FROM (SELECT list(i) AS l FROM range(1000) t(i)), range(2048)',
    "SELECT s FROM (SELECT string_agg('x', '') AS s FROM range(50000)), range(2048)",
  ]) {
    const connection = await replica.instance.connect();
    await connection.run(BEGIN_READING);
    const query = await runQuery(connection, sql, [], { withinMs: 20_000 });
    assert.ok(query.kind === 'running');
    const startedAtMs = performance.now();
    let longestMs = 0;
    for (let lastAtMs = startedAtMs, pieces = renderNdjson(query); ; ) {
      const { done } = await pieces.next();
      const nowMs = performance.now();
      longestMs = Math.max(longestMs, nowMs - lastAtMs);
      lastAtMs = nowMs;
      if (done) break;
    }
    const totalMs = performance.now() - startedAtMs;
    connection.disconnectSync();
    assert.ok(longestMs < totalMs / 3, `${sql}: a step took ${longestMs} of ${totalMs} ms`);
  }
});

test('a large result is rendered in small pieces, and quickly', async () => {
  const connection = await replica.instance.connect();
  await connection.run(BEGIN_READING);
  const query = await runQuery(
    connection,
    `SELECT uuid() AS id, now() + to_seconds(i) AS at, i::DOUBLE / 7 AS amount, 'a name with ' || i AS name, i % 2 = 0 AS flag
     FROM range(100000) t(i)`,
    [],
    { withinMs: 20_000 },
  );
  assert.ok(query.kind === 'running');
  let characters = 0;
  const started = performance.now();
  for await (const piece of renderNdjson(query)) {
    assert.ok(piece.length < 70_000);
    characters += piece.length;
  }
  const seconds = (performance.now() - started) / 1000;
  connection.disconnectSync();
  assert.ok(characters > 10_000_000);
  // This leaves room for a machine that is busy: alone, it is more than a million values a second.
  assert.ok(500_000 / seconds > 150_000, `${Math.round(500_000 / seconds)} values a second`);
});

test('several results are rendered in turns, so that the process does other work in between', async () => {
  const columns = Array.from({ length: 2000 }, (_, column) => `NULL AS c${column}`);
  const sql = `SELECT ${columns.join(', ')} FROM range(300)`;
  await render(sql, renderCsv);
  let longestMs = 0;
  let isOver = false;
  const watch = async (): Promise<void> => {
    while (!isOver) {
      const startedMs = performance.now();
      await setImmediate();
      longestMs = Math.max(longestMs, performance.now() - startedMs);
    }
  };
  const startedMs = performance.now();
  const watching = watch();
  await Promise.all([1, 2, 3, 4].map(() => render(sql, renderCsv)));
  isOver = true;
  await watching;
  const totalMs = performance.now() - startedMs;
  assert.ok(longestMs < totalMs / 10, `the process was busy for ${longestMs} of ${totalMs} ms at once`);
});
