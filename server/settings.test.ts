import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Failure } from './failure.ts';
import {
  isLoopback,
  parseDurationMs,
  readSetting,
  readSettings,
  type Settings,
  settingDescriptions,
  settingWarnings,
} from './settings.ts';

function settingsFrom(env: Record<string, string>, flags: Record<string, string> = {}): Settings {
  const settings = readSettings(env, flags);
  assert.ok(!(settings instanceof Failure), (settings as Failure).reason);
  return settings;
}

function problemFrom(env: Record<string, string>, flags: Record<string, string> = {}): string {
  const settings = readSettings(env, flags);
  assert.ok(settings instanceof Failure, 'the settings were accepted');
  return settings.reason;
}

const KIB = 1024;
const MIB = 1024 * KIB;

test('every setting has its documented default', () => {
  assert.deepEqual(settingsFrom({}), {
    host: '127.0.0.1',
    port: 8080,
    database: 'sqlite:./data/headgate.db',
    workers: 1,
    batchSize: 1000,
    maxRecords: 5000,
    maxBodyBytes: 32 * MIB,
    maxInFlightBytes: 256 * MIB,
    maxConnections: 5000,
    stallTimeoutMs: 30_000,
    changesKeepMs: 30 * 24 * 3_600_000,
    uploadsKeepMs: 400 * 24 * 3_600_000,
    rateLimitPerSecond: 1000,
    analytics: 'on',
    analyticsDir: null,
    analyticsMemoryBytes: 1024 * MIB,
    sqlTimeoutMs: 30_000,
    sqlMaxRows: 10_000,
    segmentsEveryMs: 900_000,
    tlsCertFile: null,
    tlsKeyFile: null,
    behindProxy: false,
    allowedOrigins: null,
    logLevel: 'info',
    logFormat: 'auto',
    metricsPort: null,
    metricsHost: '127.0.0.1',
    shutdownTimeoutMs: 30_000,
  });
});

test('every setting is read from its variable', () => {
  const settings = settingsFrom({
    HEADGATE_HOST: '[::1]',
    HEADGATE_PORT: '0',
    HEADGATE_DATABASE: 'postgres://db.internal/headgate',
    HEADGATE_WORKERS: '4',
    HEADGATE_BATCH_SIZE: '1',
    HEADGATE_MAX_RECORDS: '10',
    HEADGATE_MAX_BODY: '512KiB',
    HEADGATE_MAX_IN_FLIGHT: '1GiB',
    HEADGATE_CHANGES_KEEP: '7d',
    HEADGATE_UPLOADS_KEEP: '60d',
    HEADGATE_MAX_CONNECTIONS: '200',
    HEADGATE_STALL_TIMEOUT: '2m',
    HEADGATE_RATE_LIMIT: 'off',
    HEADGATE_ANALYTICS: 'off',
    HEADGATE_ANALYTICS_DIR: '/var/cache/headgate',
    HEADGATE_ANALYTICS_MEMORY: '2GiB',
    HEADGATE_SQL_TIMEOUT: '2m',
    HEADGATE_SQL_MAX_ROWS: '500',
    HEADGATE_SEGMENTS_EVERY: '1m',
    HEADGATE_TLS_CERT: 'cert.pem',
    HEADGATE_TLS_KEY: 'key.pem',
    HEADGATE_BEHIND_PROXY: 'true',
    HEADGATE_ALLOWED_ORIGINS: 'https://App.example.com:443, http://localhost:3000/',
    HEADGATE_LOG_LEVEL: 'silent',
    HEADGATE_LOG_FORMAT: 'pretty',
    HEADGATE_METRICS_PORT: '9464',
    HEADGATE_METRICS_HOST: '0.0.0.0',
    HEADGATE_SHUTDOWN_TIMEOUT: '250ms',
  });
  assert.deepEqual(settings, {
    host: '::1',
    port: 0,
    database: 'postgres://db.internal/headgate',
    workers: 4,
    batchSize: 1,
    maxRecords: 10,
    maxBodyBytes: 512 * KIB,
    maxInFlightBytes: 1024 * MIB,
    maxConnections: 200,
    stallTimeoutMs: 120_000,
    changesKeepMs: 7 * 24 * 3_600_000,
    uploadsKeepMs: 60 * 24 * 3_600_000,
    rateLimitPerSecond: null,
    analytics: 'off',
    analyticsDir: '/var/cache/headgate',
    analyticsMemoryBytes: 2048 * MIB,
    sqlTimeoutMs: 120_000,
    sqlMaxRows: 500,
    segmentsEveryMs: 60_000,
    tlsCertFile: 'cert.pem',
    tlsKeyFile: 'key.pem',
    behindProxy: true,
    allowedOrigins: ['https://app.example.com', 'http://localhost:3000'],
    logLevel: 'silent',
    logFormat: 'pretty',
    metricsPort: 9464,
    metricsHost: '0.0.0.0',
    shutdownTimeoutMs: 250,
  });
});

