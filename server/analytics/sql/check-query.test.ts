import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { checkQuery, QUERY_CHARACTERS } from './check-query.ts';
import { refusedFunctions, scalarFunctions, tableFunctions } from './functions.ts';
import { QueryParser } from './query-parser.ts';
import { openTestReplica, type TestReplica, tableNames } from './test-replica.ts';

let replica: TestReplica;
before(async () => {
  replica = await openTestReplica();
});
after(() => replica.close());

const parser = new QueryParser();
const check = (sql: string) => checkQuery(parser, sql, tableNames);

/** Each is refused by the check, and also by DuckDB itself with the settings of a replica. */
const escapesRefusedTwice: readonly string[] = [
  // Files
  "SELECT * FROM read_csv('/etc/passwd', sep = ':')",
  "SELECT * FROM read_csv_auto('/etc/passwd')",
  "SELECT * FROM read_text('/etc/passwd')",
  "SELECT * FROM read_blob('/etc/passwd')",
  "SELECT * FROM read_json('/etc/passwd')",
  "SELECT * FROM read_json_objects('/etc/passwd')",
  "SELECT * FROM read_ndjson_auto('/etc/passwd')",
  "SELECT * FROM read_parquet('/etc/passwd')",
  "SELECT * FROM parquet_scan('/etc/passwd')",
  "SELECT * FROM parquet_metadata('/etc/passwd')",
  "SELECT * FROM parquet_schema('/etc/passwd')",
  "SELECT * FROM read_duckdb('/etc/passwd')",
  "SELECT * FROM sniff_csv('/etc/passwd')",
  "SELECT * FROM glob('/etc/*')",
  "SELECT * FROM '/etc/passwd'",
  "SELECT * FROM '/etc/hosts.csv'",
  'SELECT * FROM "/etc/hosts.csv"',
  "FROM '/etc/hosts.json'",
  "WITH t AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM t",
  "SELECT (SELECT content FROM read_text('/etc/passwd'))",
  "SELECT 1 WHERE EXISTS (FROM read_text('/etc/passwd'))",
  "SELECT 1 UNION ALL SELECT content FROM read_text('/etc/passwd')",
  "SELECT * FROM customers, LATERAL (SELECT * FROM read_text('/etc/passwd'))",
  "DESCRIBE SELECT * FROM read_csv('/etc/passwd')",
  "SUMMARIZE SELECT * FROM read_csv('/etc/passwd')",
  "PIVOT read_csv('/etc/passwd') ON a IN (1) USING count(*)",
  "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
  "SELECT * FROM query_table('/etc/hosts.csv')",
  "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''/etc/passwd'')'))",
  "COPY customers TO '/tmp/customers.csv'",
  "COPY (SELECT 1) TO '/tmp/one.parquet'",
  "COPY customers FROM '/etc/passwd'",
  "EXPORT DATABASE '/tmp/database'",
  "IMPORT DATABASE '/tmp/database'",
  "ATTACH '/tmp/other.duckdb'",
  "ATTACH '/tmp/other.duckdb' AS other; SELECT * FROM other.t",
  "CREATE TABLE t AS FROM read_text('/etc/passwd')",
  // Network
  "SELECT * FROM read_csv('http://127.0.0.1:1/a.csv')",
  "SELECT * FROM 'https://127.0.0.1:1/a.parquet'",
  "SELECT * FROM read_parquet('s3://bucket/a.parquet')",
  "ATTACH 'http://127.0.0.1:1/other.duckdb'",
  // Extensions
  'INSTALL httpfs',
  'LOAD httpfs',
  'FORCE INSTALL httpfs FROM community',
  "LOAD '/tmp/evil.duckdb_extension'",
  "INSTALL spatial FROM 'http://127.0.0.1:1'",
  // Settings
  'SET enable_external_access = true',
  'SET GLOBAL enable_external_access = true',
  'RESET enable_external_access',
  'SET lock_configuration = false',
  "SET memory_limit = '100GB'",
  'SET threads = 64',
  "SET temp_directory = '/tmp'",
  "SET allowed_directories = ['/']",
  "SET disabled_filesystems = ''",
  'SET allow_unsigned_extensions = true',
  'SET allow_community_extensions = true',
  'SET autoload_known_extensions = true',
  "SET home_directory = '/'",
  "SET secret_directory = '/tmp'",
  "SET extension_directory = '/tmp'",
  "SET TimeZone = 'Europe/Berlin'",
  "SET log_query_path = '/tmp/log'",
  "SET profile_output = '/tmp/profile'",
  "SET http_proxy = '127.0.0.1:1'",
  "SET allowed_paths = ['/etc/passwd']",
  "SET custom_extension_repository = 'http://127.0.0.1:1'",
  'SET max_expression_depth = 1000000',
  'SET allow_persistent_secrets = true',
  'RESET lock_configuration',
  'SELECT 1; SET threads = 64',
  'PRAGMA threads = 64',
  "PRAGMA memory_limit = '100GB'",
  "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 't')",
];

