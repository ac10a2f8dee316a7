// Answers a query: checks it, brings the replica up to date, runs the query, and writes its result as it arrives.

import { once } from 'node:events';
import { statfsSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { dirname } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { AS_OF_HEADER, type OrderRefusal, type SqlOrder } from '../analytics-orders.ts';
import type { AsOf, ReadTransaction, Replica } from '../replica.ts';
import { EXPORTED_STATUS } from '../replica-process-messages.ts';
import { CATCH_UP_MS, DamagedReplica, isDamage, type ReplicaService, withReplica } from '../replica-use.ts';
import { renderCsv, renderJson, renderNdjson } from './formats.ts';
import type { QueryChecks } from './query-checks.ts';
import { isStuck, QueryFailed, type QueryFailure } from './query-errors.ts';
import { type RunningQuery, runQuery, writeParquet } from './run-query.ts';

const MOST_EXPORT_BYTES = 4 * 1024 ** 3;
const WATCH_EVERY_MS = 100;
/** How long a client may take to read this much while another organisation waits for the replica's place. */
const SLOW_CLIENT_MS = 5000;
const SLOW_CLIENT_CHARACTERS = 1024 ** 2;
/** Pieces are collected up to this length. Every write costs two processes a fraction of a millisecond. */
const WRITTEN_CHARACTERS = 64 * 1024;

export interface SqlService extends ReplicaService {
  readonly checks: QueryChecks;
  /** The path of the order's Parquet file. The analytics process removes it. */
  readonly exportedTo: string;
}

/** Writes the result to the response and resolves to null, or resolves to the reason why there is none. */
export async function answerSql(
  service: SqlService,
  order: SqlOrder,
  response: ServerResponse,
): Promise<OrderRefusal | null> {
  const left = new AbortController();
  response.on('close', () => left.abort());
  const exported = order.format === 'parquet' ? service.exportedTo : null;
  const refusal = await runOnReplica(service, order, exported, response, left.signal);
  // The analytics process sends the file, so that a slow client needs neither the replica nor this process.
  if (refusal === null && exported !== null) response.writeHead(EXPORTED_STATUS).end();
  return refusal;
}

function runOnReplica(
  service: SqlService,
  order: SqlOrder,
  exported: string | null,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<OrderRefusal | null> {
  const { replica, placeWanted } = service;
  return withReplica(service, async () => {
    const [refusal, wanted] = await Promise.all([service.checks.refusalOf(order), replica.wanted()]);
    if (refusal !== null) return refusal;
    await replica.catchUp(wanted, CATCH_UP_MS);
    const transaction = await replica.begin(wanted);
    const forget = destroyOnceWanted(response, placeWanted, order.timeoutMs);
    const client = { response, left: signal, placeWanted };
    const failure = await send(replica, exported, order, transaction, client).finally(forget);
    if (failure === null) return null;
    if (isStuck(failure)) service.onStuck();
    if (failure.kind === 'invalid' && isDamage(failure.message)) throw new DamagedReplica(failure.message);
    return refusalOf(failure);
  });
}

/**
 * Destroys the response `withinMs` after another organisation wants the place of the replica. By then the query has
 * ended, so that only a client that reads slowly is affected. Returns a function that stops this.
 */
export function destroyOnceWanted(
  response: Pick<ServerResponse, 'destroy'>,
  placeWanted: AbortSignal,
  withinMs: number,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => response.destroy(), withinMs);
  };
  if (placeWanted.aborted) begin();
  else placeWanted.addEventListener('abort', begin);
  return () => {
    clearTimeout(timer);
    placeWanted.removeEventListener('abort', begin);
  };
}

/** Who gets the result. */
interface Client {
  readonly response: ServerResponse;
  /** Says that the client has left. */
  readonly left: AbortSignal;
  /** Says that another organisation waits for the place of the replica. */
  readonly placeWanted: AbortSignal;
}

