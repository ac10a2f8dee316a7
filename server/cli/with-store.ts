// Opens the database that `--database` or the environment names, and closes it after the command.

import { existsSync } from 'node:fs';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../failure.ts';
import { readSetting } from '../settings.ts';
import { readDatabaseLocation } from '../store/database-location.ts';
import type { Store } from '../store/store.ts';
import type { Call } from './call.ts';
import { type ExitCode, failed, misused } from './io.ts';

/**
 * Opens the store, calls `use` with it, and closes it. If the SQLite file does not exist, the command fails unless it
 * may create the file. Most likely the name is mistyped, or the command was run in a different folder than the server.
 */
export async function withStore(
  { io, option }: Call,
  use: (store: Store) => Promise<ExitCode>,
  wanted: 'must exist' | 'may be made' = 'must exist',
): Promise<ExitCode> {
  const database = readSetting('database', io.env, { database: option('database') });
  if (database instanceof Failure) return misused(io, database);
  if (wanted === 'must exist' && isMissingFile(database)) return failed(io, missingDatabase(database));
  const { openStore } = await import('../store/open-store.ts');
  const store = await openStore(database, (trouble) => io.err(`headgate: ${trouble}`));
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/**
 * Returns true if the database is a SQLite file that does not exist. Returns false if its write-ahead log exists,
 * because the store then reports what happened.
 */
export function isMissingFile(database: string): boolean {
  const file = fileOf(database);
  return file !== null && !existsSync(file) && !existsSync(`${file}-wal`);
}

export function missingDatabase(database: string): string {
  return (
    `there is no database ${quote(fileOf(database)!)}: name another one with --database or HEADGATE_DATABASE. ` +
    'To make it, start the server on it, or create its first organisation: headgate orgs create NAME'
  );
}

/** Returns the path of a SQLite database, or null for PostgreSQL. */
export function fileOf(database: string): string | null {
  const place = readDatabaseLocation(database);
  return !(place instanceof Failure) && place.kind === 'sqlite' ? place.path : null;
}
