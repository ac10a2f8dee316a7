// Opens a PostgreSQL database as a store: connects, upgrades the schema, and decides whether TLS is used.

import { randomInt } from 'node:crypto';
import pg from 'pg';
import { type Store, StoreUnusable } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { type Address, type Host, readAddress, withSslMode } from './address.ts';
import { asOpeningError, isWithoutTls } from './errors.ts';
import {
  type Distribution,
  distributeDatabase,
  type MigrationListener,
  prepareDatabase,
  SCHEMA_VERSION,
  type Server,
  tryToMakeLocal,
} from './migrations.ts';
import { LOCK_PATIENCE_MS, type Migrator, type StepProgress } from './migrator.ts';
import { attachPostgresStore } from './postgres-store.ts';
import { BEGIN_WITH_SETTINGS_SQL, clientConfig, setUpSession } from './session.ts';

/**
 * Opens the store. Calls `onTrouble` with problems that the operator should know about but that no call reports. With
 * the returned URL, another thread connects to the same database in the same way.
 */
export async function openPostgresStore(
  givenUrl: string,
  onTrouble: (trouble: string) => void = () => {},
): Promise<Store & { readonly url: string }> {
  const { url } = await onPrepared(givenUrl, reportOnce(onTrouble), async (migrator, server) => {
    const trouble = await tryToMakeLocal(migrator, server);
    if (trouble !== null) onTrouble(trouble);
    return migrator.address;
  });
  return { ...attachPostgresStore(url), url };
}

/** Upgrades a database and, on a Citus cluster, distributes the tables that are not distributed yet. */
export async function migratePostgres(
  url: string,
  listener: Partial<MigrationListener>,
): Promise<{ readonly schemaVersion: number; readonly distribution: Distribution | null }> {
  const { onProgress = () => {} } = listener;
  const distribution = await onPrepared(url, onProgress, (migrator, server) =>
    distributeDatabase(migrator, server, catalogueTables, listener),
  );
  return { schemaVersion: SCHEMA_VERSION, distribution };
}

/** `randomInt` accepts ranges below 2^48. */
const LOCK_NUMBERS = 2 ** 47;

/**
 * Resolves to whether both addresses lead to the same tables. The addresses cannot be compared as text, because a server
 * can have many names. Instead, one connection takes an advisory lock, and the other one tries to take it, too.
 */
export async function isSamePostgres(one: string, other: string): Promise<boolean> {
  const lock = randomInt(LOCK_NUMBERS);
  return onReached(one, async (holder) => {
    await holder.query('BEGIN');
    const { rows } = await holder.query(
      'SELECT current_schema() AS schema, pg_advisory_xact_lock($1)::text',
      [lock],
    );
    const isSame = await onReached(other, async (checker) => {
      const checked = await checker.query(
        'SELECT current_schema() AS schema, pg_try_advisory_xact_lock($1) AS is_free',
        [lock],
      );
      const { schema, is_free } = checked.rows[0];
      return !is_free && schema === rows[0].schema;
    });
    await holder.query('ROLLBACK');
    return isSame;
  });
}

const WORTH_REPORTING_AFTER_MS = 10_000;

/**
 * Returns a listener that reports each long step once, so that the operator learns why opening the database takes so
 * long.
 */
export function reportOnce(report: (sentence: string) => void): (progress: StepProgress) => void {
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
  return onReached(url, async (client, address) => {
    const migrator = {
      client,
      address,
      connect: () => connect(address),
      lockPatienceMs: LOCK_PATIENCE_MS,
      onProgress,
    };
    return use(migrator, await prepareDatabase(migrator, catalogueTables));
  });
}

async function onReached<Result>(
  url: string,
  use: (client: pg.Client, address: Address) => Promise<Result>,
): Promise<Result> {
  const asked = readAddress(url);
  try {
    const { client, address } = await reach(asked);
    try {
      return await use(client, address);
    } finally {
      await client.end();
    }
  } catch (error) {
    throw asOpeningError(asked, error);
  }
}

/**
 * Connects, and decides once what `sslmode=prefer` means. If the server supports TLS, all connections of this process
 * require TLS, so that an attacker on the network cannot make a later connection unencrypted.
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

/** Connects to the first host that serves. */
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
  // Ignores the error if the connection is lost between two statements, because the next statement reports it.
  client.on('error', () => {});
  try {
    await client.connect();
    const { isPooled } = await setUpSession(client, address);
    if (isPooled) await checkPooler(client, address);
    return client;
  } catch (error) {
    // Also if the client has no password: the connection would wait for it.
    await client.end();
    throw error;
  }
}

/** Throws if the pooler does not keep a transaction in one session. */
async function checkPooler(client: pg.Client, { shown }: Address): Promise<void> {
  try {
    await client.query(BEGIN_WITH_SETTINGS_SQL);
    await client.query('COMMIT');
  } catch (error) {
    if (!/statement pooling/.test((error as Error).message)) throw error;
    throw new StoreUnusable(
      `${shown} cannot be used through this pooler, which keeps no transactions together: ` +
        'set it to session or transaction pooling',
    );
  }
}
