// Runs the steps of a migration: in a transaction, by one process at a time, for as long as they take.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, ClientBase } from 'pg';
import type { Address } from './address.ts';

export interface Step {
  /** What an operator reads while it runs: "building the index …". */
  readonly doing: string;
  readonly sql: string;
}

export interface StepProgress {
  readonly doing: string;
  readonly elapsedMs: number;
  /** How far the server says it is, if it does. */
  readonly detail: string | null;
}

/** The connection that migrates, the database that it is connected to, and who hears of steps that take long. */
export interface Migrator {
  readonly client: ClientBase;
  readonly address: Address;
  /** Opens another connection to the same database. */
  connect(): Promise<Client>;
  onProgress(progress: StepProgress): void;
}

/** Any number will do that other users of the same database are unlikely to lock: "Hgat" in ASCII. */
const MIGRATION_LOCK = 0x48676174;
const LOCK_PATIENCE_MS = 30_000;
const SHORT_STEP_MS = 5000;
/** Others wait behind a lock that is waited for, the look-ups of keys among them. */
const SHORT_LOCK_PATIENCE_MS = 1000;
/** The longest that a timer runs, 24 days. For `pg`, 0 means the read timeout of the connection, not none. */
const NO_READ_TIMEOUT_MS = 2 ** 31 - 1;
const FIRST_PROGRESS_AFTER_MS = 2000;
const PROGRESS_EVERY_MS = 1000;

/** Runs `work` in a transaction of its own, while no other process migrates. */
export function inTurn<Result>(client: ClientBase, work: () => Promise<Result>): Promise<Result> {
  return inTransaction(client, async () => {
    // A step may take hours, but those who are in its way are not waited for without end.
    await client.query(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = ${LOCK_PATIENCE_MS}`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    return work();
  });
}

/** The same for work that is soon done, or left for later; does nothing while another process migrates. */
export async function ifNobodyElse(client: ClientBase, work: () => Promise<void>): Promise<void> {
  await inTransaction(client, async () => {
    await client.query(
      `SET LOCAL statement_timeout = ${SHORT_STEP_MS}; SET LOCAL lock_timeout = ${SHORT_LOCK_PATIENCE_MS}`,
    );
    const { rows } = await client.query<{ is_free: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1) AS is_free',
      [MIGRATION_LOCK],
    );
    if (rows[0]!.is_free) await work();
  });
}

async function inTransaction<Result>(client: ClientBase, work: () => Promise<Result>): Promise<Result> {
  await client.query('BEGIN');
  try {
    const result = await work();
    await runWithoutTimeout(client, 'COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** Within `inTurn`. Reports progress from the moment on at which the step has taken long. */
export async function runStep(migrator: Migrator, { doing, sql }: Step): Promise<void> {
  const { client } = migrator;
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const ended = new AbortController();
  const watching = watch(migrator, rows[0]!.pid, doing, ended.signal);
  try {
    await runWithoutTimeout(client, sql);
  } finally {
    ended.abort();
    await watching;
  }
}

/** Has no read timeout: a lost connection is noticed by TCP keepalive, and a server at work may be silent. */
async function runWithoutTimeout(client: ClientBase, sql: string): Promise<void> {
  await client.query({ text: sql, query_timeout: NO_READ_TIMEOUT_MS } as { text: string });
}

/** The connection that migrates is busy, so another one looks at what it does. Never rejects. */
async function watch(
  { client, connect, onProgress }: Migrator,
  pid: number,
  doing: string,
  ended: AbortSignal,
): Promise<void> {
  const startedAtMs = performance.now();
  let copied: string | null = null;
  const onNotice = ({ message }: { message?: string | undefined }): void => {
    copied = copiedRowsIn(message ?? '') ?? copied;
  };
  client.on('notice', onNotice);
  let observer: Client | null = null;
  const passed = (ms: number): Promise<boolean> => sleep(ms, true, { signal: ended }).catch(() => false);
  for (let pauseMs = FIRST_PROGRESS_AFTER_MS; await passed(pauseMs); pauseMs = PROGRESS_EVERY_MS) {
    // A server may have no place for another connection: progress then shows the time alone.
    observer ??= await connect().catch(() => null);
    const detail = copied ?? (observer === null ? null : await indexProgress(observer, pid));
    if (!ended.aborted) onProgress({ doing, elapsedMs: performance.now() - startedAtMs, detail });
  }
  client.off('notice', onNotice);
  await observer?.end().catch(() => {});
}

/** Citus says so after every million rows that it has moved out of a table. */
export const REPORT_COPIED_ROWS_SQL = 'SET LOCAL client_min_messages = debug1';

function copiedRowsIn(message: string): string | null {
  const rows = /^Copied (\d+) rows$/.exec(message)?.[1];
  return rows === undefined ? null : `${rows} rows copied`;
}

/** Of an index that the server builds itself; a Citus coordinator lets the workers build it, and shows nothing. */
async function indexProgress(observer: Client, pid: number): Promise<string | null> {
  const { rows } = await observer
    .query<{ phase: string; percent: number | null }>(
      `SELECT replace(phase, 'building index: ', '') AS phase, floor(100.0 * CASE WHEN phase LIKE '%tuples%'
          THEN tuples_done / nullif(tuples_total, 0)::numeric
          ELSE blocks_done / nullif(blocks_total, 0)::numeric END)::integer AS percent
        FROM pg_stat_progress_create_index WHERE pid = $1`,
      [pid],
    )
    .catch(() => ({ rows: [] }));
  const [found] = rows;
  if (found === undefined) return null;
  return found.percent === null ? found.phase : `${found.phase}, ${found.percent} %`;
}