/** Each is refused by the check. DuckDB would run it, for its settings do not forbid it. */
const escapesRefusedOnce: readonly string[] = [
  // The catalogue of the system, which names paths and settings
  'SELECT * FROM duckdb_settings()',
  'SELECT * FROM duckdb_databases()',
  'SELECT * FROM duckdb_tables()',
  'SELECT * FROM duckdb_tables',
  'SELECT * FROM duckdb_columns',
  'SELECT * FROM duckdb_functions()',
  'SELECT * FROM duckdb_secrets()',
  'SELECT * FROM duckdb_temporary_files()',
  'SELECT * FROM duckdb_memory()',
  'SELECT * FROM duckdb_logs()',
  'SELECT * FROM duckdb_variables()',
  'SELECT * FROM pragma_database_list',
  'SELECT * FROM pragma_database_size()',
  "SELECT * FROM pragma_storage_info('customers')",
  "SELECT * FROM pragma_table_info('customers')",
  'SELECT * FROM pragma_version()',
  'SELECT * FROM information_schema.tables',
  'SELECT * FROM information_schema.schemata',
  'SELECT * FROM pg_catalog.pg_class',
  'SELECT * FROM pg_class',
  'SELECT * FROM pg_settings',
  'SELECT * FROM sqlite_master',
  'SELECT * FROM main.sqlite_master',
  'SELECT * FROM system.main.duckdb_tables',
  'SELECT * FROM replica.main.customers',
  'SELECT * FROM temp.t',
  'SHOW TABLES',
  'SHOW ALL TABLES',
  'SHOW DATABASES',
  'DESCRIBE',
  'SHOW',
  'DESCRIBE duckdb_tables',
  'SUMMARIZE pg_class',
  'PRAGMA database_list',
  'CALL duckdb_settings()',
  "SELECT * FROM sql_auto_complete('SEL')",
  "CALL enable_logging(storage = 'file', storage_config = {'path': '/tmp/logs'})",
  'PRAGMA enable_profiling',
  'PRAGMA enable_logging',
  'SELECT * FROM enable_logging()',
  'SELECT * FROM disable_logging()',
  'SELECT * FROM checkpoint()',
  "SELECT * FROM seq_scan('customers')",
  'SELECT * FROM test_all_types()',
  // Names in WITH that DuckDB would look up elsewhere
  'WITH duckdb_tables AS (SELECT * FROM duckdb_tables) SELECT * FROM duckdb_tables',
  'WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a',
  'SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t), t',
  'WITH RECURSIVE t AS (SELECT 1 FROM t UNION ALL SELECT 2 FROM t) SELECT * FROM t',
  'WITH t AS (SELECT 1) SELECT * FROM main.t',
  "SELECT * FROM query_table('duckdb_tables')",
  "SELECT * FROM query('FROM duckdb_settings()')",
  // Functions that reveal settings or the environment, or that have effects
  "SELECT current_setting('temp_directory')",
  "SELECT CURRENT_SETTING('temp_directory')",
  'SELECT "current_setting"(\'temp_directory\')',
  "SELECT main.current_setting('temp_directory')",
  "SELECT system.main.current_setting('temp_directory')",
  "SELECT 'temp_directory'.current_setting()",
  "SELECT list_transform(['temp_directory'], x -> current_setting(x))",
  "SELECT [current_setting(x) FOR x IN ['temp_directory']]",
  "SELECT * FROM customers ORDER BY current_setting('temp_directory')",
  "SELECT * FROM customers LIMIT length(current_setting('temp_directory'))",
  "SELECT count(*) FILTER (WHERE current_setting('temp_directory') = '') FROM customers",
  "SELECT sum(1) OVER (PARTITION BY current_setting('temp_directory')) FROM customers",
  "SELECT * REPLACE (current_setting('temp_directory') AS region) FROM customers",
  "SELECT CASE WHEN true THEN current_setting('temp_directory') END",
  "SELECT * FROM (VALUES (current_setting('temp_directory')))",
  "SELECT * FROM range(length(current_setting('temp_directory')))",
  "SELECT 1 FROM customers a JOIN customers b ON current_setting('threads') = 1",
  "SELECT region FROM customers GROUP BY region HAVING current_setting('threads') = 2",
  "SELECT 1 FROM customers QUALIFY row_number() OVER () = current_setting('threads')",
  "SELECT COLUMNS(x -> x = current_setting('threads')) FROM customers",
  "PIVOT customers ON region IN ('DE') USING max(current_setting('threads'))",
  "SELECT DISTINCT ON (current_setting('threads')) region FROM customers",
  "SELECT string_agg(region ORDER BY current_setting('threads')) FROM customers",
  "SELECT getenv('HOME')",
  "SELECT getvariable('x')",
  'SELECT current_database()',
  'SELECT current_catalog',
  'SELECT current_schema',
  'SELECT current_schemas(true)',
  'SELECT current_query()',
  'SELECT txid_current()',
  "SELECT nextval('s')",
  "SELECT write_log('x')",
  'SELECT setseed(0.5)',
  'SELECT sleep_ms(1)',
  'SELECT pg_sleep(0)',
  "SELECT json_serialize_plan('SELECT 1')",
  'SELECT version()',
  "SELECT * FROM which_secret('s3://a', 's3')",
  // Writing
  'INSERT INTO customers (region) VALUES (1)',
  'UPDATE customers SET region = 1',
  'DELETE FROM customers WHERE false',
  'TRUNCATE tags',
  'MERGE INTO tags USING tags t ON false WHEN MATCHED THEN DELETE',
  'CREATE TABLE t (a INTEGER)',
  'CREATE TEMP TABLE t AS SELECT 1',
  'CREATE VIEW v AS SELECT 1',
  'CREATE MACRO m() AS 1',
  'CREATE SEQUENCE s',
  "CREATE TYPE e AS ENUM ('a')",
  'ALTER TABLE customers ADD COLUMN x INTEGER',
  'DROP TABLE customers',
  'SELECT 1 INTO t',
  'WITH t AS (DELETE FROM customers RETURNING *) SELECT * FROM t',
  'VACUUM',
  'CHECKPOINT',
  'ANALYZE',
  'USE main',
  "SET search_path = 'pg_catalog'",
  "COMMENT ON TABLE customers IS 'x'",
  // A second statement, transactions, prepared statements and variables
  'SELECT 1; SELECT 2',
  'SELECT 1; DROP TABLE customers',
  'BEGIN',
  'COMMIT',
  'ROLLBACK',
  'BEGIN; SELECT 1',
  'PREPARE p AS SELECT 1',
  'EXECUTE p',
  'DEALLOCATE p',
  'SET VARIABLE x = 1',
  'EXPLAIN SELECT 1',
  'EXPLAIN ANALYZE SELECT 1',
  'PIVOT customers ON region USING count(*)',
  'SELECT 1\0; DROP TABLE customers',
  // Values that no limit on memory covers
  "SELECT repeat('x', 1000000000)",
  "SELECT lpad('x', 1000000000, 'x')",
  "SELECT rpad('x', (SELECT 1000000000)::INTEGER, 'x')",
  'SELECT range(1000000000)',
  'SELECT generate_series(1, 1000000000)',
  'SELECT list_resize([1], 1000000000)',
  "SELECT printf('%1000000000d', 1)",
  "SELECT printf('%*d', 1000000000, 1)",
  "SELECT printf('%' || '1000000000' || 'd', 1)",
  "SELECT format('{:1000000000}', 1)",
  "SELECT format('{:{}}', 1, 1000000000)",
  'SELECT bar(1, 0, 1, 1000000000)',
  "SELECT main.lpad('x', 1000000000, 'x')",
  'SELECT name.rpad(1000000000, 5) FROM shops',
  'SELECT * FROM customers AT (VERSION => 1)',
];

