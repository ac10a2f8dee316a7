import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { DuckDBConnection } from '@duckdb/node-api';
import { BEGIN_READING } from '../duckdb.ts';
import { QueryFailed } from './query-errors.ts';
import { type QueryLimits, type QueryParameter, runQuery, writeParquet } from './run-query.ts';
import { openTestReplica, type TestReplica } from './test-replica.ts';

let replica: TestReplica;
before(async () => {
  replica = await openTestReplica();
});
after(() => replica.close());

async function onConnection<Value>(use: (connection: DuckDBConnection) => Promise<Value>): Promise<Value> {
  const connection = await replica.instance.connect();
  try {
    await connection.run(BEGIN_READING);
    return await use(connection);
  } finally {
    connection.disconnectSync();
  }
}

/** Runs a query to its end. */
function run(sql: string, parameters: readonly QueryParameter[] = [], limits: Partial<QueryLimits> = {}) {
  return onConnection(async (connection) => {
    const query = await runQuery(connection, sql, parameters, { withinMs: 10_000, ...limits });
    if (query.kind !== 'running') return query;
    const rows: unknown[][] = [];
    for await (const { chunk, count } of query.rows) rows.push(...chunk.getRows().slice(0, count));
    return {
      kind: 'done' as const,
      columns: query.columns,
      rows,
      rowCount: query.rowCount(),
      isTruncated: query.isTruncated(),
    };
  });
}

async function rowsOf(sql: string, parameters: readonly QueryParameter[] = []): Promise<unknown[][]> {
  const done = await run(sql, parameters);
  assert.equal(done.kind, 'done', sql);
  return done.kind === 'done' ? done.rows : [];
}

const endless =
  'SELECT count(*) FROM range(10000000000) a, range(10000000000) b WHERE a.range * b.range % 7 = 3';

test('the columns have their names and types', async () => {
  const done = await run(
    "SELECT customer_id, created, birthdate, is_deleted, 1.5::DECIMAL(18,2) AS d, ['a'] AS l, 1::HUGEINT AS h, '{}'::JSON AS j FROM customers LIMIT 1",
  );
  assert.deepEqual(done.kind === 'done' && done.columns, [
    { name: 'customer_id', type: 'UUID' },
    { name: 'created', type: 'TIMESTAMP WITH TIME ZONE' },
    { name: 'birthdate', type: 'DATE' },
    { name: 'is_deleted', type: 'BOOLEAN' },
    { name: 'd', type: 'DECIMAL(18,2)' },
    { name: 'l', type: 'VARCHAR[]' },
    { name: 'h', type: 'HUGEINT' },
    { name: 'j', type: 'JSON' },
  ]);
});

test('a result without rows still has columns', async () => {
  const done = await run('SELECT name FROM tags');
  assert.deepEqual(done, {
    kind: 'done',
    columns: [{ name: 'name', type: 'VARCHAR' }],
    rows: [],
    rowCount: 0,
    isTruncated: false,
  });
});

test('parameters of every kind are bound in order', async () => {
  assert.deepEqual(await rowsOf('SELECT ?, ?, ?, ?, ?, ?', ['a', 1, 1.5, true, null, 2 ** 40]), [
    ['a', 1, 1.5, true, null, 2n ** 40n],
  ]);
  const [[id, created]] = (await rowsOf(
    'SELECT customer_id::VARCHAR, created::VARCHAR FROM customers LIMIT 1',
  )) as [[string, string]];
  assert.deepEqual(await rowsOf('SELECT count(*) FROM customers WHERE customer_id = ?', [id]), [[1n]]);
  assert.deepEqual(
    await rowsOf('SELECT count(*) FROM customers WHERE customer_id = ? AND created = ?', [id, created]),
    [[1n]],
  );
  assert.deepEqual(await rowsOf('SELECT count(*) FROM customers WHERE birthdate = ?', ['2000-01-01']), [
    [1n],
  ]);
  assert.deepEqual(await rowsOf('SELECT count(*) FROM customers WHERE region IN (?, ?)', ['DE', 'AT']), [
    [200n],
  ]);
  assert.deepEqual(await rowsOf('SELECT round(1.26::DOUBLE, ?) LIMIT ?', [1, 1]), [[1.3]]);
  assert.deepEqual(await rowsOf('SELECT $2, $1, $2', ['a', 'b']), [['b', 'a', 'b']]);
  assert.deepEqual(
    await rowsOf("SELECT ? = '''; DROP TABLE customers; --'", ["'; DROP TABLE customers; --"]),
    [[true]],
  );
});

