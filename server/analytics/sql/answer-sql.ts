// Answers a query: checks it, brings the replica up to date, runs the query, and writes its result as it arrives.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { AS_OF_HEADER, type SqlFormat, type SqlOrder, type SqlRefusal } from '../analytics-orders.ts';
import type { AsOf, Replica } from '../replica.ts';
import { replicaTables } from '../replica-tables.ts';
import { CATCH_UP_MS, DamagedReplica, isDamage, withReplica } from '../replica-use.ts';
import type { Replicas } from '../replicas.ts';
import { checkQuery } from './check-query.ts';
import { renderCsv, renderJson, renderNdjson } from './formats.ts';
import { QueryFailed, type QueryFailure } from './query-errors.ts';
import { type RunningQuery, runQuery, writeParquet } from './run-query.ts';

const tableNames = replicaTables.map(({ name }) => name);

export interface SqlService {
  readonly replicas: Replicas;
  readonly exportFolder: string;
  /** Called if DuckDB does not stop a query. Only the end of the process will. */
  onStuck(): void;
}

/** Writes the result to the response and resolves to null, or resolves to the reason why there is none. */
export function answerSql(
  service: SqlService,
  order: SqlOrder,
  response: ServerResponse,
): Promise<SqlRefusal | null> {
  const left = new AbortController();
  response.on('close', () => left.abort());
  return withReplica(service.replicas, order, async (replica) => {
    const refusal = await check(replica, order.sql);
    if (refusal !== null) return refusal;
    const wantedSeq = await replica.catchUp(CATCH_UP_MS);
    const failure = await send(replica, service.exportFolder, order, wantedSeq, response, left.signal);
    if (failure === null) return null;
    if (isStuck(failure)) service.onStuck();
    if (failure.kind === 'invalid' && isDamage(failure.message)) throw new DamagedReplica(failure.message);
    return refusalOf(failure);
  });
}

/** Checks the query before the replica catches up, so that a mistake is reported at once. */
async function check(replica: Replica, sql: string): Promise<SqlRefusal | null> {
  const connection = await replica.connect();
  try {
    const refusal = await checkQuery(connection, sql, tableNames);
    return refusal && { kind: 'invalid', message: refusal.message, position: refusal.position };
  } finally {
    connection.disconnectSync();
  }
}

async function send(
  replica: Replica,
  exportFolder: string,
  order: SqlOrder,
  wantedSeq: number,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<QueryFailure | null> {
  const connection = await replica.connect();
  const readAsOf = async () => {
    const asOf = await replica.asOf(connection, wantedSeq);
    response.setHeader(AS_OF_HEADER, JSON.stringify(asOf));
    return asOf;
  };
  let failure: QueryFailure | null = null;
  try {
    failure =
      order.format === 'parquet'
        ? await sendParquet(connection, exportFolder, order, readAsOf, response, signal)
        : await sendRows(connection, order, readAsOf, response, signal);
  } catch (error) {
    if (!(error instanceof QueryFailed)) throw error;
    failure = error.failure;
  } finally {
    // While DuckDB runs a query, this would block the whole process.
    if (!isStuck(failure)) connection.disconnectSync();
  }
  return failure;
}

async function sendRows(
  connection: DuckDBConnection,
  { sql, params, format, mostRows, timeoutMs }: SqlOrder,
  readAsOf: () => Promise<AsOf>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<QueryFailure | null> {
  const startedAtMs = performance.now();
  let asOf: AsOf | null = null;
  const running = await runQuery(connection, sql, params, {
    withinMs: timeoutMs,
    signal,
    ...(mostRows === null ? {} : { maxRows: mostRows }),
    async whenBegun(): Promise<void> {
      asOf = await readAsOf();
    },
  });
  if (running.kind !== 'running') return running;
  const last = () => ({ ms: Math.round(performance.now() - startedAtMs), as_of: asOf });
  await writePieces(rendered(format, running, last), response, signal);
  return null;
}

/** Writes the pieces as fast as the client reads them. When it resolves, the query has ended. */
async function writePieces(
  pieces: AsyncIterable<string>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  response.on('error', () => {});
  for await (const piece of pieces) {
    if (response.destroyed) return;
    if (!response.write(piece)) await once(response, 'drain', { signal }).catch(() => {});
  }
  response.end();
}

function isStuck(failure: QueryFailure | null): boolean {
  return failure !== null && 'isStuck' in failure && failure.isStuck;
}

function rendered(
  format: SqlFormat,
  running: RunningQuery,
  last: () => Readonly<Record<string, unknown>>,
): AsyncIterable<string> {
  if (format === 'csv') return renderCsv(running);
  return format === 'ndjson' ? renderNdjson(running) : renderJson(running, last);
}

async function sendParquet(
  connection: DuckDBConnection,
  exportFolder: string,
  { sql, params, timeoutMs }: SqlOrder,
  readAsOf: () => Promise<AsOf>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<QueryFailure | null> {
  const path = join(exportFolder, `${randomUUID()}.parquet`);
  const limits = { withinMs: timeoutMs, signal, whenBegun: readAsOf };
  try {
    const written = await writeParquet(connection, sql, params, path, limits);
    if (written.kind !== 'written') return written;
    await pipeline(createReadStream(path), response);
    return null;
  } finally {
    rmSync(path, { force: true });
  }
}

function refusalOf(failure: QueryFailure): SqlRefusal {
  const { kind, message } = failure;
  if (kind === 'cancelled') return { kind: 'unavailable', message, position: null };
  return { kind, message, position: kind === 'invalid' ? failure.position : null };
}