test('every escape is refused by the check', async () => {
  for (const sql of [...escapesRefusedTwice, ...escapesRefusedOnce]) {
    const refusal = await check(sql);
    assert.ok(refusal !== null, sql);
    assert.ok(refusal.message.length > 10, sql);
  }
});

test('DuckDB itself refuses files, network, extensions and settings', async () => {
  await writeFile(join(replica.folder, 'secret.csv'), 'a,b\n1,2\n');
  const outside = [
    `SELECT * FROM '${replica.folder}/secret.csv'`,
    `SELECT * FROM read_text('${replica.folder}/secret.csv')`,
    `COPY shops TO '${replica.folder}/shops.csv'`,
    `ATTACH '${replica.folder}/other.duckdb'`,
  ];
  for (const sql of [...escapesRefusedTwice, ...outside]) {
    const connection = await replica.instance.connect();
    try {
      await assert.rejects(connection.run(sql), sql);
    } finally {
      connection.disconnectSync();
    }
  }
});

const legitimate: readonly string[] = [
  'SELECT * FROM customers',
  'SELECT * FROM main.customers LIMIT 5;',
  'FROM customers',
  'TABLE customers',
  'SELECT region, count(*) FROM customers GROUP BY ALL ORDER BY ALL',
  'SELECT Region, COUNT(*) AS n FROM Customers GROUP BY 1 HAVING n > 2 ORDER BY 2 DESC NULLS LAST LIMIT 3 OFFSET 1',
  'SELECT * EXCLUDE (user_id) REPLACE (lower(region) AS region) RENAME (gender AS g) FROM customers',
  "SELECT COLUMNS('.*_id') FROM customers",
  'SELECT max(COLUMNS(*)) FROM customers',
  "SELECT COLUMNS(c -> c LIKE '%_id') FROM customers",
  'SELECT t.amount, s.name FROM transactions t JOIN shops s USING (shop_id) WHERE t.amount BETWEEN 5 AND 12',
  'SELECT count(*) FROM transactions t LEFT JOIN customers c ON c.customer_id = t.student_id WHERE c.customer_id IS NULL',
  'SELECT count(*) FROM customers SEMI JOIN transactions ON student_id = customer_id',
  'SELECT count(*) FROM shops ANTI JOIN transactions USING (shop_id)',
  'SELECT * FROM transactions t ASOF JOIN customers c ON t.created >= c.created LIMIT 3',
  'SELECT * FROM shops POSITIONAL JOIN shop_tags',
  'SELECT s.name, x.total FROM shops s, LATERAL (SELECT sum(amount) total FROM transactions t WHERE t.shop_id = s.shop_id) x',
  "SELECT date_trunc('month', created) AS month, sum(amount) FROM transactions GROUP BY month ORDER BY month",
  "SELECT created AT TIME ZONE 'Europe/Berlin' FROM customers LIMIT 1",
  'SELECT count(*) FROM transactions WHERE created >= now() - INTERVAL 30 DAYS',
  "SELECT count(*) FROM customers WHERE created > TIMESTAMPTZ '2024-01-01 00:00:00Z' AND birthdate < DATE '2005-01-01'",
  'WITH big AS (SELECT * FROM transactions WHERE amount > 10), per AS (SELECT shop_id, sum(amount) s FROM big GROUP BY 1) SELECT * FROM per',
  'WITH t AS MATERIALIZED (SELECT 1 AS a) SELECT * FROM t, (SELECT * FROM t)',
  'WITH customers AS (SELECT * FROM customers WHERE NOT is_deleted) SELECT count(*) FROM customers',
  'WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT sum(n) FROM t',
  'SELECT (SELECT count(*) FROM shops), EXISTS (FROM tags), 3 IN (SELECT 3), 3 = ANY (SELECT 3)',
  'SELECT shop_id, amount FROM transactions QUALIFY row_number() OVER (PARTITION BY shop_id ORDER BY amount DESC) <= 3',
  'SELECT sum(amount) OVER w, lag(amount, 1, 0) OVER w FROM transactions WINDOW w AS (PARTITION BY shop_id ORDER BY created ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)',
  'SELECT avg(amount) OVER (ORDER BY created RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW) FROM transactions LIMIT 5',
  'SELECT first_value(amount IGNORE NULLS) OVER (ORDER BY created), ntile(4) OVER (ORDER BY amount) FROM transactions LIMIT 5',
  "PIVOT customers ON region IN ('DE', 'AT') USING count(*)",
  "SELECT * FROM customers PIVOT (count(*) FOR region IN ('DE', 'AT') GROUP BY is_deleted)",
  'UNPIVOT (SELECT savings, amount FROM transactions) ON savings, amount INTO NAME k VALUE v',
  'SELECT * FROM transactions USING SAMPLE 10%',
  'SELECT * FROM transactions TABLESAMPLE reservoir(10 ROWS) REPEATABLE (3)',
  'SELECT median(amount), quantile_cont(amount, [0.1, 0.9]), stddev(amount), approx_count_distinct(shop_id) FROM transactions',
  "SELECT count(*) FILTER (WHERE region = 'DE'), count(DISTINCT region), count(DISTINCT (region, gender)) FROM customers",
  "SELECT string_agg(name, ', ' ORDER BY name), list(name ORDER BY name)[1:2], arg_max(name, created) FROM shops",
  'SELECT region, is_deleted, count(*), grouping(region) FROM customers GROUP BY GROUPING SETS ((region, is_deleted), (region), ())',
  'SELECT region, count(*) FROM customers GROUP BY ROLLUP (region)',
  'SELECT region, gender, count(*) FROM customers GROUP BY CUBE (region, gender)',
  'SELECT DISTINCT ON (region) region, customer_id FROM customers ORDER BY region, created DESC',
  "SELECT region FROM customers UNION SELECT region FROM shops EXCEPT SELECT 'AT' INTERSECT SELECT 'DE'",
  'SELECT 1 AS a UNION ALL BY NAME SELECT 2 AS b',
  "SELECT CASE WHEN amount > 10 THEN 'big' ELSE 'small' END, CASE region WHEN 'DE' THEN 1 END FROM transactions",
  "SELECT coalesce(gender, 'unknown'), nullif(region, 'DE'), ifnull(gender, ''), if(is_deleted, 1, 0) FROM customers",
  "SELECT name || '!', upper(name), name.lower(), substring(name FROM 1 FOR 3), trim(BOTH 'S' FROM name), name[1] FROM shops",
  "SELECT * FROM shops WHERE name ILIKE 's%' AND name NOT LIKE '%!_%' ESCAPE '!' AND regexp_matches(name, '[0-9]+') AND name SIMILAR TO 'Shop.*'",
  'SELECT list_transform([1, 2], x -> x + 1), list_filter([1, 2], lambda x: x > 1), [x * 2 FOR x IN [1, 2] IF x > 1]',
  "SELECT {'a': 1, 'b': 2}.a, MAP {'k': 1}['k'], [1, 2, 3][2:], row(1, 2), struct_pack(a := 1)",
  "SELECT to_json({a: 1}), '{\"a\": [1, 2]}'::JSON -> '$.a[0]', json_extract_string('{\"a\": 1}', '$.a'), '{\"a\":1}' ->> 'a'",
  "SELECT unnest(string_split('a,b', ',')), unnest([1, 2])",
  'SELECT * FROM range(10) r(i), generate_series(1, 3) g(j), unnest([1, 2]) u(k)',
  "SELECT d::DATE, count(customer_id) FROM generate_series(DATE '2024-01-01', DATE '2024-01-31', INTERVAL 1 DAY) g(d) LEFT JOIN customers ON created::DATE = d GROUP BY d ORDER BY d",
  "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n, t)",
  'VALUES (1), (2)',
  'DESCRIBE customers',
  'DESCRIBE SELECT region, count(*) FROM customers GROUP BY 1',
  'SUMMARIZE transactions',
  'SHOW customers',
  'SELECT * FROM (DESCRIBE customers)',
  'SELECT * FROM uploads WHERE rejected > 0 ORDER BY seq DESC LIMIT 20',
  'SELECT interaction_type, count(*) FROM interactions GROUP BY 1',
  "SELECT CAST(amount AS DECIMAL(10, 2)), TRY_CAST(source AS INTEGER), amount::VARCHAR, [1]::DOUBLE[], 'a'::ENUM('a', 'b') FROM transactions",
  "SELECT extract(year FROM birthdate), age(birthdate), strftime(birthdate, '%Y-%m'), date_diff('day', birthdate, current_date) FROM customers",
  "SELECT lpad(month(birthdate)::VARCHAR, 2, '0'), printf('%05.2f', 1.5), format('{:>10}', region), range(3), generate_series(-2, 2) FROM customers",
  'SELECT region COLLATE de FROM customers ORDER BY region COLLATE NOCASE',
  'SELECT # 1 FROM customers',
  'SELECT current_timestamp, current_date, localtimestamp, today()',
  'SELECT amount IS DISTINCT FROM savings, NOT is_deleted, -amount, amount % 2, amount // 2, amount ** 2, @amount FROM transactions',
  'SELECT * FROM customers WHERE region IN (?, ?) AND created > ?::TIMESTAMPTZ LIMIT ?',
  'SELECT $1, $2, $1',
  'SELECT json_group_array(name), histogram(region), mode(region) FROM shops',
  "SELECT try(1 / 0), hash(1), md5('a'), uuid(), random()",
  '-- a comment\nSELECT /* another */ 1; -- the end',
  'SELECT total: sum(amount) FROM transactions',
];