test('too few and too many parameters are invalid', async () => {
  const expected = [
    [[], 'The query has 2 parameters, but params has 0 values.'],
    [[1], 'The query has 2 parameters, but params has 1 value.'],
    [[1, 2, 3], 'The query has 2 parameters, but params has 3 values.'],
  ] as const;
  for (const [parameters, message] of expected) {
    assert.deepEqual(await run('SELECT ?, ?', parameters), { kind: 'invalid', message, position: null });
  }
});

test('an invalid query has the message of DuckDB and the position in the text', async () => {
  const cases: readonly (readonly [string, RegExp, number | null])[] = [
    [
      'SELECT nam FROM shops',
      /^Referenced column "nam" not found in FROM clause!\nCandidate bindings: "name"$/,
      7,
    ],
    ["SELECT 'ä€😀',\n  nam FROM shops", /^Referenced column "nam"/, 17],
    [
      'SELECT name FROM shops WHERE name = "Shop 1"',
      /^Referenced column "Shop 1" not found .*\nTexts are in single quotes: 'Shop 1'$/s,
      36,
    ],
    ["SELECT '€' ORDER BY ORDER", /^syntax error at or near "ORDER"$/, 20],
    [`SELECT '${'x'.repeat(500)}', nam, '${'y'.repeat(500)}' FROM shops`, /^Referenced column "nam"/, 511],
    ["SELECT 'x'::INTEGER", /^Could not convert string 'x' to INT32$/, 10],
    ['SELECT sum(name::INTEGER) FROM shops', /^Could not convert string 'Shop \d' to INT32/, 15],
    ['SELECT sum(name) FROM shops', /^No function matches the given name/, 7],
    ['SELECT row(1, 2)', /fields without names/, null],
    ["SELECT [{'a': (1, 2)}] AS x", /^The values of the column "x" have fields without names/, null],
    ['DELETE FROM shops', /^Only one SELECT statement can run/, null],
  ];
  for (const [sql, message, position] of cases) {
    const failure = await run(sql);
    assert.ok(failure.kind === 'invalid', sql);
    assert.match(failure.message, message, sql);
    assert.equal(failure.position, position, sql);
  }
});

test('an error in a late row is thrown while the rows are read', async () => {
  const late = "SELECT CASE WHEN i = 500000 THEN 'x'::VARCHAR ELSE '1' END::INTEGER FROM range(600000) t(i)";
  await assert.rejects(run(late), (error) => {
    assert.ok(error instanceof QueryFailed);
    assert.deepEqual(error.failure, {
      kind: 'invalid',
      message: "Could not convert string 'x' to INT32",
      position: 58,
    });
    return true;
  });
});

test('a query sees what its transaction saw first', async () => {
  await onConnection(async (connection) => {
    assert.equal((await connection.runAndReadAll('SELECT count(*) FROM tags')).getRowsJS()[0]![0], 0n);
    await replica.connection.run("INSERT INTO tags (name) VALUES ('b')");
    const query = await runQuery(connection, 'SELECT count(*) FROM tags', [], { withinMs: 10_000 });
    assert.ok(query.kind === 'running');
    for await (const { chunk } of query.rows) assert.equal(chunk.getRows()[0]![0], 0n);
  });
  assert.deepEqual(await rowsOf('SELECT name FROM tags'), [['b']]);
  await replica.connection.run('DELETE FROM tags');
});