test('sizes are numbers of bytes, or numbers with a unit in upper or lower case', () => {
  for (const [text, bytes] of [
    ['1000', 1000],
    ['1000b', 1000],
    ['3 kib', 3 * KIB],
    ['32MIB', 32 * MIB],
  ] as const) {
    assert.equal(settingsFrom({ HEADGATE_MAX_BODY: text }).maxBodyBytes, bytes, text);
  }
});

test('durations are whole numbers with a unit and nothing else', () => {
  assert.equal(parseDurationMs('90d'), 90 * 24 * 3_600_000);
  assert.equal(parseDurationMs('24h'), 24 * 3_600_000);
  assert.equal(parseDurationMs('30m'), 30 * 60_000);
  assert.equal(parseDurationMs('45s'), 45_000);
  assert.equal(parseDurationMs('0s'), 0);
  for (const text of ['', '90', 'd', '-1d', '1.5h', '1 d', '1w', '1D', '1h30m', '9999999999d']) {
    assert.equal(parseDurationMs(text), null, text);
  }
});

test('an invalid value is refused in one sentence with the setting, the value and the expected form', () => {
  const wrong: [name: string, value: string, expected: string][] = [
    ['HEADGATE_HOST', 'a host', 'host name'],
    ['HEADGATE_HOST', '127.0.0.1:80', 'without a port'],
    ['HEADGATE_PORT', '65536', '0 to 65535'],
    ['HEADGATE_PORT', '-1', '0 to 65535'],
    ['HEADGATE_PORT', '80.5', 'whole number'],
    ['HEADGATE_PORT', '0x50', 'whole number'],
    ['HEADGATE_DATABASE', 'sqlite:', 'sqlite:PATH'],
    ['HEADGATE_DATABASE', 'SQLite:', 'sqlite:PATH'],
    ['HEADGATE_DATABASE', ':memory:', 'sqlite:PATH'],
    ['HEADGATE_WORKERS', '0', 'from 1'],
    ['HEADGATE_BATCH_SIZE', '0', 'from 1'],
    ['HEADGATE_BATCH_SIZE', 'many', 'whole number'],
    ['HEADGATE_MAX_RECORDS', '0', 'from 1'],
    ['HEADGATE_MAX_BODY', '0', 'size'],
    ['HEADGATE_MAX_BODY', '32MB', '32MiB'],
    ['HEADGATE_MAX_BODY', '501MiB', 'at most 500MiB'],
    ['HEADGATE_MAX_IN_FLIGHT', 'lots', 'size'],
    ['HEADGATE_RATE_LIMIT', '0', 'or off'],
    ['HEADGATE_RATE_LIMIT', 'none', 'or off'],
    ['HEADGATE_BEHIND_PROXY', 'yes', 'true or false'],
    ['HEADGATE_ALLOWED_ORIGINS', 'app.example.com', 'https://app.example.com'],
    ['HEADGATE_ALLOWED_ORIGINS', 'https://app.example.com/path', 'origins'],
    ['HEADGATE_ALLOWED_ORIGINS', 'https://app.example.com,', 'separated by commas'],
    ['HEADGATE_ALLOWED_ORIGINS', 'https://app.example.com,*', 'or * for all'],
    ['HEADGATE_ALLOWED_ORIGINS', 'https://*.example.com', 'origins'],
    ['HEADGATE_ALLOWED_ORIGINS', 'null', 'origins'],
    ['HEADGATE_LOG_LEVEL', 'loud', 'silent, error, warn, info, debug'],
    ['HEADGATE_SHUTDOWN_TIMEOUT', '30', 'unit'],
    ['HEADGATE_SHUTDOWN_TIMEOUT', '25h', 'to 24h'],
  ];
  for (const [name, value, expected] of wrong) {
    const problem = problemFrom({ [name]: value });
    assert.ok(problem.startsWith(`${name} must be `), problem);
    assert.ok(problem.includes(expected), problem);
    assert.ok(problem.endsWith(`not ${JSON.stringify(value)}`), problem);
  }
});

