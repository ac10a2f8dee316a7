// Runs the steps of a migration in a transaction, in one process at a time, without a time limit.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, ClientBase } from 'pg';
import type { Address } from './address.ts';
import { BEGIN_WITH_SETTINGS_SQL } from './session.ts';

export interface Step {
  /** The text that the operator sees while the step runs, such as "building the index …". */
  readonly doing: string;
  readonly sql: string;
}

export interface StepProgress {
  readonly doing: string;
  readonly elapsedMs: number;
  /** The progress that the server reports, or null if it reports none. */
  readonly detail: string | null;
}

export interface Migrator {
  readonly client: ClientBase;
  readonly address: Address;
  /** Opens another connection to the same database. */
  connect(): Promise<Client>;
  /** How long a step may wait for the lock of a table. */
  readonly lockPatienceMs: number;
  onProgress(progress: StepProgress): void;
}

/** The number of the advisory lock: "Hgat" in ASCII, which other users of the same database are unlikely to lock. */
export const MIGRATION_LOCK = 0x48676174;
export const LOCK_PATIENCE_MS = 30_000;
const SHORT_STEP_MS = 5000;
/** Short, because other statements, such as key lookups, queue behind a statement that waits for a lock. */
const SHORT_LOCK_PATIENCE_MS = 1000;
/** The longest time that a timer allows, 24 days. 0 would not do: `pg` then uses the read timeout of the connection. */
const NO_READ_TIMEOUT_MS = 2 ** 31 - 1;
const FIRST_PROGRESS_AFTER_MS = 2000;
const PROGRESS_EVERY_MS = 1000;

/**
 * Runs `work` in its own transaction, while no other process migrates. Waits without a time limit for a process that
 * does, because its migration may take hours.
 */
export function inTurn<Result>(migrator: Migrator, work: () => Promise<Result>): Promise<Result> {
  const { client, lockPatienceMs } = migrator;
  return inTransaction(client, async () => {
    await client.query('SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0');
    await runStep(migrator, {
      doing: 'waiting for another process to migrate the database',
      sql: `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`,
    });
    // Other locks are waited for with a limit: whoever holds one may never release it.
    await client.query(`SET LOCAL lock_timeout = ${lockPatienceMs}`);
    return work();
  });
}

/**
 * Runs quick work that can be left for later, in its own transaction and with short timeouts. Does nothing if another
 * process is migrating.
 */
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
  await client.query(BEGIN_WITH_SETTINGS_SQL);
  try {
    const result = await work();
    await runWithoutTimeout(client, 'COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/**
 * Runs a step in the transaction of `inTurn`. Reports progress if the step takes longer than FIRST_PROGRESS_AFTER_MS.
 */
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

/**
 * Runs a statement without a read timeout, because the server may send nothing for a long time while it works. TCP
 * keepalive detects a lost connection.
 */
async function runWithoutTimeout(client: ClientBase, sql: string): Promise<void> {
  await client.query({ text: sql, query_timeout: NO_READ_TIMEOUT_MS } as { text: string });
}

/** Reports progress through another connection, because the connection that migrates is busy. Never rejects. */
async function watch(
  { client, connect, onProgress }: Migrator,
  pid: number,
  doing: string,
  ended: AbortSignal,
): Promise<void> {
  const startedAtMs = performance.now();
  let copied: string | null = null;
  const onNotice = ({ message = '' }: { message?: string | undefined }): void => {
    const rows = /^Copied (\d+) rows$/.exec(message)?.[1];
    if (rows !== undefined) copied = `${rows} rows copied`;
  };
  client.on('notice', onNotice);
  let observer: Client | null = null;
  const passed = (ms: number): Promise<boolean> => sleep(ms, true, { signal: ended }).catch(() => false);
  for (let pauseMs = FIRST_PROGRESS_AFTER_MS; await passed(pauseMs); pauseMs = PROGRESS_EVERY_MS) {
    // The server may have no free connection. Then progress shows only the elapsed time.
    observer ??= await connect().catch(() => null);
    const detail = copied ?? (observer === null ? null : await indexProgress(observer, pid));
    if (!ended.aborted) onProgress({ doing, elapsedMs: performance.now() - startedAtMs, detail });
  }
  client.off('notice', onNotice);
  await observer?.end().catch(() => {});
}

/** Makes Citus send a notice for every million rows that it has moved out of a table. */
export const REPORT_COPIED_ROWS_SQL = 'SET LOCAL client_min_messages = debug1';

/**
 * Returns the progress of an index build, in the process `pid` of the server or in the one that it waits for. A Citus
 * coordinator reports none, because its workers build the index.
 */
async function indexProgress(observer: Client, pid: number): Promise<string | null> {
  const { rows } = await observer
    .query<{ phase: string; percent: number | null }>(
      `SELECT replace(phase, 'building index: ', '') AS phase, floor(100.0 * CASE WHEN phase LIKE '%tuples%'
          THEN tuples_done / nullif(tuples_total, 0)::numeric
          ELSE blocks_done / nullif(blocks_total, 0)::numeric END)::integer AS percent
        FROM pg_stat_progress_create_index WHERE pid = $1 OR pid = ANY (pg_blocking_pids($1))`,
      [pid],
    )
    .catch(() => ({ rows: [] }));
  const [found] = rows;
  if (found === undefined) return null;
  return found.percent === null ? found.phase : `${found.phase}, ${found.percent} %`;
}