test('the row limit truncates, and one more row is needed to know it', async () => {
  for (const [rows, maxRows, isTruncated] of [
    [10, 10, false],
    [11, 10, true],
    [10_000, 2048, true],
    [5000, 3000, true],
    [3, 0, true],
    [0, 0, false],
  ] as const) {
    const done = await run(`SELECT * FROM range(${rows})`, [], { maxRows });
    assert.ok(done.kind === 'done');
    assert.equal(done.rows.length, Math.min(rows, maxRows));
    assert.equal(done.rowCount, done.rows.length);
    assert.equal(done.isTruncated, isTruncated, `${rows} rows, limit ${maxRows}`);
  }
});

test('a query that is too slow is stopped, while others run on', async () => {
  const started = performance.now();
  const slow = run(endless, [], { withinMs: 300 });
  assert.deepEqual(await rowsOf('SELECT count(*) FROM shops'), [[10n]]);
  const failure = await slow;
  assert.equal(failure.kind, 'too_slow');
  assert.match(failure.kind === 'too_slow' ? failure.message : '', /^The query took longer than 0\.3 s\./);
  assert.ok(performance.now() - started < 3000);
  assert.deepEqual(await rowsOf('SELECT count(*) FROM shops'), [[10n]]);
});

test('the time that the reader spends does not count', async () => {
  await onConnection(async (connection) => {
    const query = await runQuery(connection, 'SELECT * FROM range(10000)', [], { withinMs: 1000 });
    assert.ok(query.kind === 'running');
    let isFirst = true;
    for await (const _ of query.rows) {
      if (isFirst) await new Promise((resolve) => setTimeout(resolve, 1200));
      isFirst = false;
    }
    assert.equal(query.rowCount(), 10_000);
  });
});

test('a signal stops the query before, while and after it starts', async () => {
  assert.equal((await run('SELECT 1', [], { signal: AbortSignal.abort() })).kind, 'cancelled');
  const started = performance.now();
  assert.equal((await run(endless, [], { signal: AbortSignal.timeout(100) })).kind, 'cancelled');
  assert.ok(performance.now() - started < 3000);
  await onConnection(async (connection) => {
    const leaving = new AbortController();
    const query = await runQuery(connection, 'SELECT * FROM range(1000000)', [], {
      withinMs: 10_000,
      signal: leaving.signal,
    });
    assert.ok(query.kind === 'running');
    await assert.rejects(
      async () => {
        for await (const _ of query.rows) leaving.abort();
      },
      (error) => error instanceof QueryFailed && error.failure.kind === 'cancelled',
    );
  });
});

test('a query that needs too much memory or disk is too large, and others run on', async () => {
  for (const sql of [
    'SELECT list(i) FROM range(100000000) t(i)',
    'SELECT count(*) FROM (SELECT DISTINCT i, hash(i), uuid() FROM range(100000000) t(i))',
  ]) {
    const failure = await run(sql, [], { withinMs: 20_000 });
    assert.equal(failure.kind, 'too_large', sql);
    assert.deepEqual(await rowsOf('SELECT count(*) FROM shops'), [[10n]]);
  }
});

test('a result that is read only in part leaves no work behind', async () => {
  await onConnection(async (connection) => {
    const query = await runQuery(connection, 'SELECT * FROM range(100000000)', [], { withinMs: 10_000 });
    assert.ok(query.kind === 'running');
    for await (const _ of query.rows) break;
    await connection.run(BEGIN_READING);
    const again = await runQuery(connection, 'SELECT 1', [], { withinMs: 10_000 });
    assert.equal(again.kind, 'running');
  });
});

