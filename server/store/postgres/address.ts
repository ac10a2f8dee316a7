// Reads the URL of a PostgreSQL database as libpq does. The parser of node-postgres, pg-connection-string, is not used:
// it supports neither several hosts nor sslrootcert=system, accepts broken percent-encoding, and interprets
// sslmode=require differently from libpq.

import { readFileSync } from 'node:fs';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import type { ClientConfig } from 'pg';
import { StoreUnusable } from '../store.ts';

const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof sslModes)[number];

const parameters = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'application_name',
  'options',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'target_session_attrs',
] as const;
type Parameter = (typeof parameters)[number];
type Parameters = Readonly<Partial<Record<Parameter, string>>>;

export interface Address {
  readonly url: string;
  /** Names the database in messages, without the password. */
  readonly shown: string;
  readonly sslMode: SslMode;
  /** The settings that the connections to all hosts share. */
  readonly config: ClientConfig;
  /** One or more servers. Only one of them accepts writes at a time. */
  readonly hosts: readonly Host[];
  /**
   * Whether read-only servers are skipped. Always true if there are several hosts. If it is false, the only host may be
   * read-only; Headgate can then only read.
   */
  readonly needsWritable: boolean;
}

export type Host = Pick<ClientConfig, 'host' | 'port' | 'ssl'>;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the URL. Parts that the URL lacks are taken from the environment variables PGHOST, PGUSER and so on, as in
 * every PostgreSQL tool.
 */
export function readAddress(url: string, env: Environment = process.env): Address {
  const given = readParameters(url);
  const names = (given.host ?? env.PGHOST ?? 'localhost').split(',');
  const ports = readPorts(given.port ?? env.PGPORT ?? '', names.length);
  const isLocalSocket = names.every((name) => name.startsWith('/'));
  const sslMode = isLocalSocket ? 'disable' : readSslMode(given.sslmode ?? env.PGSSLMODE);
  const user = given.user ?? env.PGUSER ?? env.USER ?? 'postgres';
  const database = given.dbname ?? env.PGDATABASE ?? user;
  const password = given.password ?? env.PGPASSWORD;
  const hosts = names.map((name, at): Required<Host> => {
    const host = name === '' ? 'localhost' : name;
    return { host, port: ports[at]!, ssl: host.startsWith('/') ? false : tlsOptions(sslMode, host, given) };
  });
  const shownHosts = hosts.map(({ host, port }) => (host!.startsWith('/') ? host : `${host}:${port}`));
  const asksForWritable = readTarget(given.target_session_attrs ?? env.PGTARGETSESSIONATTRS);
  return {
    url,
    shown: `the PostgreSQL database ${database} at ${shownHosts.join(',')}`,
    sslMode,
    config: {
      user,
      database,
      ...(password === undefined ? {} : { password }),
      ...(given.options === undefined ? {} : { options: given.options }),
      application_name: given.application_name ?? 'headgate',
    },
    hosts,
    needsWritable: asksForWritable || hosts.length > 1,
  };
}

export function withSslMode({ url }: Address, sslMode: SslMode): Address {
  const [base, query] = url.split('?', 2) as [string, string?];
  const changed = new URLSearchParams(query);
  changed.set('sslmode', sslMode);
  return readAddress(`${base}?${changed}`);
}