test('what analysts write is allowed, and DuckDB accepts it', async () => {
  for (const sql of legitimate) {
    assert.equal(await check(sql), null, sql);
    const statement = await replica.connection.prepare(sql);
    statement.destroySync();
  }
});

test('a refusal has a helpful message and the position in the text', async () => {
  const cases: readonly (readonly [string, RegExp, number | null])[] = [
    ['SELECT * FROM custmers', /^The table "custmers" does not exist\. Did you mean "customers"\?$/, 14],
    ["SELECT 'ä€😀', * FROM zzz", /^The table "zzz" does not exist\. The tables are: customers, /, 22],
    ['WITH totals AS (SELECT 1) FROM total', /Did you mean "totals"\?$/, 31],
    ['SELECT uper(name) FROM shops', /^The function "uper" does not exist\. Did you mean "upper"\?$/, 7],
    ['SELECT 1,\n  current_setting(1)', /^The function "current_setting" is not available\. Settings/, 12],
    ["FROM read_csv('a.csv')", /^The function "read_csv" is not available\. .*own tables/, 5],
    ['FROM upper(1)', /cannot be used as a table/, 5],
    ['SELECT generate_series(1, ?)', /Use it as a table: FROM generate_series\(…\)\.$/, 7],
    ['SELECT;', /SELECT clause without selection list/, null],
    ['SELECT 1 +', /syntax error at end of input/, 10],
    ['SELEC 1', /syntax error at or near "SELEC"/, 0],
    ["SELECT 'ä😀' FROM shops WHERE WHERE", /syntax error at or near "WHERE"/, 30],
    ['SELECT $name', /^Use \? for a parameter instead of the name "name"\.$/, null],
    ['DELETE FROM shops', /^Only one SELECT statement can run/, null],
    ['SELECT 1; SELECT 2', /^Send one statement at a time\.$/, null],
    ['PIVOT customers ON region USING count(*)', /^Name the values of a PIVOT with IN/, null],
    ['SHOW TABLES', /^SHOW is not available. Use DESCRIBE/, null],
    ['', /^The query is empty\.$/, null],
    ['  -- nothing\n;', /^The query is empty\.$/, null],
    [`SELECT '${'x'.repeat(QUERY_CHARACTERS)}'`, /at most 100000 characters/, QUERY_CHARACTERS],
    ['SELECT \0', /U\+0000/, 7],
    ["SELECT '\ud800'", /not valid Unicode/, null],
    ['SELECT 1e999', /^The query has a number that is too large\.$/, null],
  ];
  for (const [sql, message, position] of cases) {
    const refusal = await check(sql);
    assert.match(refusal!.message, message, sql);
    assert.equal(refusal!.position, position, sql);
  }
});

