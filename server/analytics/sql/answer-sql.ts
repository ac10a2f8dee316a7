// Answers a query: checks it, brings the replica up to date, runs the query, and writes its result as it arrives.

import { randomUUID } from 'node:crypto';
import { createReadStream, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import type { SqlOrder, SqlRefusal } from '../analytics-orders.ts';
import type { AsOf, Replica } from '../replica.ts';
import { replicaTables } from '../replica-tables.ts';
import { type Replicas, ReplicasBusy } from '../replicas.ts';
import { checkQuery } from './check-query.ts';
import { renderCsv, renderJson, renderNdjson } from './formats.ts';
import type { QueryFailure } from './query-errors.ts';
import { type RunningQuery, runQuery, writeParquet } from './run-query.ts';

/** How long a query waits for the replica to catch up. After that, it runs on what is there. */
const CATCH_UP_MS = 10_000;
const tableNames = replicaTables.map(({ name }) => name);

export interface SqlService {
  readonly replicas: Replicas;
  readonly exportFolder: string;
  /** Called if DuckDB does not stop a query. Only the end of the process will. */
  onStuck(): void;
}

/** Writes the result to the response and resolves to null, or resolves to the reason why there is none. */
export async function answerSql(
  service: SqlService,
  order: SqlOrder,
  response: ServerResponse,
): Promise<SqlRefusal | null> {
  const left = new AbortController();
  response.on('close', () => left.abort());
  try {
    return await service.replicas.with(order.organisation, order.orgId, (replica) =>
      answerFrom(replica, service, order, response, left.signal),
    );
  } catch (error) {
    if (error instanceof ReplicasBusy) return { kind: 'unavailable', message: error.message, position: null };
    throw error;
  }
}

async function answerFrom(
  replica: Replica,
  { exportFolder, onStuck }: SqlService,
  order: SqlOrder,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<SqlRefusal | null> {
  const connection = await replica.connect();
  try {
    const refusal = await checkQuery(connection, order.sql, tableNames);
    if (refusal !== null) return { kind: 'invalid', message: refusal.message, position: refusal.position };
    const asOf = await replica.catchUp(CATCH_UP_MS);
    const failure =
      order.format === 'parquet'
        ? await sendParquet(connection, exportFolder, order, response, signal)
        : await sendRows(connection, order, asOf, response, signal);
    if (failure === null) return null;
    if ('isStuck' in failure && failure.isStuck) onStuck();
    return refusalOf(failure);
  } finally {
    connection.disconnectSync();
  }
}

async function sendRows(
  connection: DuckDBConnection,
  order: SqlOrder,
  asOf: AsOf,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<QueryFailure | null> {
  const { sql, params, mostRows, timeoutMs } = order;
  const startedAtMs = performance.now();
  const limits = { withinMs: timeoutMs, signal, ...(mostRows === null ? {} : { maxRows: mostRows }) };
  const running = await runQuery(connection, sql, params, limits);
  if (running.kind !== 'running') return running;
  const last = () => ({ ms: Math.round(performance.now() - startedAtMs), as_of: asOf });
  await pipeline(Readable.from(rendered(order, running, last)), response);
  return null;
}

function rendered(
  { format }: SqlOrder,
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
  response: ServerResponse,
  signal: AbortSignal,
): Promise<QueryFailure | null> {
  const path = join(exportFolder, `${randomUUID()}.parquet`);
  try {
    const written = await writeParquet(connection, sql, params, path, { withinMs: timeoutMs, signal });
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