async function send(
  replica: Replica,
  exported: string | null,
  order: SqlOrder,
  { connection, asOf }: ReadTransaction,
  client: Client,
): Promise<QueryFailure | null> {
  client.response.setHeader(AS_OF_HEADER, JSON.stringify(asOf));
  let failure: QueryFailure | null = null;
  try {
    failure =
      exported === null
        ? await sendRows(connection, order, asOf, client)
        : await exportRows(connection, order, exported, client.left);
  } catch (error) {
    if (!(error instanceof QueryFailed)) throw error;
    failure = error.failure;
  } finally {
    // While DuckDB runs a query, this would block the whole process.
    if (!isStuck(failure)) replica.disconnect(connection);
  }
  return failure;
}

async function sendRows(
  connection: DuckDBConnection,
  order: SqlOrder,
  asOf: AsOf,
  client: Client,
): Promise<QueryFailure | null> {
  const { sql, params, mostRows, timeoutMs } = order;
  const startedAtMs = performance.now();
  const running = await runQuery(connection, sql, params, {
    withinMs: timeoutMs,
    signal: client.left,
    ...(mostRows === null ? {} : { maxRows: mostRows }),
  });
  if (running.kind !== 'running') return running;
  const last = () => ({ ms: Math.round(performance.now() - startedAtMs), as_of: asOf });
  await writePieces(rendered(order, running, last), client);
  return null;
}

/** Writes the pieces as fast as the client reads them. When it resolves, the query has ended. */
export async function writePieces(
  pieces: AsyncIterable<string> | Iterable<string>,
  { response, left, placeWanted }: Client,
): Promise<void> {
  response.on('error', () => {});
  let waiting = '';
  /** What the client has read, and how long it may still take, of the current part. */
  let written = 0;
  let leftMs = SLOW_CLIENT_MS;
  for await (const piece of pieces) {
    if (response.destroyed) return;
    waiting += piece;
    if (waiting.length < WRITTEN_CHARACTERS) continue;
    if (!response.write(waiting)) {
      const forget = destroyOnceWanted(response, placeWanted, leftMs);
      const isWanted = placeWanted.aborted;
      const beganAtMs = performance.now();
      await once(response, 'drain', { signal: left }).catch(() => {});
      forget();
      if (isWanted) leftMs -= performance.now() - beganAtMs;
    }
    written += waiting.length;
    if (written >= SLOW_CLIENT_CHARACTERS) {
      written = 0;
      leftMs = SLOW_CLIENT_MS;
    }
    waiting = '';
  }
  response.end(waiting);
}

function rendered(
  { format, isForSpreadsheet }: SqlOrder,
  running: RunningQuery,
  last: () => Readonly<Record<string, unknown>>,
): AsyncIterable<string> {
  if (format === 'csv') return renderCsv(running, isForSpreadsheet);
  return format === 'ndjson' ? renderNdjson(running) : renderJson(running, last);
}

async function exportRows(
  connection: DuckDBConnection,
  { sql, params, timeoutMs }: SqlOrder,
  path: string,
  signal: AbortSignal,
): Promise<QueryFailure | null> {
  const tooLarge = new AbortController();
  const watching = setInterval(() => {
    if (isTooLarge(path)) tooLarge.abort();
  }, WATCH_EVERY_MS);
  try {
    const limits = { withinMs: timeoutMs, signal: AbortSignal.any([signal, tooLarge.signal]) };
    const written = await writeParquet(connection, sql, params, path, limits);
    if (tooLarge.signal.aborted && !isStuck(written)) {
      return {
        kind: 'too_large',
        message: 'The Parquet file becomes too large. Read fewer rows or columns.',
      };
    }
    return written.kind === 'written' ? null : written;
  } finally {
    clearInterval(watching);
  }
}

/** The disk may also have the database, so a file may use at most as much space as it leaves free. */
function isTooLarge(path: string): boolean {
  const { bavail, bsize } = statfsSync(dirname(path));
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return size > Math.min(MOST_EXPORT_BYTES, bavail * bsize);
}

function refusalOf(failure: QueryFailure): OrderRefusal {
  const { kind, message } = failure;
  if (kind === 'cancelled') return { kind: 'unavailable', message, position: null };
  return { kind, message, position: kind === 'invalid' ? failure.position : null };
}
