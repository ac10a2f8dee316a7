// Connects to a Citus cluster for tests: the one whose coordinator HEADGATE_TEST_CITUS_URL names, if it is set. Its
// role must be a superuser on every node, with the same password everywhere.

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { askOn, type TestDatabase } from './test-server.ts';

export interface TestCluster {
  /** The number of workers: two or more. */
  readonly workers: number;
  /** Creates a database with Citus on the coordinator and on every worker. */
  newDatabase(): Promise<TestDatabase>;
  /** Creates a database on every node, without Citus until `addCitus` is called. */
  newPlainDatabase(): Promise<TestDatabase & { addCitus(): Promise<void> }>;
  /** Runs statements on one database of the coordinator. */
  ask(database: string, sql: string): Promise<readonly Record<string, unknown>[]>;
  /** Makes the last worker close all connections to one database and refuse new ones until `startWorker`. */
  stopWorker(database: string): Promise<void>;
  startWorker(database: string): Promise<void>;
  /** Runs statements on every node separately, and returns the rows of each, the coordinator's first. */
  askEveryNode(database: string, sql: string): Promise<readonly (readonly Record<string, unknown>[])[]>;
}

interface Node {
  readonly host: string;
  readonly port: number;
}

/** By default, Citus hides shards from queries on a node, and applies schema changes to all nodes. */
const BY_ITSELF = '-c citus.override_table_visibility=off -c citus.enable_ddl_propagation=off';
const IN_USE_STATE = '55006';
const MOST_DROP_TRIES = 5;
const FEWEST_WORKERS = 2;
/** Few, so that tables are created quickly; more than one, so that they are really distributed. */
const SHARDS_PER_WORKER = 2;

let reached: Promise<TestCluster> | null = null;

/** One cluster, or none if the variable is not set. Tests loop over them. */
export const testClusters: readonly (() => Promise<TestCluster>)[] = [
  process.env.HEADGATE_TEST_CITUS_URL ?? [],
]
  .flat()
  .map((url) => () => (reached ??= reachCluster(url)));

async function reachCluster(url: string): Promise<TestCluster> {
  const coordinator = new URL(url);
  const urlOf = ({ host, port }: Node, database: string): string => {
    const changed = new URL(url);
    changed.hostname = host;
    changed.port = String(port);
    changed.pathname = `/${database}`;
    return changed.href;
  };
  const ask = (
    node: Node,
    database: string,
    sql: string,
    options = '',
  ): Promise<readonly Record<string, unknown>[]> =>
    askOn({ connectionString: urlOf(node, database), options }, sql);

  const here = { host: coordinator.hostname, port: Number(coordinator.port || 5432) };
  const home = coordinator.pathname.slice(1);
  const workers = (
    await ask(here, home, `SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 ORDER BY nodeid`)
  ).map(({ nodename, nodeport }): Node => ({ host: String(nodename), port: Number(nodeport) }));
  if (workers.length < FEWEST_WORKERS) {
    throw new Error(
      `HEADGATE_TEST_CITUS_URL names a cluster with ${workers.length} workers; the tests need ${FEWEST_WORKERS}`,
    );
  }
  const nodes = [here, ...workers];

  /** Retries, because Citus repeatedly opens its own sessions in a database, and one may be open at the moment. */
  const dropDatabase = async (node: Node, name: string): Promise<void> => {
    for (let tries = 1; ; tries++) {
      try {
        await ask(node, home, `DROP DATABASE ${name} WITH (FORCE)`);
        return;
      } catch (error) {
        if ((error as pg.DatabaseError).code !== IN_USE_STATE || tries === MOST_DROP_TRIES) throw error;
      }
    }
  };

  const newPlainDatabase: TestCluster['newPlainDatabase'] = async () => {
    const name = `headgate_${randomBytes(6).toString('hex')}`;
    for (const node of nodes) await ask(node, home, `CREATE DATABASE ${name}`);
    await ask(
      here,
      home,
      `ALTER DATABASE ${name} SET citus.shard_count = ${workers.length * SHARDS_PER_WORKER}`,
    );
    let hasCitus = false;
    return {
      name,
      url: urlOf(here, name),
      async addCitus() {
        await Promise.all(nodes.map((node) => ask(node, name, 'CREATE EXTENSION citus')));
        await ask(here, name, `SELECT citus_set_coordinator_host('${here.host}', ${here.port})`);
        for (const { host, port } of workers) {
          await ask(here, name, `SELECT citus_add_node('${host}', ${port})`);
        }
        hasCitus = true;
      },
      async drop() {
        // A prepared transaction that a killed server has left would prevent its database from being dropped.
        if (hasCitus) await ask(here, name, 'SELECT recover_prepared_transactions()');
        await Promise.all(nodes.map((node) => dropDatabase(node, name)));
      },
    };
  };

  const last = workers.at(-1)!;
  return {
    workers: workers.length,
    async stopWorker(database) {
      await ask(last, home, `ALTER DATABASE ${database} ALLOW_CONNECTIONS false`);
      await ask(
        last,
        home,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`,
      );
    },
    async startWorker(database) {
      await ask(last, home, `ALTER DATABASE ${database} ALLOW_CONNECTIONS true`);
    },
    ask: (database, sql) => ask(here, database, sql),
    askEveryNode: (database, sql) => Promise.all(nodes.map((node) => ask(node, database, sql, BY_ITSELF))),
    newPlainDatabase,
    async newDatabase() {
      const database = await newPlainDatabase();
      await database.addCitus();
      return database;
    },
  };
}
