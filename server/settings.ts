// Declares every setting in a table. The code that reads settings, the warnings, `--help` and the docs are all based on
// this table.

import { BlockList, isIP, isIPv6 } from 'node:net';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from './failure.ts';
import { nearName } from './near-name.ts';
import { logFormats, logLevels } from './observe/log.ts';
import { isPostgres, readDatabaseLocation } from './store/database-location.ts';

/** A kind of value. Users give values as text, in the environment or on the command line. */
interface ValueKind<Value> {
  /** The end of the sentence "must be …" in messages and docs. */
  readonly accepts: string;
  /** Returns the value, or undefined if the text is not accepted. Null can be a value. */
  parse(text: string): Value | undefined;
  /** Returns how error messages quote a refused text. It is needed if the whole text could contain a secret. */
  quoted?(text: string): string;
}

interface Setting<Value = unknown, Default extends string | null = string | null> {
  readonly env: string;
  /** The option on the command line, without its dashes. Null if the setting has no option. */
  readonly flag: string | null;
  readonly kind: ValueKind<Value>;
  /** The default, as a user would write it. If it is null, a setting that is not given has the value null. */
  readonly default: Default;
  readonly help: string;
}

function setting<Value, Default extends string | null>(
  env: string,
  kind: ValueKind<Value>,
  defaultText: Default,
  help: string,
  flag: string | null = null,
): Setting<Value, Default> {
  return { env, flag, kind, default: defaultText, help };
}

const UNIT_BYTES = { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 };
const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the milliseconds of a duration such as `90d`, `24h`, `30m`, `45s` or `250ms`. Null if it is invalid. */
export function parseDurationMs(text: string): number | null {
  const parts = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return parts === null ? null : Number(parts[1]) * UNIT_MS[parts[2] as keyof typeof UNIT_MS];
}

export const durationForm = 'a whole number with a unit, such as 90d, 24h, 30m or 45s';

function parseBytes(text: string): number | undefined {
  const parts = /^(\d{1,15}) ?(b|kib|mib|gib)?$/i.exec(text);
  if (parts === null) return undefined;
  return Number(parts[1]) * UNIT_BYTES[(parts[2] ?? 'b').toLowerCase() as keyof typeof UNIT_BYTES];
}

function within(value: number | null | undefined, least: number, most: number): number | undefined {
  return value != null && value >= least && value <= most ? value : undefined;
}

function integer(least: number, most: number): ValueKind<number> {
  return {
    accepts: `a whole number from ${least} to ${most}`,
    parse: (text) => within(/^\d{1,15}$/.test(text) ? Number(text) : undefined, least, most),
  };
}

function bytes(mostText: string): ValueKind<number> {
  const most = parseBytes(mostText)!;
  return {
    accepts: `a size in bytes or with a unit, such as 512KiB or 32MiB, of at most ${mostText}`,
    parse: (text) => within(parseBytes(text), 1, most),
  };
}

function duration(leastText: string, mostText: string): ValueKind<number> {
  const least = parseDurationMs(leastText)!;
  const most = parseDurationMs(mostText)!;
  return {
    accepts: `${durationForm}, from ${leastText} to ${mostText}`,
    parse: (text) => within(parseDurationMs(text), least, most),
  };
}

function oneOf<const Word extends string>(...words: Word[]): ValueKind<Word> {
  return {
    accepts: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
  };
}

const trueOrFalse: ValueKind<boolean> = {
  accepts: 'true or false',
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
};

const file: ValueKind<string> = {
  accepts: 'the path of a PEM file',
  parse: (text) => (text === '' || text.includes('\0') ? undefined : text),
};

const folder: ValueKind<string> = {
  accepts: 'the path of a folder',
  parse: file.parse,
};

const host: ValueKind<string> = {
  accepts: 'an IP address or a host name, without a port',
  parse(text) {
    const bare = /^\[.*\]$/.test(text) && isIPv6(text.slice(1, -1)) ? text.slice(1, -1) : text;
    return isIP(bare) !== 0 || /^[a-z0-9]([a-z0-9.-]{0,252})$/i.test(bare) ? bare : undefined;
  },
};

const database: ValueKind<string> = {
  accepts: 'sqlite:PATH, just the path, or postgres://…',
  parse: (text) => (readDatabaseLocation(text) instanceof Failure ? undefined : text),
  quoted: (text) => quote(text.replace(/(:\/\/).+$/s, '$1…')),
};

/** The origins whose pages may call Headgate, or `*` for all. */
export type AllowedOrigins = '*' | readonly string[];

const origins: ValueKind<AllowedOrigins> = {
  accepts: 'origins such as https://app.example.com, separated by commas, or * for all',
  parse(text) {
    if (text.trim() === '*') return '*';
    const parsed = text.split(',').map((part) => originOf(part.trim()));
    return parsed.every((origin) => origin !== null) ? parsed : undefined;
  },
};