const urlParts = /^([a-z]+:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/is;
const hostParts = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/;

function readParameters(url: string): Parameters {
  const [, scheme, userInfo = '', hostList = '', rest] = urlParts.exec(url) ?? [];
  const hosts = hostList.split(',').map((host) => hostParts.exec(host));
  // `URL.parse` accepts only one host, so a placeholder replaces the list of hosts while the rest is parsed.
  const parsed = URL.parse(`${scheme}${userInfo}host${rest}`);
  if (parsed === null || hosts.includes(null)) {
    throw new StoreUnusable(
      'the PostgreSQL URL cannot be read: give postgres://USER:PASSWORD@HOST:PORT/DATABASE, ' +
        'with special characters of the password percent-encoded',
    );
  }
  const unknown = parsed.searchParams
    .keys()
    .find((name) => !(parameters as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw new StoreUnusable(
      `the PostgreSQL URL has the parameter ${unknown}, which is not supported: use ${parameters.join(', ')}`,
    );
  }
  const given: [name: string, value: string][] = [
    ['host', hosts.map((host) => decode(host![1]!).replace(/^\[(.*)\]$/, '$1')).join(',')],
    ['port', hosts.some((host) => host![2]) ? hosts.map((host) => host![2] ?? '').join(',') : ''],
    ['user', decode(parsed.username)],
    ['password', decode(parsed.password)],
    ['dbname', decode(parsed.pathname.slice(1))],
    ...parsed.searchParams,
  ];
  return Object.fromEntries(given.filter(([, value]) => value !== ''));
}

/** Returns a port for each host. `list` has either one port for each host or a single port for all hosts. */
function readPorts(list: string, hosts: number): readonly number[] {
  const given = list.split(',');
  if (given.length !== 1 && given.length !== hosts) {
    throw new StoreUnusable(
      `the PostgreSQL URL has ${hosts} hosts and ${given.length} ports: give one for each`,
    );
  }
  const ports = given.map((port) => (port === '' ? 5432 : Number(port)));
  if (!ports.every((port) => Number.isInteger(port) && port >= 1 && port <= 65_535)) {
    throw new StoreUnusable(`the port of the PostgreSQL URL must be from 1 to 65535, not ${list}`);
  }
  return given.length === hosts ? ports : Array.from({ length: hosts }, () => ports[0]!);
}

/**
 * Returns whether a writable server is required. Throws if `word` asks for a read-only server, because Headgate has to
 * write.
 */
function readTarget(word = 'any'): boolean {
  if (word === 'any') return false;
  if (word === 'read-write' || word === 'primary') return true;
  throw new StoreUnusable(
    `target_session_attrs=${word} cannot be used: Headgate writes; give any, read-write or primary`,
  );
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new StoreUnusable(
      'the PostgreSQL URL has an invalid percent-encoding: write %25 for a percent sign in a name or password',
    );
  }
}

function readSslMode(word: string | undefined): SslMode {
  // As in libpq, the default is `prefer`: connections are encrypted if the server offers TLS, and old URLs of servers
  // without TLS keep working.
  if (word === undefined) return 'prefer';
  const mode = sslModes.find((known) => known === word);
  if (mode === undefined) {
    throw new StoreUnusable(`sslmode=${word} is not supported: use ${sslModes.join(', ')}`);
  }
  return mode;
}

function tlsOptions(
  mode: SslMode,
  host: string,
  { sslrootcert, sslcert, sslkey }: Parameters,
): false | ConnectionOptions {
  if (mode === 'disable') return false;
  const ca =
    sslrootcert === undefined || sslrootcert === 'system' ? undefined : readPem('sslrootcert', sslrootcert);
  if (mode === 'verify-ca' && ca === undefined) {
    throw new StoreUnusable(
      'sslmode=verify-ca needs sslrootcert=FILE: without it, any certificate of a public authority would be accepted',
    );
  }
  // As in libpq, if the URL names a root certificate, the server's certificate is checked against it even if `sslmode`
  // does not require a check.
  const checksAuthority = mode === 'verify-ca' || mode === 'verify-full' || ca !== undefined;
  return {
    rejectUnauthorized: checksAuthority,
    // Passes the host explicitly, because for an IP address Node would compare the certificate with "localhost".
    checkServerIdentity: (_, certificate) =>
      mode === 'verify-full' ? checkServerIdentity(host, certificate) : undefined,
    ...(ca === undefined ? {} : { ca }),
    ...(sslcert === undefined ? {} : { cert: readPem('sslcert', sslcert) }),
    ...(sslkey === undefined ? {} : { key: readPem('sslkey', sslkey) }),
  };
}

function readPem(parameter: Parameter, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StoreUnusable(
      `${parameter} of the PostgreSQL URL names a file that cannot be read: ${(error as Error).message}`,
    );
  }
}