test('equal ports, and several workers on SQLite, are refused', () => {
  assert.match(
    problemFrom({ HEADGATE_METRICS_PORT: '8080' }),
    /^HEADGATE_METRICS_PORT and HEADGATE_PORT .* are both 8080: /,
  );
  assert.match(problemFrom({ HEADGATE_WORKERS: '2' }), /^HEADGATE_WORKERS .* SQLite .*postgres:/);
  for (const database of ['postgres://x/y', 'postgresql://x/y', 'POSTGRES://x/y', 'PostgreSQL://x/y']) {
    assert.equal(settingsFrom({ HEADGATE_WORKERS: '2', HEADGATE_DATABASE: database }).workers, 2, database);
  }
});

test('a long invalid value is shortened in the message', () => {
  assert.ok(problemFrom({ HEADGATE_PORT: '9'.repeat(5000) }).length < 250);
});

test('a refused database address is quoted without its password', () => {
  const problem = problemFrom({ HEADGATE_DATABASE: 'mysql://root:hunter2@db/headgate' });
  assert.match(problem, /mysql:/);
  assert.doesNotMatch(problem, /hunter2|root/);
});

test('a flag overrides the environment, and a message about it names the flag', () => {
  const env = { HEADGATE_PORT: '1', HEADGATE_HOST: 'localhost', HEADGATE_DATABASE: 'a.db' };
  assert.equal(settingsFrom(env, { port: '2' }).port, 2);
  assert.equal(settingsFrom(env, { host: '127.0.0.2' }).host, '127.0.0.2');
  assert.equal(settingsFrom(env, { database: 'b.db' }).database, 'b.db');
  assert.equal(settingsFrom({ HEADGATE_PORT: 'wrong' }, { port: '2' }).port, 2);
  assert.match(problemFrom({ HEADGATE_PORT: '1' }, { port: 'x' }), /^--port must be .*"x"$/);
  assert.match(problemFrom({}, { port: '' }), /^--port must be /);
});

test('an empty variable counts as not given', () => {
  assert.equal(settingsFrom({ HEADGATE_PORT: '' }).port, 8080);
  assert.equal(settingsFrom({ HEADGATE_TLS_CERT: '', HEADGATE_TLS_KEY: '' }).tlsCertFile, null);
});

test('one setting can be read if others are invalid', () => {
  assert.equal(readSetting('database', { HEADGATE_PORT: 'x', HEADGATE_DATABASE: 'a.db' }), 'a.db');
});

test('a certificate without its key, or a key without its certificate, is refused', () => {
  assert.match(
    problemFrom({ HEADGATE_TLS_CERT: 'c.pem' }),
    /HEADGATE_TLS_CERT is given without HEADGATE_TLS_KEY/,
  );
  assert.match(
    problemFrom({ HEADGATE_TLS_KEY: 'k.pem' }),
    /HEADGATE_TLS_KEY is given without HEADGATE_TLS_CERT/,
  );
});

