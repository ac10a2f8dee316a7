// Writes an export as Parquet: to a file that appears only when it is complete, or to standard output or a pipe.

import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AbortedError } from '@headgate/client/client.ts';
import type { ReplicaTable } from '../analytics/replica-tables.ts';
import { Failure } from '../failure.ts';
import { type Destination, moveIntoPlace, writeTo, writeToOutput } from './output.ts';

interface ParquetOutput {
  readonly table: ReplicaTable;
  /** Whether a record may come several times. Only its last version is written. */
  readonly hasVersions: boolean;
  /** Null for standard output. */
  readonly destination: Destination | null;
  readonly mayReplace: boolean;
}

/**
 * Writes pieces of NDJSON as Parquet. Resolves to the number of records, or to a Failure if the file cannot be written.
 * The temporary files are beside the destination, or in the system's temporary folder if the destination is no file.
 */
export async function writeParquetOutput(
  pieces: AsyncIterable<string>,
  { table, hasVersions, destination, mayReplace }: ParquetOutput,
  signal: AbortSignal,
): Promise<number | Failure> {
  const folder = await newFolder(destination);
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const path = join(folder, 'records.parquet');
    // DuckDB is loaded on demand, because no other format needs it.
    const { writeParquet } = await import('../analytics/parquet-file.ts');
    const count = await writeParquet(pieces, { path, table, temporaryFolder: folder, hasVersions }, signal);
    if (signal.aborted) throw new AbortedError(signal.reason);
    if (count instanceof Failure) {
      return new Failure(`${destination?.out ?? 'the output'} cannot be written: ${count.reason}`);
    }
    if (destination?.isStream === false) {
      const taken = await moveIntoPlace(path, destination, mayReplace);
      return taken === null ? count : new Failure(taken);
    }
    const file = await open(path);
    // The open file stays readable. Nothing is left of it even if the reader closes the output, which ends the process.
    await removeFolder();
    if (destination === null) await writeToOutput(file.createReadStream());
    else await writeTo(destination.path, 'a', file.createReadStream(), false);
    return count;
  } finally {
    await removeFolder();
  }
}

async function newFolder(destination: Destination | null): Promise<string> {
  if (destination?.isStream !== false) return mkdtemp(join(tmpdir(), 'headgate-export-'));
  const folder = `${destination.path}.${process.pid}.part`;
  await mkdir(folder);
  return folder;
}
