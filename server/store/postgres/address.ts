// Reads the URL of a PostgreSQL database as libpq does. pg-connection-string, which node-postgres uses, reads neither
// several hosts nor sslrootcert=system, accepts a broken percent-encoding, and gives sslmode=require another meaning.

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
  /** What the connections to all hosts have in common. */
  readonly config: ClientConfig;
  /** One or more servers, of which one takes writes at a time. */
  readonly hosts: readonly Host[];
  /** Whether a server that takes no writes is passed over. With one host it otherwise serves reads. */
  readonly needsWritable: boolean;
}

export type Host = Pick<ClientConfig, 'host' | 'port' | 'ssl'>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Whatever the URL leaves out is taken from PGHOST, PGUSER and so on, as every PostgreSQL tool does. */
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

/** The same database, with the question of TLS settled. */
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
  // A URL has one host; with several, all that is not a host is read with one that stands in for them.
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
      `the PostgreSQL URL has the parameter ${unknown}, which is not known here: there is ${parameters.join(', ')}`,
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

/** One for each host, or one for all of them. */
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

/** Returns whether a server that takes writes is asked for. Throws if one that takes none is, which would be of no use. */
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
      'the PostgreSQL URL has a % that encodes nothing: write %25 for a percent sign in a name or password',
    );
  }
}

function readSslMode(word: string | undefined): SslMode {
  // Without a word libpq prefers TLS, and so do we: an old URL keeps working, and a new server is encrypted.
  if (word === undefined) return 'prefer';
  const mode = sslModes.find((known) => known === word);
  if (mode === undefined) {
    throw new StoreUnusable(`sslmode=${word} is not known here: there is ${sslModes.join(', ')}`);
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
      'sslmode=verify-ca needs sslrootcert=FILE: any public authority would otherwise do, for any name',
    );
  }
  // As in libpq: a root certificate that is given is used, even where the mode alone would not ask for it.
  const checksAuthority = mode === 'verify-ca' || mode === 'verify-full' || ca !== undefined;
  return {
    rejectUnauthorized: checksAuthority,
    // Said outright, because Node would compare the certificate of a numeric address with "localhost".
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
