// A process that plans one query after the other, on tables with the extreme values of every type. It ends if that takes
// too much memory.

import { flushCompileCache } from 'node:module';
import { type DuckDBConnection, StatementType } from '@duckdb/node-api';
import { createReplicaTableSql, type ReplicaTable, replicaTables } from '../replica-tables.ts';
import { readQueryError } from './query-errors.ts';
import { openWithoutData } from './query-parser.ts';
import { bind, type QueryParameter } from './run-query.ts';

export interface PlanOrder {
  readonly sql: string;
  readonly parameters: readonly QueryParameter[];
}

export interface PlannedReply {
  /** False if the query makes DuckDB fail in such a way that the database must be opened again. */
  readonly isPlanned: boolean;
  /** True if the process ends after this reply. */
  readonly isLast: boolean;
}

/** What a query may take while it is planned. */
const MOST_BYTES = 128 * 1024 ** 2;
/** The process does not get back all memory that it has freed. If it is unused and has this much, it ends. */
const MOST_UNUSED_BYTES = 32 * 1024 ** 2;
const LOOK_EVERY_MS = 10;

/** The least and the greatest value of each type. With these, DuckDB cannot leave out a part of a plan as without rows. */
const extremes: Readonly<Record<string, readonly [least: string, greatest: string]>> = {
  BIGINT: ['-9223372036854775808', '9223372036854775807'],
  BOOLEAN: ['false', 'true'],
  DATE: ["'-infinity'", "'infinity'"],
  DOUBLE: ["'-infinity'", "'nan'"],
  TIMESTAMPTZ: ["'-infinity'", "'infinity'"],
  UUID: ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
  VARCHAR: ["''", `'${'\u{10ffff}'.repeat(4)}'`],
};

function extremeRowsSql({ name, columns }: ReplicaTable): string {
  const row = (at: 0 | 1): string => `(${columns.map(({ type }) => extremes[type]![at]).join(', ')})`;
  return `INSERT INTO "${name}" VALUES ${row(0)}, ${row(1)}, (${columns.map(() => 'NULL').join(', ')})`;
}

const instance = await openWithoutData();
const first = await instance.connect();
for (const table of replicaTables) {
  await first.run(createReplicaTableSql(table));
  await first.run(extremeRowsSql(table));
}

/** An exit would wait until DuckDB has planned the query. */
const end = (): void => void process.kill(process.pid, 'SIGKILL');

const usedAtFirst = process.memoryUsage.rss();
const takenBytes = (): number => process.memoryUsage.rss() - usedAtFirst;
setInterval(() => {
  if (takenBytes() > MOST_BYTES) end();
}, LOOK_EVERY_MS);

/** DuckDB plans a query with parameters only when their values are there, and EXPLAIN does not run it. */
async function plan(connection: DuckDBConnection, { sql, parameters }: PlanOrder): Promise<void> {
  if (parameters.length === 0) {
    (await connection.prepare(sql)).destroySync();
    return;
  }
  const statement = await connection.prepare(`EXPLAIN ${sql}`);
  bind(statement, StatementType.EXPLAIN, parameters);
  await statement.run();
  statement.destroySync();
}

async function answer(order: PlanOrder): Promise<void> {
  const connection = await instance.connect();
  let isBroken = false;
  try {
    await plan(connection, order);
  } catch (error) {
    // The replica will say what is wrong with the query.
    isBroken = ['FATAL', 'INTERNAL'].includes(readQueryError(error, '').type);
  }
  connection.disconnectSync();
  const isLast = isBroken || takenBytes() > MOST_UNUSED_BYTES;
  const reply: PlannedReply = { isPlanned: !isBroken, isLast };
  process.send!(reply, () => {
    if (isLast) process.exit();
  });
}

process.on('message', (order: PlanOrder) => void answer(order));
process.on('disconnect', end);
process.send!('ready');
// Otherwise Node stores compiled modules only if the process exits normally.
flushCompileCache();