/** Returns the origin as browsers write it, or null if the text is not exactly an origin. */
function originOf(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isBare =
    url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` && !text.includes('*');
  return isBare ? url.origin : null;
}

const requestsPerSecond: ValueKind<number | null> = {
  accepts: 'a whole number from 1 to 1000000, or off',
  parse: (text) => (text === 'off' ? null : integer(1, 1_000_000).parse(text)),
};

const serverUrl: ValueKind<string> = {
  accepts: 'an address that begins with http:// or https://, without a user name',
  parse(text) {
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '') return undefined;
    return text;
  },
  quoted: (text) => quote(text.replace(/(:\/\/).+@/s, '$1…@')),
};

const apiKey: ValueKind<string> = {
  accepts: 'an API key, hg_…, without spaces',
  parse: (text) => (/^[\x21-\x7e]+$/.test(text) ? text : undefined),
  quoted: () => 'the given text',
};

const keyFile: ValueKind<string> = {
  accepts: 'the path of a file that contains only the key',
  parse: file.parse,
};

/** The settings of a server. */
const ofServer = {
  host: setting('HEADGATE_HOST', host, '127.0.0.1', 'The address to listen on.', 'host'),
  port: setting(
    'HEADGATE_PORT',
    integer(0, 65_535),
    '8080',
    'The port to listen on; 0 picks a free one.',
    'port',
  ),
  database: setting(
    'HEADGATE_DATABASE',
    database,
    'sqlite:./data/headgate.db',
    'The database: a SQLite file, which is created if it does not exist, or a PostgreSQL database.',
    'database',
  ),
  workers: setting(
    'HEADGATE_WORKERS',
    integer(1, 256),
    '1',
    'How many processes serve the port together. More than one needs PostgreSQL.',
    'workers',
  ),
  batchSize: setting(
    'HEADGATE_BATCH_SIZE',
    integer(1, 1_000_000),
    '1000',
    'The number of records in a batch. The response to an upload has one result for each batch.',
  ),
  maxRecords: setting(
    'HEADGATE_MAX_RECORDS',
    integer(1, 1_000_000),
    '5000',
    'The most records in one upload.',
  ),
  maxBodyBytes: setting(
    'HEADGATE_MAX_BODY',
    // A body must fit into one string, and V8's longest string is a little below 512 MiB.
    bytes('500MiB'),
    '32MiB',
    'The largest request body after decompression.',
  ),
  maxInFlightBytes: setting(
    'HEADGATE_MAX_IN_FLIGHT',
    bytes('1024GiB'),
    '256MiB',
    'The most bytes of request bodies and large responses that each process keeps in memory. Further requests get a ' +
      '503. One organisation can use at most as much as it leaves free. Never less than HEADGATE_MAX_BODY.',
  ),
  maxConnections: setting(
    'HEADGATE_MAX_CONNECTIONS',
    integer(16, 1_000_000),
    '5000',
    'The most connections that each process keeps open. For one more, the IP address with the most loses one: the ' +
      'oldest without a request, else the one that has been idle the longest, else the one that has been busy the longest.',
  ),
  stallTimeoutMs: setting(
    'HEADGATE_STALL_TIMEOUT',
    duration('1s', '1h'),
    '30s',
    'How long a client may stall while it sends a body or reads a response before the connection is closed.',
  ),
  changesKeepMs: setting(
    'HEADGATE_CHANGES_KEEP',
    duration('1m', '3650d'),
    '30d',
    'How long GET /v1/changes can go back: the ids of changed records are deleted from the ledger after this time.',
  ),
  uploadsKeepMs: setting(
    'HEADGATE_UPLOADS_KEEP',
    duration('1m', '3650d'),
    '400d',
    'How long GET /v1/uploads can go back: entries are deleted from the ledger after this time.',
  ),
  rateLimitPerSecond: setting(
    'HEADGATE_RATE_LIMIT',
    requestsPerSecond,
    '1000',
    'The requests per second that each key may make, or off. Each process counts separately.',
  ),
  analytics: setting(
    'HEADGATE_ANALYTICS',
    oneOf('on', 'off'),
    'on',
    'Whether SQL queries, reports and segments are available. An organisation that uses none of them costs nothing.',
  ),
  analyticsDir: setting(
    'HEADGATE_ANALYTICS_DIR',
    folder,
    null,
    'The folder for the copies of the data on which queries run. They can be deleted at any time. The default is ' +
      '`analytics` beside the SQLite file, or ./data/analytics with PostgreSQL.',
  ),
  analyticsMemoryBytes: setting(
    'HEADGATE_ANALYTICS_MEMORY',
    bytes('1024GiB'),
    '1GiB',
    'The most memory that queries use together, in processes of their own.',
  ),
  sqlTimeoutMs: setting(
    'HEADGATE_SQL_TIMEOUT',
    duration('1s', '1h'),
    '30s',
    'How long an SQL query, a report or the evaluation of a segment may take.',
  ),
  sqlMaxRows: setting(
    'HEADGATE_SQL_MAX_ROWS',
    integer(1, 1_000_000),
    '10000',
    'The most rows in a JSON response to an SQL query. CSV, NDJSON and Parquet have no limit.',
  ),
  segmentsEveryMs: setting(
    'HEADGATE_SEGMENTS_EVERY',
    duration('1s', '7d'),
    '15m',
    'How often segments are evaluated. They are also evaluated when they are saved, and on request.',
  ),
  tlsCertFile: setting(
    'HEADGATE_TLS_CERT',
    file,
    null,
    'The certificate chain for HTTPS. Needs HEADGATE_TLS_KEY.',
  ),
  tlsKeyFile: setting(
    'HEADGATE_TLS_KEY',
    file,
    null,
    'The private key of the certificate. Needs HEADGATE_TLS_CERT.',
  ),
  behindProxy: setting(
    'HEADGATE_BEHIND_PROXY',
    trueOrFalse,
    'false',
    'True if a proxy in front terminates TLS. The server may then listen on any address, and refuses requests ' +
      'whose X-Forwarded-Proto is not https.',
  ),
  allowedOrigins: setting(
    'HEADGATE_ALLOWED_ORIGINS',
    origins,
    null,
    'The origins whose pages may call the API from a browser. Without it, browsers allow only pages of the same origin.',
  ),
  logLevel: setting(
    'HEADGATE_LOG_LEVEL',
    oneOf(...logLevels),
    'info',
    'How much is logged on standard error. info logs every request, warn only those with a 5xx response.',
  ),
  logFormat: setting(
    'HEADGATE_LOG_FORMAT',
    oneOf(...logFormats),
    'auto',
    'The format of the log: json for programs, pretty for people. auto is pretty on a terminal, otherwise json.',
  ),
  metricsPort: setting(
    'HEADGATE_METRICS_PORT',
    integer(0, 65_535),
    null,
    'The port of /metrics for Prometheus; 0 picks a free one. Without it, metrics are off.',
  ),
  metricsHost: setting(
    'HEADGATE_METRICS_HOST',
    host,
    '127.0.0.1',
    'The address of /metrics. It is served without a key and over plain HTTP, so only Prometheus should reach it.',
  ),
  shutdownTimeoutMs: setting(
    'HEADGATE_SHUTDOWN_TIMEOUT',
    duration('1ms', '24h'),
    '30s',
    'How long a stop waits for requests in flight. Clients that stall are disconnected sooner.',
  ),
};

/** The settings of the commands that call a server. */
const ofCallers = {
  url: setting(
    'HEADGATE_URL',
    serverUrl,
    'http://127.0.0.1:8080',
    'The server that `load`, `export`, `changes`, `uploads`, `sql`, `segments` and `report` call.',
    'url',
  ),
  apiKey: setting(
    'HEADGATE_KEY',
    apiKey,
    null,
    'The API key for `load`, `export`, `changes`, `uploads`, `sql`, `segments` and `report`. It has no flag, because the list of processes would show it.',
  ),
  apiKeyFile: setting(
    'HEADGATE_KEY_FILE',
    keyFile,
    null,
    'A file with the API key for `load`, `export`, `changes`, `uploads`, `sql`, `segments` and `report`, instead of HEADGATE_KEY.',
    'key-file',
  ),
};

const declared = { ...ofServer, ...ofCallers };

type Declared = typeof declared;
export type SettingName = keyof Declared;
type ServerSettingName = keyof typeof ofServer;

type ValueOf<S> = S extends Setting<infer Value, infer Default> ? Value | (Default & null) : never;

/** The settings of a server. */
export type Settings = { readonly [Name in ServerSettingName]: ValueOf<Declared[Name]> };

/** Values from the command line, by flag name. They take precedence over the environment. */
export type SettingFlags = { readonly [flag: string]: string | undefined };

export type Environment = { readonly [name: string]: string | undefined };

/** Returns the setting's environment variable, for messages about its value. */
export function environmentName(name: SettingName): string {
  return declared[name].env;
}

/** The settings as tables and help show them, in the order of their declaration. */
export const settingDescriptions = Object.entries(declared).map(
  ([name, { env, flag, kind, default: defaultText, help }]) => ({
    env,
    flag,
    accepts: kind.accepts,
    default: defaultText,
    help,
    isOfServer: Object.hasOwn(ofServer, name),
  }),
);

export function readSettings(env: Environment, flags: SettingFlags = {}): Settings | Failure {
  const values: Partial<Record<ServerSettingName, unknown>> = {};
  for (const name of Object.keys(ofServer) as readonly ServerSettingName[]) {
    const value = readSetting(name, env, flags);
    if (value instanceof Failure) return value;
    values[name] = value;
  }
  const settings = values as Settings;
  const problem = problemAcross(settings);
  if (problem !== null) return problem;
  if (settings.maxInFlightBytes >= settings.maxBodyBytes) return settings;
  if (given(declared.maxInFlightBytes, env, flags) === null) {
    return { ...settings, maxInFlightBytes: settings.maxBodyBytes };
  }
  return new Failure(
    `${declared.maxInFlightBytes.env} must be at least ${declared.maxBodyBytes.env} ` +
      `(${settings.maxBodyBytes} bytes), not ${settings.maxInFlightBytes}: ` +
      'otherwise the largest allowed body could never be accepted',
  );
}

/** Reads one setting, for commands that do not need all of them. */
export function readSetting<Name extends SettingName>(
  name: Name,
  env: Environment,
  flags: SettingFlags = {},
): ValueOf<Declared[Name]> | Failure {
  const { kind, default: defaultText, ...place }: Setting = declared[name];
  const found = given(place, env, flags);
  const text = found?.text ?? defaultText;
  if (text === null) return null as ValueOf<Declared[Name]>;
  const value = kind.parse(text);
  if (value !== undefined) return value as ValueOf<Declared[Name]>;
  const shown = kind.quoted?.(text) ?? quote(text);
  return new Failure(`${found?.where ?? place.env} must be ${kind.accepts}, not ${shown}`);
}

/**
 * Returns the text that the user gave for the setting, and the flag or variable in which it was given. Returns null if
 * none was given. An empty variable counts as not given.
 */
function given(
  { env: variable, flag }: Pick<Setting, 'env' | 'flag'>,
  env: Environment,
  flags: SettingFlags,
): { readonly text: string; readonly where: string } | null {
  const flagText = flag === null ? undefined : flags[flag];
  if (flagText !== undefined) return { text: flagText, where: `--${flag}` };
  const text = env[variable];
  return text === undefined || text === '' ? null : { text, where: variable };
}

function problemAcross(settings: Settings): Failure | null {
  const { tlsCertFile, tlsKeyFile } = settings;
  if ((tlsCertFile === null) !== (tlsKeyFile === null)) {
    const [there, missing] =
      tlsKeyFile === null
        ? [declared.tlsCertFile, declared.tlsKeyFile]
        : [declared.tlsKeyFile, declared.tlsCertFile];
    return new Failure(`${there.env} is given without ${missing.env}: HTTPS needs both`);
  }
  if (tlsCertFile === null && !settings.behindProxy && !isLoopback(settings.host)) {
    return new Failure(
      `${declared.host.env} (--host) is ${quote(settings.host)}, which others can reach, and there is no HTTPS: ` +
        `give ${declared.tlsCertFile.env} and ${declared.tlsKeyFile.env}, or set ${declared.behindProxy.env}=true ` +
        'if a proxy in front terminates TLS, or listen on 127.0.0.1',
    );
  }
  if (settings.metricsPort !== null && settings.metricsPort !== 0 && settings.metricsPort === settings.port) {
    return new Failure(
      `${declared.metricsPort.env} and ${declared.port.env} (--port) are both ${settings.port}: ` +
        'metrics need a separate port',
    );
  }
  if (settings.workers > 1 && !isPostgres(settings.database)) {
    return new Failure(
      `${declared.workers.env} (--workers) is ${settings.workers}, but only one process can write to a SQLite file: ` +
        `set ${declared.database.env}=postgres://…, or leave the workers at 1`,
    );
  }
  return null;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Returns whether only this machine can reach the host. False for every host name except localhost. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0 ? host.toLowerCase() === 'localhost' : loopback.check(host, `ipv${version as 4 | 6}`);
}

const PREFIX = 'HEADGATE_';
const TEST_PREFIX = 'HEADGATE_TEST_';

/** Returns a sentence for each variable that looks like a setting but is not one. */
export function settingWarnings(env: Environment): readonly string[] {
  const known = settingDescriptions.map((fact) => fact.env.slice(PREFIX.length));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !name.startsWith(TEST_PREFIX))
    .map((name) => name.slice(PREFIX.length))
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = nearName(name, known);
      const hint = near === null ? '' : `; did you mean ${PREFIX}${near}?`;
      return `${PREFIX}${name} is not a setting of Headgate and has no effect${hint}`;
    });
}
