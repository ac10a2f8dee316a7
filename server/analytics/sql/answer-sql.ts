// Answers a query: checks it, brings the replica up to date, runs the query, and writes its result as it arrives.

import { randomUUID } from 'node:crypto';
import { createReadStream, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import type { SqlFormat, SqlOrder, SqlRefusal } from '../analytics-orders.ts';
import type { AsOf, Replica, Wanted } from '../replica.ts';
import { replicaTables } from '../replica-tables.ts';
import { CATCH_UP_MS, DamagedReplica, isDamage, withReplica } from '../replica-use.ts';
import type { Replicas } from '../replicas.ts';
import { checkQuery } from './check-query.ts';
import { renderCsv, renderJson, renderNdjson } from './formats.ts';
import type { QueryFailure } from './query-errors.ts';
import { type QueryLimits, type RunningQuery, runQuery, writeParquet } from './run-query.ts';

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
    const wanted = await replica.catchUp(CATCH_UP_MS);
    const failure = await send(replica, service.exportFolder, order, wanted, response, left.signal);
    if (failure === null) return null;
    if ('isStuck' in failure && failure.isStuck) service.onStuck();
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
  wanted: Wanted,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<QueryFailure | null> {
  const { sql, params, format, mostRows, timeoutMs } = order;
  const startedAtMs = performance.now();
  const connection = await replica.connect();
  let asOf: AsOf | null = null;
  const limits = {
    withinMs: timeoutMs,
    signal,
    async whenBegun(begun: DuckDBConnection): Promise<void> {
      asOf = await replica.asOf(begun, wanted);
    },
  };
  try {
    if (format === 'parquet') return await sendParquet(connection, exportFolder, order, limits, response);
    const running = await runQuery(connection, sql, params, {
      ...limits,
      ...(mostRows === null ? {} : { maxRows: mostRows }),
    });
    if (running.kind !== 'running') return running;
    const last = () => ({ ms: Math.round(performance.now() - startedAtMs), as_of: asOf });
    await pipeline(Readable.from(rendered(format, running, last)), response);
    return null;
  } finally {
    connection.disconnectSync();
  }
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
  { sql, params }: SqlOrder,
  limits: Omit<QueryLimits, 'maxRows'>,
  response: ServerResponse,
): Promise<QueryFailure | null> {
  const path = join(exportFolder, `${randomUUID()}.parquet`);
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
