// Sets up sessions with PostgreSQL, with their timeouts and settings, and cancels the statement that runs in a session.

import { connect } from 'node:net';
import type pg from 'pg';
import { StoreUnavailable } from '../store.ts';
import type { Address, Host } from './address.ts';

export const CONNECT_TIMEOUT_MS = 3000;
const STATEMENT_TIMEOUT_MS = 30_000;
/**
 * The server itself aborts statements that take longer than STATEMENT_TIMEOUT_MS. If the server does not respond,
 * Headgate aborts the call after this time.
 */
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2000;
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
 * The settings of every session. An acknowledged write must be on disk, so synchronous_commit is turned on if the
 * server has turned it off. Stricter values, with which a commit waits for standbys, are kept. Date-times are ISO in
 * UTC, because a Citus coordinator passes them to its workers as text, and other formats contain ambiguous names of
 * time zones.
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
 * Begins a transaction and applies the settings to it, in one message. Through a pooler, each transaction may run in
 * another session of the server, which other clients use next.
 */
export const BEGIN_WITH_SETTINGS_SQL = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ${setSql('transaction')}`;

/** Returns the client with properties that node-postgres sets but does not declare. */
function greetingOf(client: pg.ClientBase): {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
} {
  return client as never;
}

/**
 * Applies the settings to a session, unless the connection leads to a pooler: then neither settings nor prepared
 * statements may be kept in the session. A pooler is recognised by the process ID that it reports: the pooler makes an
 * ID up, because no process of the server belongs to this client. Throws if the address needs a writable server and
 * this one is not.
 */
export async function setUpSession(
  client: pg.ClientBase,
  { needsWritable }: Address,
): Promise<{ readonly isPooled: boolean }> {
  const { host, port, processID } = greetingOf(client);
  const isOwn = `pg_backend_pid() = ${processID ?? 0}`;
  const { rows } = await client.query<{ is_own: boolean; is_writable: boolean }>({
    text: `SELECT ${isOwn} AS is_own, CASE WHEN ${isOwn} THEN ${setSql('session')} END,
      NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AS is_writable`,
    query_timeout: CONNECT_TIMEOUT_MS,
  } as pg.QueryConfig);
  const { is_own, is_writable } = rows[0]!;
  if (needsWritable && !is_writable) {
    throw new StoreUnavailable(`the PostgreSQL server at ${host}:${port} is a read-only standby`);
  }
  return { isPooled: !is_own };
}

const CANCEL_REQUEST_CODE = 80_877_102;

/** Asks the server to cancel the statement that runs on the connection. The server does not report whether it did. */
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
