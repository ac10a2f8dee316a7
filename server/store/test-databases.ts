// Every kind of database that tests are run on: the one place that knows how they differ.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { testClusters } from './postgres/test-cluster.ts';
import { testServer } from './postgres/test-server.ts';

export interface TestDatabases {
  readonly name: string;
  /** A new, empty database: its address, and how to remove it. */
  newDatabase(): Promise<{ database: string; remove(): Promise<void> }>;
  /** What the database's own check of its files finds damaged, while no server runs on it. */
  damages(database: string): Promise<readonly string[]>;
}

export const testDatabases: readonly TestDatabases[] = [
  {
    name: 'SQLite',
    async newDatabase() {
      const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
      const database = `sqlite:${join(folder, 'headgate.db')}`;
      return { database, remove: () => rm(folder, { recursive: true, force: true }) };
    },
    async damages(database) {
      const file = new DatabaseSync(database.replace('sqlite:', ''));
      const findings = file.prepare('PRAGMA integrity_check').all();
      file.close();
      return findings.map((finding) => String(finding.integrity_check)).filter((finding) => finding !== 'ok');
    },
  },
  {
    name: 'PostgreSQL',
    async newDatabase() {
      const server = await testServer();
      const { url, drop } = await server.newDatabase();
      return { database: url, remove: drop };
    },
    async damages(database) {
      const server = await testServer();
      return damagesOf((sql) => server.ask(nameIn(database), sql));
    },
  },
  ...testClusters.map((testCluster) => ({
    name: 'Citus',
    async newDatabase() {
      const cluster = await testCluster();
      const { url, drop } = await cluster.newDatabase();
      return { database: url, remove: drop };
    },
    async damages(database: string) {
      const cluster = await testCluster();
      return damagesOf(async (sql) => (await cluster.askEveryNode(nameIn(database), sql)).flat());
    },
  })),
];

function nameIn(database: string): string {
  return new URL(database).pathname.slice(1);
}

async function damagesOf(
  ask: (sql: string) => Promise<readonly Record<string, unknown>[]>,
): Promise<readonly string[]> {
  await ask('CREATE EXTENSION IF NOT EXISTS amcheck');
  const findings = await ask(
    `SELECT relname || ': ' || msg AS finding
      FROM pg_class, verify_heapam(pg_class.oid)
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
  );
  // Raises an error where an index and its table disagree.
  await ask(
    `SELECT bt_index_check(oid, true) FROM pg_class
      WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace`,
  );
  return findings.map(({ finding }) => String(finding));
}
