// Bare DuckDB on a copy of a replica, with the settings of the analytics process.

import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { openReplicaDatabase } from '../../server/analytics/duckdb.ts';
import { MOST_PLACES } from '../../server/analytics/places.ts';
import type { Statement } from '../../server/analytics/segments/sql-params.ts';
import { ANALYTICS_MEMORY_LIMIT_MB } from '../figures.ts';

export interface BareDuckdb {
  rows(statement: Statement): Promise<readonly unknown[][]>;
  close(): void;
}

/** Copies the only replica in a folder, which nobody may use at the moment, and opens the copy. */
export async function openCopy(replicaFolder: string, folder: string): Promise<BareDuckdb> {
  const name = (await readdir(replicaFolder)).find((file) => file.endsWith('.duckdb'));
  if (name === undefined) throw new Error(`there is no replica in ${replicaFolder}`);
  const [temporaryFolder, exportFolder] = [join(folder, 'temporary'), join(folder, 'exports')];
  for (const made of [folder, temporaryFolder, exportFolder]) await mkdir(made, { recursive: true });
  await copyFile(join(replicaFolder, name), join(folder, name));
  const instance = await openReplicaDatabase(join(folder, name), {
    memoryMb: Math.floor(ANALYTICS_MEMORY_LIMIT_MB / MOST_PLACES),
    threads: availableParallelism(),
    temporaryFolder,
    temporaryMb: 2500,
    exportFolder,
  });
  const connection = await instance.connect();
  return {
    async rows({ sql, params }) {
      return (await connection.runAndReadAll(sql, [...params])).getRows();
    },
    close() {
      connection.disconnectSync();
      instance.closeSync();
    },
  };
}
