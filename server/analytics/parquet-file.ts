// Writes records to a Parquet file. DuckDB collects them first, and keeps what does not fit into its memory in temporary
// files.

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { Failure } from '../failure.ts';
import { createReplicaTableSql, type ReplicaTable } from './replica-tables.ts';

export interface ParquetFile {
  readonly path: string;
  readonly table: ReplicaTable;
  /** The folder for what does not fit into memory. */
  readonly temporaryFolder: string;
  /** Whether a record may come several times. Only its last version is written. */
  readonly hasVersions: boolean;
}

const MEMORY = '256MB';
/** DuckDB collects a row group in memory, so there are fewer records in it if they are long. */
const ROW_GROUP = '32MB';
/** DuckDB forgets that it should stop if it has not begun yet. */
const STOP_AGAIN_MS = 10;

/**
 * Writes the file from pieces of NDJSON, each of whole lines. Resolves to the number of records, or to a Failure if
 * DuckDB cannot write it. An error of the pieces is thrown. If the signal is aborted, the file may be incomplete.
 */
export async function writeParquet(
  pieces: AsyncIterable<string>,
  file: ParquetFile,
  signal: AbortSignal,
): Promise<number | Failure> {
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: MEMORY,
    temp_directory: file.temporaryFolder,
    // Each thread would collect a row group of its own.
    threads: '1',
    // Only then can a row group end before it has the usual number of records. One thread keeps the order anyway.
    preserve_insertion_order: 'false',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  });
  const connection = await instance.connect();
  try {
    await connection.run(createReplicaTableSql(file.table));
    const failure = await collect(connection, pieces, file.table);
    return failure ?? (await copy(connection, file, signal));
  } finally {
    connection.disconnectSync();
    instance.closeSync();
  }
}

async function collect(
  connection: DuckDBConnection,
  pieces: AsyncIterable<string>,
  { name, columns }: ReplicaTable,
): Promise<Failure | null> {
  const structure = JSON.stringify(Object.fromEntries(columns.map((column) => [column.name, column.type])));
  const lines = '(SELECT unnest(string_split(rtrim(?, chr(10)), chr(10))) AS line)';
  const insert = `INSERT INTO "${name}" SELECT unnest(from_json_strict(line, '${structure}')) FROM ${lines}`;
  for await (const piece of pieces) {
    if (piece === '') continue;
    const inserted = await orFailure(connection.run(insert, [piece]));
    if (inserted instanceof Failure) return inserted;
  }
  return null;
}

async function copy(
  connection: DuckDBConnection,
  { path, table: { name, key }, hasVersions }: ParquetFile,
  signal: AbortSignal,
): Promise<number | Failure> {
  const last = `WHERE rowid IN (SELECT max(rowid) FROM "${name}" GROUP BY ${key.map((column) => `"${column}"`).join(', ')})`;
  const options = `FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES '${ROW_GROUP}'`;
  let stopping: NodeJS.Timeout | undefined;
  const stop = (): void => {
    connection.interrupt();
    stopping = setTimeout(stop, STOP_AGAIN_MS);
  };
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  try {
    const written = await orFailure(
      connection.run(
        `COPY (SELECT * FROM "${name}" ${hasVersions ? last : ''}) TO '${path.replaceAll("'", "''")}' (${options})`,
      ),
    );
    return written instanceof Failure ? written : written.rowsChanged;
  } finally {
    signal.removeEventListener('abort', stop);
    clearTimeout(stopping);
  }
}

async function orFailure<Result>(running: Promise<Result>): Promise<Result | Failure> {
  try {
    return await running;
  } catch (error) {
    return new Failure((error as Error).message.split('\n', 1)[0]!);
  }
}
