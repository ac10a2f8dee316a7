// Opens the database that a setting names, and shares its store with other threads.

import type { Transferable } from 'node:worker_threads';
import { Failure } from '../failure.ts';
import { type DatabaseLocation, readDatabaseLocation } from './database-location.ts';
import type { Distribution, MigrationListener } from './postgres/migrations.ts';
import { isSameFile } from './sqlite/database-files.ts';
import { SCHEMA_VERSION as SQLITE_SCHEMA_VERSION } from './sqlite/migrations.ts';
import { openReplicaStore as openSqliteReplicaStore } from './sqlite/open-replica-store.ts';
import { openSqliteStore } from './sqlite/open-sqlite-store.ts';
import { attachSqliteStore, type SqliteStoreHandle } from './sqlite/sqlite-store.ts';
import { type IngestStore, type ReplicaStore, type Store, StoreUnusable } from './store.ts';

/**
 * Lets another thread use an open store. Send the handle together with `transferablesOf(handle)`, and use each handle
 * for only one thread.
 */
export type StoreHandle =
  | ({ readonly kind: 'sqlite' } & SqliteStoreHandle)
  | { readonly kind: 'postgres'; readonly url: string };

export interface OpenedStore extends Store {
  handle(): StoreHandle;
}

/**
 * Opens `sqlite:PATH`, a bare path, or `postgres://…`. Rejects with StoreUnusable if the database can never be used.
 * Calls `onTrouble` with problems that the operator should know about but that no call reports.
 */
export async function openStore(
  database: string,
  onTrouble?: (trouble: string) => void,
): Promise<OpenedStore> {
  const place = usablePlace(database);
  if (place.kind === 'postgres') {
    // Imports the PostgreSQL store only here, because its driver takes longer to load than a SQLite store takes to
    // open.
    const { openPostgresStore } = await import('./postgres/open-postgres-store.ts');
    const { url, ...store } = await openPostgresStore(place.url, onTrouble);
    return { ...store, handle: () => ({ kind: 'postgres', url }) };
  }
  const { files, statusPort, ...store } = await openSqliteStore(place.path, undefined, onTrouble);
  return { ...store, handle: () => ({ kind: 'sqlite', files, statusPort: statusPort('writer') }) };
}

/** Opens a database that a server has already opened, for a replica process. Rejects as `openStore` does. */
export async function openReplicaStore(
  database: string,
  onTrouble: (trouble: string) => void,
): Promise<ReplicaStore> {
  const place = usablePlace(database);
  return place.kind === 'sqlite'
    ? openSqliteReplicaStore(place.path, onTrouble)
    : openStore(database, onTrouble);
}

/** Resolves to whether both settings lead to the same database, however they name it. */
export async function isSameDatabase(one: string, other: string): Promise<boolean> {
  if (one === other) return true;
  const [first, second] = [usablePlace(one), usablePlace(other)];
  if (first.kind === 'sqlite') return second.kind === 'sqlite' && isSameFile(first.path, second.path);
  if (second.kind === 'sqlite') return false;
  const { isSamePostgres } = await import('./postgres/open-postgres-store.ts');
  return isSamePostgres(first.url, second.url);
}

export interface Migrated {
  readonly kind: DatabaseLocation['kind'];
  readonly schemaVersion: number;
  /** Null if the database is not a Citus cluster. */
  readonly distribution: Distribution | null;
}

/**
 * Upgrades the database. `openStore` upgrades it as well, but does not distribute tables that were created before the
 * database became a Citus cluster.
 */
export async function migrateDatabase(
  database: string,
  listener: Partial<MigrationListener> = {},
): Promise<Migrated> {
  const place = usablePlace(database);
  if (place.kind === 'postgres') {
    const { migratePostgres } = await import('./postgres/open-postgres-store.ts');
    return { kind: place.kind, ...(await migratePostgres(place.url, listener)) };
  }
  const store = await openSqliteStore(place.path);
  await store.close();
  return { kind: place.kind, schemaVersion: SQLITE_SCHEMA_VERSION, distribution: null };
}

function usablePlace(database: string): DatabaseLocation {
  const place = readDatabaseLocation(database);
  if (place instanceof Failure) throw new StoreUnusable(place.reason);
  return place;
}

/**
 * Returns the store for the thread that has received the handle. Closing this store does not close the original one.
 */
export async function attachStore(handle: StoreHandle): Promise<IngestStore> {
  if (handle.kind === 'sqlite') return attachSqliteStore(handle);
  const { attachPostgresStore } = await import('./postgres/postgres-store.ts');
  return attachPostgresStore(handle.url);
}

export function transferablesOf(handle: StoreHandle): Transferable[] {
  return handle.kind === 'sqlite' ? [handle.statusPort] : [];
}
