// Opens the DuckDB file of a replica with settings that confine every query to the file: no other files, no network, no
// extensions, and no way to change the settings.

import { setTimeout as sleep } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';

export interface ReplicaDatabaseOptions {
  readonly memoryMb: number;
  readonly threads: number;
  /** DuckDB writes here what does not fit into memory. */
  readonly temporaryFolder: string;
  readonly temporaryMb: number;
  /** The only folder to which a query can be exported. */
  readonly exportFolder: string;
}

const UNLOCKED_WITHIN_MS = 5000;
const TRY_AGAIN_MS = 50;

/** Every query runs in a transaction that can only read, and sees one state of the replica. */
export const BEGIN_READING = 'BEGIN TRANSACTION READ ONLY';

/**
 * Opens a DuckDB file, or creates it. Errors of this database are JSON (see sql/query-errors.ts), because only then do
 * they contain the exact position.
 */
export async function openReplicaDatabase(
  path: string,
  options: ReplicaDatabaseOptions,
): Promise<DuckDBInstance> {
  const instance = await createInstance(path);
  const connection = await instance.connect();
  try {
    // One call makes all settings, because each call can wait milliseconds for a processor.
    const sql = settings(options).map(([name, value]) => `SET GLOBAL ${name} = ${value}`);
    await connection.run(sql.join(';\n'));
  } finally {
    connection.disconnectSync();
  }
  return instance;
}

/** Returns whether DuckDB's message says that another process has the file open. */
export function isLocked(message: string): boolean {
  return /could not set lock on file/i.test(message);
}

/** Waits for a process that has the file open, because the one that had the replica before may still be ending. */
async function createInstance(path: string): Promise<DuckDBInstance> {
  const deadlineMs = performance.now() + UNLOCKED_WITHIN_MS;
  for (;;) {
    try {
      return await DuckDBInstance.create(path, {
        autoinstall_known_extensions: 'false',
        autoload_known_extensions: 'false',
      });
    } catch (error) {
      if (!isLocked((error as Error).message) || performance.now() > deadlineMs) throw error;
      await sleep(TRY_AGAIN_MS);
    }
  }
}

/** Returns the settings in the order in which they must be set. */
function settings(options: ReplicaDatabaseOptions): readonly (readonly [name: string, value: string])[] {
  const { memoryMb, threads, temporaryFolder, temporaryMb, exportFolder } = options;
  const folders = [temporaryFolder, exportFolder].map((folder) => quoted(`${folder}/`));
  return [
    ['threads', String(threads)],
    ['memory_limit', quoted(`${memoryMb}MB`)],
    ['temp_directory', quoted(temporaryFolder)],
    ['max_temp_directory_size', quoted(`${temporaryMb}MB`)],
    ['TimeZone', quoted('UTC')],
    ['errors_as_json', 'true'],
    ['autoinstall_known_extensions', 'false'],
    ['autoload_known_extensions', 'false'],
    ['allow_community_extensions', 'false'],
    ['allow_persistent_secrets', 'false'],
    ['allowed_directories', `[${folders.join(', ')}]`],
    ['enable_external_access', 'false'],
    // This is the last setting, because none can be changed after it.
    ['lock_configuration', 'true'],
  ];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
