// Opens a PostgreSQL database as a store: reaches it, prepares it, and settles whether TLS is spoken.

import pg from 'pg';
import { type Store, StoreUnusable } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { type Address, type Host, readAddress, withSslMode } from './address.ts';
import {
  asOpeningError,
  BEGIN_POOLED_SQL,
  clientConfig,
  isWithoutTls,
  notWritable,
  setUpSession,
} from './database.ts';
import {
  type Distribution,
  distributeDatabase,
  type MigrationListener,
  prepareDatabase,
  SCHEMA_VERSION,
  type Server,
  tryToMakeLocal,
} from './migrations.ts';
import { holdPostgresStore } from './postgres-store.ts';
import type { Migrator, StepProgress } from './steps.ts';

export interface OpenPostgresStore extends Store {
  /** With which another thread attaches to the same database in the same way. */
  readonly url: string;
}

/** `onTrouble` is told what an operator should hear of and no caller is told. */
export async function openPostgresStore(
  url: string,
  onTrouble: (trouble: string) => void = () => {},
): Promise<OpenPostgresStore> {
  const address = await onPrepared(url, reportOnce(onTrouble), async (migrator, server) => {
    const trouble = await tryToMakeLocal(migrator, server);
    if (trouble !== null) onTrouble(trouble);
    return migrator.address;
  });
  return { ...holdPostgresStore(address), url: address.url };
}

/** Brings a database up to date and, on a Citus cluster, spreads what is not spread yet. */
export async function migratePostgres(
  url: string,
  { onDistributed = () => {}, onMadeLocal = () => {}, onProgress = () => {} }: Partial<MigrationListener>,
): Promise<{ readonly schemaVersion: number; readonly distribution: Distribution | null }> {
  const distribution = await onPrepared(url, onProgress, (migrator, server) =>
    distributeDatabase(migrator, server, catalogueTables, { onDistributed, onMadeLocal }),
  );
  return { schemaVersion: SCHEMA_VERSION, distribution };
}

const WORTH_REPORTING_AFTER_MS = 10_000;

/** Whoever opens the database is kept waiting, and should know by what. */
function reportOnce(report: (sentence: string) => void): (progress: StepProgress) => void {
  const reported = new Set<string>();
  return ({ doing, elapsedMs }) => {
    if (elapsedMs < WORTH_REPORTING_AFTER_MS || reported.has(doing)) return;
    reported.add(doing);
    report(`still ${doing}; the database cannot be used before that is done`);
  };
}

async function onPrepared<Result>(
  url: string,
  onProgress: (progress: StepProgress) => void,
  use: (migrator: Migrator, server: Server) => Promise<Result>,
): Promise<Result> {
  const asked = readAddress(url);
  try {
    const { client, address } = await reach(asked);
    try {
      const migrator = { client, address, connect: () => connect(address), onProgress };
      return await use(migrator, await prepareDatabase(migrator, catalogueTables));
    } finally {
      await client.end();
    }
  } catch (error) {
    throw asOpeningError(asked, error);
  }
}

/**
 * `sslmode=prefer` is settled here, once: where the server speaks TLS every connection of this process will
 * insist on it, so that nobody on the way can talk a later one out of it.
 */
async function reach(asked: Address): Promise<{ client: pg.Client; address: Address }> {
  if (asked.sslMode !== 'prefer') return { client: await connect(asked), address: asked };
  try {
    return { client: await connect(asked), address: withSslMode(asked, 'require') };
  } catch (error) {
    if (!isWithoutTls(error)) throw error;
    const address = withSslMode(asked, 'disable');
    return { client: await connect(address), address };
  }
}

/** To the first of the hosts that serves. */
async function connect(address: Address): Promise<pg.Client> {
  for (const [at, host] of address.hosts.entries()) {
    try {
      return await connectTo(address, host);
    } catch (error) {
      if (at === address.hosts.length - 1 || isWithoutTls(error)) throw error;
    }
  }
  throw new Error('an address has no hosts');
}

async function connectTo(address: Address, host: Host): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(address, host));
  // A connection that is lost between two statements is told of by the next one.
  client.on('error', () => {});
  await client.connect();
  try {
    const { isPooled, isWritable } = await setUpSession(client);
    if (address.needsWritable && !isWritable) throw notWritable(client);
    if (isPooled) await checkPooler(client, address);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}

/** A pooler has to keep at least a transaction together. */
async function checkPooler(client: pg.Client, { shown }: Address): Promise<void> {
  try {
    await client.query(BEGIN_POOLED_SQL);
    await client.query('COMMIT');
  } catch (error) {
    if (!/statement pooling/.test((error as Error).message)) throw error;
    throw new StoreUnusable(
      `${shown} cannot be used through this pooler, which keeps no transactions together: ` +
        'set it to session or transaction pooling',
    );
  }
}