test('without HTTPS an address that is not loopback is refused, with advice', () => {
  for (const host of ['0.0.0.0', '::', '192.168.1.4', 'example.com', '127.0.0.1.example.com']) {
    const problem = problemFrom({ HEADGATE_HOST: host });
    assert.match(problem, /HEADGATE_TLS_CERT.*HEADGATE_BEHIND_PROXY=true.*127\.0\.0\.1/);
    assert.ok(problem.includes(JSON.stringify(host)), problem);
  }
  assert.match(problemFrom({}, { host: '0.0.0.0' }), /no HTTPS/);
});

test('with TLS, or behind a proxy, any address is accepted', () => {
  assert.equal(
    settingsFrom({ HEADGATE_HOST: '::', HEADGATE_TLS_CERT: 'c.pem', HEADGATE_TLS_KEY: 'k.pem' }).host,
    '::',
  );
  assert.equal(settingsFrom({ HEADGATE_HOST: '0.0.0.0', HEADGATE_BEHIND_PROXY: 'true' }).host, '0.0.0.0');
});

test('loopback is 127.0.0.0/8, ::1 and localhost, however written', () => {
  for (const host of ['127.0.0.1', '127.255.0.9', '::1', '0:0:0:0:0:0:0:1', 'localhost', 'LocalHost']) {
    assert.equal(isLoopback(host), true, host);
  }
  for (const host of ['128.0.0.1', '0.0.0.0', '::', '::2', 'localhost.example.com', '127.example.com']) {
    assert.equal(isLoopback(host), false, host);
  }
});

test('the limit of bytes in flight is never lower than the largest body', () => {
  assert.equal(settingsFrom({ HEADGATE_MAX_BODY: '300MiB' }).maxInFlightBytes, 300 * MIB);
  assert.match(
    problemFrom({ HEADGATE_MAX_BODY: '2MiB', HEADGATE_MAX_IN_FLIGHT: '1MiB' }),
    /HEADGATE_MAX_IN_FLIGHT must be at least HEADGATE_MAX_BODY \(2097152 bytes\), not 1048576/,
  );
});

test('an unknown HEADGATE_ variable causes a warning with a similar name, unless it is for tests', () => {
  const warnings = settingWarnings({
    HEADGATE_PROT: '1',
    HEADGATE_COLOUR: 'red',
    HEADGATE_PORT: '1',
    HEADGATE_TEST_POSTGRES: 'x',
    HOME: '/',
  });
  assert.equal(warnings.length, 2);
  assert.match(warnings[0]!, /^HEADGATE_PROT is not a setting .*did you mean HEADGATE_PORT\?$/);
  assert.match(warnings[1]!, /^HEADGATE_COLOUR is not a setting of Headgate and has no effect$/);
});

test('the table for the documentation has one row per setting, with its flag and default', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const table = /<!-- settings -->\n(.*?)\n<!-- \/settings -->/s.exec(readme)![1]!;
  const [heading, rule, ...rows] = table.split('\n');
  assert.match(heading!, /Setting.*Flag.*Default/);
  assert.match(rule!, /^[| -]+$/);
  assert.equal(rows.length, settingDescriptions.length);
  for (const [index, { env, flag, default: defaultText, help }] of settingDescriptions.entries()) {
    const row = rows[index]!;
    assert.equal(row.split('|').length, 6, `a cell breaks the row: ${row}`);
    for (const part of [env, flag === null ? '' : `--${flag}`, defaultText ?? '', help]) {
      assert.ok(row.includes(part), `${part} is not in ${row}`);
    }
  }
});

test('every default is an accepted value', () => {
  for (const { env, default: defaultText } of settingDescriptions) {
    if (defaultText !== null) settingsFrom({ [env]: defaultText });
  }
});
