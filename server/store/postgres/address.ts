// Reads the URL of a PostgreSQL database as libpq would, and in particular its sslmode: node-postgres gives
// the word `require` a meaning of its own.

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
] as const;
type Parameter = (typeof parameters)[number];

export interface Address {
  readonly url: string;
  /** Names the database in messages, without the password. */
  readonly shown: string;
  readonly sslMode: SslMode;
  readonly config: ClientConfig;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Whatever the URL leaves out is taken from PGHOST, PGUSER and so on, as every PostgreSQL tool does. */
export function readAddress(url: string, env: Environment = process.env): Address {
  const parsed = URL.parse(url);
  if (parsed === null) {
    throw new StoreUnusable(
      'the PostgreSQL URL cannot be read: give postgres://USER:PASSWORD@HOST:PORT/DATABASE, ' +
        'with special characters of the password percent-encoded',
    );
  }
  const given = readParameters(parsed);
  const host = given.host ?? env.PGHOST ?? 'localhost';
  const port = Number(given.port ?? env.PGPORT ?? 5432);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new StoreUnusable(`the port of the PostgreSQL URL must be from 1 to 65535, not ${given.port}`);
  }
  const user = given.user ?? env.PGUSER ?? env.USER ?? 'postgres';
  const database = given.dbname ?? env.PGDATABASE ?? user;
  const password = given.password ?? env.PGPASSWORD;
  const isLocalSocket = host.startsWith('/');
  const sslMode = isLocalSocket ? 'disable' : readSslMode(given.sslmode ?? env.PGSSLMODE);
  return {
    url,
    shown: `the PostgreSQL database ${database} at ${isLocalSocket ? host : `${host}:${port}`}`,
    sslMode,
    config: {
      host,
      port,
      user,
      database,
      ...(password === undefined ? {} : { password }),
      ...(given.options === undefined ? {} : { options: given.options }),
      application_name: given.application_name ?? 'headgate',
      ssl: tlsOptions(sslMode, host, given),
    },
  };
}

/** The same database, with the question of TLS settled. */
export function withSslMode({ url }: Address, sslMode: SslMode): Address {
  const changed = new URL(url);
  changed.searchParams.set('sslmode', sslMode);
  return readAddress(changed.href);
}

function readParameters(url: URL): Partial<Record<Parameter, string>> {
  const given: Partial<Record<Parameter, string>> = {};
  const take = (name: Parameter, value: string): void => {
    if (value !== '') given[name] = value;
  };
  take('host', decode(url.hostname).replace(/^\[(.*)\]$/, '$1'));
  take('port', url.port);
  take('user', decode(url.username));
  take('password', decode(url.password));
  take('dbname', decode(url.pathname.slice(1)));
  for (const [name, value] of url.searchParams) {
    if (!isParameter(name)) {
      throw new StoreUnusable(
        `the PostgreSQL URL has the parameter ${name}, which is not known here: there is ${parameters.join(', ')}`,
      );
    }
    take(name, value);
  }
  return given;
}

function isParameter(name: string): name is Parameter {
  return (parameters as readonly string[]).includes(name);
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
  { sslrootcert, sslcert, sslkey }: Partial<Record<Parameter, string>>,
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