test('a query that is nested too deep is refused quickly', async () => {
  const nested: readonly string[] = [
    `SELECT 1${'+1'.repeat(300)}`,
    `SELECT ${'['.repeat(300)}1${']'.repeat(300)}`,
    `SELECT ${'- '.repeat(40_000)}x`,
    `SELECT ${'NOT '.repeat(20_000)}x`,
    `SELECT ${'(SELECT '.repeat(5000)}1${')'.repeat(5000)}`,
    `SELECT 1 FROM shops${' CROSS JOIN shops'.repeat(300)}`,
    `${'WITH a AS ('.repeat(300)}SELECT 1${') FROM a'.repeat(300)}`,
  ];
  const started = performance.now();
  for (const sql of nested) {
    const refusal = await check(sql);
    assert.match(refusal?.message ?? 'allowed', /nested|depth|exhausted|syntax/, sql.slice(0, 60));
  }
  assert.ok(performance.now() - started < 5000);
  assert.equal(await check(`SELECT 1${'+1'.repeat(90)}`), null);
  assert.equal(await check(`SELECT 1${' UNION ALL SELECT 1'.repeat(500)}`), null);
  assert.equal(await check(`SELECT 1 IN (${'1,'.repeat(5000)}1)`), null);
});

test('every function of DuckDB is either allowed or refused with a reason, and every allowed one exists', async () => {
  const reader = await replica.connection.runAndReadAll(
    "SELECT DISTINCT lower(function_name), function_type LIKE 'table%' FROM duckdb_functions() WHERE function_type <> 'pragma'",
  );
  const functions = reader.getRowsJS() as [name: string, isTable: boolean][];
  for (const [name, isTable] of functions) {
    const isAllowed = (isTable ? tableFunctions : scalarFunctions).has(name);
    const isRefused = refusedFunctions.some(({ pattern }) => pattern.test(name));
    const isOfOtherUse = isTable && scalarFunctions.has(name);
    assert.ok(isAllowed || isRefused || isOfOtherUse, `${name} is in no list`);
    assert.ok(!(isAllowed && isRefused), `${name} is in both lists`);
  }
  const known = new Set(functions.map(([name]) => name));
  for (const name of [...scalarFunctions, ...tableFunctions])
    assert.ok(known.has(name), `${name} does not exist`);
});

test('no text makes the check throw, and no table of the system gets through', async () => {
  const token = fc.constantFrom(
    ...'SELECT FROM WHERE WITH AS ( ) , ; * 1 customers t duckdb_tables pg_class main. AND UNION ALL JOIN ON "'.split(
      ' ',
    ),
    "'a'",
    'current_setting(',
    '--',
    '/*',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 14 }), async (tokens) => {
      const sql = tokens.join(' ');
      const refusal = await check(sql);
      if (refusal !== null) return;
      const names = replica.connection.getTableNames(sql, false);
      assert.ok(!names.some((name) => /duckdb_tables|pg_class/.test(name)), sql);
    }),
    { numRuns: 400 },
  );
});

test('a query that takes long to parse does not delay others', async () => {
  const slow = parser.syntaxTree(`SELECT 1 WHERE ${'a AND '.repeat(16_000)}a`);
  let isSlowDone = false;
  void slow.then(() => {
    isSlowDone = true;
  });
  await parser.syntaxTree('SELECT 1');
  assert.equal(isSlowDone, false);
  await slow;
});