test('a Parquet file has the rows of the query', async () => {
  for (const [name, sql, parameters, rowCount] of [
    ['plain', 'SELECT * FROM customers WHERE region = ?', ['DE'], 100],
    ['semicolon', "SELECT *, ';' FROM shops; -- the end;", [], 10],
    ['comment', 'FROM shops -- no; end', [], 10],
    ['line comment', 'FROM shops -- no end', [], 10],
    ['with', 'WITH s AS (FROM shops) SELECT name FROM s ORDER BY name LIMIT ?', [3], 3],
  ] as const) {
    const path = join(replica.exportFolder, `${name}.parquet`);
    const written = await onConnection((connection) =>
      writeParquet(connection, sql, parameters, path, { withinMs: 10_000 }),
    );
    assert.deepEqual(written, { kind: 'written', rowCount }, name);
    const bytes = await readFile(path);
    assert.equal(bytes.subarray(0, 4).toString(), 'PAR1');
    const quoted = path.replaceAll("'", "''");
    assert.deepEqual(await rowsOf(`SELECT count(*) FROM read_parquet('${quoted}')`), [[BigInt(rowCount)]]);
    assert.deepEqual(await rowsOf(`SELECT DISTINCT compression FROM parquet_metadata('${quoted}')`), [
      ['ZSTD'],
    ]);
  }
});

/** Writes the rows of a query to a Parquet file. Returns how it went, and the file as text in SQL. */
async function writeFileOf(name: string, sql: string) {
  const path = join(replica.exportFolder, `${name}.parquet`);
  const written = await onConnection((connection) =>
    writeParquet(connection, sql, [], path, { withinMs: 10_000 }),
  );
  return { written, file: `'${path.replaceAll("'", "''")}'` };
}

test('a Parquet file can have far more rows than fit into memory', async () => {
  const { written } = await writeFileOf('many', 'SELECT * FROM transactions, range(1000)');
  assert.deepEqual(written, { kind: 'written', rowCount: 3_000_000 });
});

test('a Parquet file has the rows in the order that the query asks for', async () => {
  const halves = 'SELECT range AS n FROM range(300000) UNION ALL SELECT range + 300000 FROM range(300000)';
  for (const sql of [
    `${halves} ORDER BY n`,
    `SELECT n FROM (${halves}) WHERE n>-1order--\nBY n;`,
    `WITH ordered AS (${halves} Order By n) FROM ordered`,
  ]) {
    const { written, file } = await writeFileOf('ordered', sql);
    assert.deepEqual(written, { kind: 'written', rowCount: 600_000 });
    const misplaced = `SELECT count(*) FROM read_parquet(${file}, file_row_number = true) WHERE n <> file_row_number`;
    assert.deepEqual(await rowsOf(misplaced), [[0n]], sql);
  }
});

test('a Parquet file that cannot be written is a failure with the position in the query', async () => {
  const write = (sql: string, limits: Partial<QueryLimits> = {}) =>
    onConnection((connection) =>
      writeParquet(connection, sql, [], join(replica.exportFolder, 'failed.parquet'), {
        withinMs: 10_000,
        ...limits,
      }),
    );
  const invalid = await write('SELECT nam FROM shops');
  assert.ok(invalid.kind === 'invalid');
  assert.equal(invalid.position, 7);
  assert.equal((await write(endless, { withinMs: 200 })).kind, 'too_slow');
  const missing = await write('SELECT ?');
  assert.ok(missing.kind === 'invalid');
  assert.match(missing.message, /^The query has 1 parameter, but params has 0 values\.$/);
  const outside = await onConnection((connection) =>
    writeParquet(connection, 'SELECT 1', [], join(replica.folder, 'outside.parquet'), { withinMs: 10_000 }),
  );
  assert.equal(outside.kind, 'invalid');
  assert.ok(!(await readdir(replica.folder)).includes('outside.parquet'));
});

test('names and types of columns that are too long together are refused', async () => {
  const long = 'n'.repeat(20_000);
  const repeated = `SELECT ${Array(100).fill('t.*').join(', ')} FROM`;
  for (const sql of [`${repeated} (SELECT 1 AS "${long}") t`, `${repeated} (SELECT {'${long}': 1} AS s) t`]) {
    const failure = await run(sql);
    assert.equal(failure.kind, 'too_large');
  }
});

test('a result may have 2000 columns, but not more', async () => {
  const columns = (number: number): string => `SELECT ${Array(number).fill('1').join(', ')}`;
  assert.equal((await run(columns(2000))).kind, 'done');
  assert.deepEqual(await run(columns(2001)), {
    kind: 'too_large',
    message: 'The query has 2001 columns. A result may have at most 2000.',
  });
});
