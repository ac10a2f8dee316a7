// What all our connections to PostgreSQL share: how a session is set up, and what its errors mean.

import { connect } from 'node:net';
import pg from 'pg';
import { StoreUnavailable, StoreUnusable } from '../store.ts';
import type { Address, Host } from './address.ts';
import { isMovedShard } from './citus.ts';

export const CONNECT_TIMEOUT_MS = 3000;
export const STATEMENT_TIMEOUT_MS = 30_000;
/** The server ends what takes too long; this ends a call whose server has gone silent. */
export const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_AFTER_MS = 10_000;

export function clientConfig({ config }: Address, host: Host): pg.ClientConfig {
  return {
    ...config,
    ...host,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: SILENCE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
  };
}

/**
 * An acknowledged write is on disk: a server that is set to acknowledge earlier is told otherwise, and a
 * stricter setting (waiting for standbys) stays. Moments are written in ISO form in UTC, because a Citus
 * coordinator passes them on to its workers as text, and other forms have names of zones that are ambiguous.
 */
const settings: Readonly<Record<string, string>> = {
  statement_timeout: `'${STATEMENT_TIMEOUT_MS}'`,
  idle_in_transaction_session_timeout: `'${IDLE_IN_TRANSACTION_TIMEOUT_MS}'`,
  default_transaction_isolation: `'read committed'`,
  DateStyle: `'ISO, YMD'`,
  TimeZone: `'UTC'`,
  synchronous_commit: `CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
    ELSE current_setting('synchronous_commit') END`,
};

function setSql(scope: 'session' | 'transaction'): string {
  const calls = Object.entries(settings).map(
    ([name, value]) => `set_config('${name}', ${value}, ${scope === 'transaction'})`,
  );
  return `concat(${calls.join(', ')})`;
}

/**
 * Begins a transaction on a connection of a pooler, in one message: a pooler may run each transaction in another
 * session of the server, so what matters is set in each, and never beyond it for those who get the session next.
 */
export const BEGIN_POOLED_SQL = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ${setSql('transaction')}`;

/** What node-postgres knows of a connection and does not declare. */
function greetingOf(client: pg.ClientBase): {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
} {
  return client as never;
}

export interface SessionProperties {
  /** A pooler is between: nothing may be kept in the session, neither settings nor prepared statements. */
  readonly isPooled: boolean;
  readonly isWritable: boolean;
}

/**
 * Sets up a session, unless it is a pooler's. Poolers make up the process number that a client is greeted with, because
 * no process of the server belongs to the client.
 */
export async function setUpSession(client: pg.ClientBase): Promise<SessionProperties> {
  const isOwn = `pg_backend_pid() = ${greetingOf(client).processID ?? 0}`;
  const { rows } = await client.query<{ is_own: boolean; is_writable: boolean }>({
    text: `SELECT ${isOwn} AS is_own, CASE WHEN ${isOwn} THEN ${setSql('session')} END,
      NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AS is_writable`,
    query_timeout: CONNECT_TIMEOUT_MS,
  } as pg.QueryConfig);
  return { isPooled: !rows[0]!.is_own, isWritable: rows[0]!.is_writable };
}

/** What is thrown if a server that takes writes is looked for and this is none. */
export function notWritable(client: pg.ClientBase): StoreUnavailable {
  const { host, port } = greetingOf(client);
  return new StoreUnavailable(`the PostgreSQL server at ${host}:${port} is a read-only standby`);
}

const CANCEL_REQUEST_CODE = 80_877_102;

/** Asks the server to end the statement that runs on the connection. It is not told whether that was done. */
export function cancelStatement(client: pg.ClientBase): void {
  const { processID, secretKey, host, port } = greetingOf(client);
  const request = Buffer.alloc(16);
  [request.length, CANCEL_REQUEST_CODE, processID ?? 0, secretKey ?? 0].forEach((value, at) => {
    request.writeInt32BE(value, 4 * at);
  });
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy());
  socket.on('error', () => {});
  socket.end(request);
}

/** A call that was ended by us, because others needed its connection or waited for its end. */
export class GivenUp extends StoreUnavailable {
  constructor(options: ErrorOptions) {
    super('PostgreSQL took too long while others waited; the call was given up', options);
  }
}

/** Two transactions were in each other's way, and the server has undone this one. */
const conflictStates: ReadonlySet<string> = new Set(['40001', '40P01']);
/**
 * SQLSTATE classes: connection exceptions, insufficient resources, operator intervention, system errors, internal
 * errors. As the last, Citus also reports a worker that it lost in the middle of a transaction.
 */
const unavailableClasses: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX']);
const unavailableStates: ReadonlySet<string> = new Set([
  '25006', // read-only transaction: a standby
  '28000', // no such role, or not from here
  '28P01', // wrong password
  '3D000', // no such database
  '40001', // serialization failure
  '40003', // statement completion unknown
  '40P01', // deadlock
  '42501', // permission denied
  '55000', // the database takes no connections
  '55P03', // lock not available
]);

function sqlStateOf(error: unknown): string | null {
  return error instanceof pg.DatabaseError && error.code !== undefined ? error.code : null;
}

/** The server has undone what it was asked, and will do it if it is asked again. */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof StoreUnavailable)) return false;
  const state = sqlStateOf(error.cause);
  return state !== null && (conflictStates.has(state) || isMovedShard(state, messageOf(error.cause)));
}

/** What the server says when it serves nobody, or nobody in this way, whatever the statement. */
const serverWideStates: ReadonlySet<string> = new Set([
  '25006', // read-only transaction: a standby
  '28000', // no such role, or not from here
  '28P01', // wrong password
  '3D000', // no such database
  '53300', // too many connections
  '55000', // the database takes no connections
  '57P01', // the server, or this connection, is being shut down
  '57P02', // the server has crashed
  '57P03', // the server is starting
]);

/** Returns whether the server refused only the statement (on Citus perhaps because a worker is down) and keeps the session. */
export function isOfStatement(error: StoreUnavailable): boolean {
  const { cause } = error;
  const state = sqlStateOf(cause);
  if (state === null || serverWideStates.has(state)) return false;
  const { severity } = cause as pg.DatabaseError;
  return severity !== 'FATAL' && severity !== 'PANIC';
}

/** Unique violation; and what Citus makes of every failure of a copy on one of its workers. */
const refusedCopyStates: ReadonlySet<string> = new Set(['23505', 'XX000']);

/** A copied row is there already, or may be: a merge will tell. */
export function isRefusedCopy(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== null && refusedCopyStates.has(state);
}

/**
 * What a connection threw, as callers of the store know it. A fault of the server, the network or the
 * operator's setup is StoreUnavailable; the rest is a mistake of ours, told without the values it was made with.
 */
export function asStoreError(error: unknown): Error {
  const state = sqlStateOf(error);
  if (state === null) return isOurMistake(error) ? error : unavailable(messageOf(error), error);
  const message = `${messageOf(error)} (SQLSTATE ${state})`;
  const isUnavailable =
    unavailableClasses.has(state.slice(0, 2)) ||
    unavailableStates.has(state) ||
    isMovedShard(state, messageOf(error));
  if (isUnavailable) return unavailable(message, error);
  return new Error(`PostgreSQL refused a statement: ${message}`);
}

/** Everything that node-postgres and the network throw is a plain Error or has a code. */
function isOurMistake(error: unknown): error is Error {
  return (
    error instanceof StoreUnusable ||
    ((error instanceof TypeError || error instanceof RangeError) && !('code' in error))
  );
}

function unavailable(message: string, cause: unknown): StoreUnavailable {
  return new StoreUnavailable(`PostgreSQL is not available: ${message}`, { cause });
}

/** A host with several addresses fails with several errors, and with no message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}

const NO_TLS_MESSAGE = 'The server does not support SSL connections';
const NO_PASSWORD_MESSAGE = /client password must be a(?: non-empty)? string/;

export function isWithoutTls(error: unknown): boolean {
  return error instanceof Error && error.message === NO_TLS_MESSAGE;
}

/** The error of opening the database, as the operator should read it. */
export function asOpeningError({ shown, config, sslMode }: Address, error: unknown): Error {
  if (error instanceof StoreUnusable || error instanceof StoreUnavailable) return error;
  const message = messageOf(error);
  const unusable = (reason: string): StoreUnusable => new StoreUnusable(`${shown} cannot be used: ${reason}`);
  switch (sqlStateOf(error)) {
    case '28P01':
      return unusable(`the password of the role ${config.user} is wrong`);
    case '28000':
      return unusable(message);
    case '3D000':
      return unusable('there is no such database; create it first');
    case '42501':
      return unusable(`the role ${config.user} lacks a right (${message}); grant it CREATE on the schema`);
    case '55P03':
      return new StoreUnavailable(`${shown} is kept locked by another process: ${message}`);
    case null: {
      if (isWithoutTls(error)) return unusable(`the server offers no TLS, which sslmode=${sslMode} asks for`);
      if (NO_PASSWORD_MESSAGE.test(message)) return unusable('the server asks for a password; give one');
      if (isCertificateError(error)) return unusable(`its certificate is not accepted: ${message}`);
      return isOurMistake(error) ? error : new StoreUnavailable(`${shown} cannot be reached: ${message}`);
    }
    default: {
      const known = asStoreError(error);
      return known instanceof StoreUnavailable
        ? new StoreUnavailable(`${shown} cannot serve: ${message}`)
        : known;
    }
  }
}

function isCertificateError(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return /CERT|SIGNATURE|ERR_TLS/.test(code);
}
