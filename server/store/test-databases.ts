// Every kind of database that tests run on. Only this module depends on their differences.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { testClusters } from './postgres/test-cluster.ts';
import { testServer } from './postgres/test-server.ts';
import { isThorough } from './test-thoroughness.ts';

export interface TestDatabases {
  readonly name: string;
  /** Creates an empty database. Resolves to its address and a function that removes it. */
  newDatabase(): Promise<{ database: string; remove(): Promise<void> }>;
  /** Runs a statement outside any store, as an analyst would. */
  ask(database: string, sql: string): Promise<readonly Record<string, unknown>[]>;
  /** Runs a script of statements, such as a dump. */
  run(database: string, script: string): Promise<void>;
  /** Blocks all writes of idempotency records. Resolves to a function that ends this. */
  holdAnswers(database: string): Promise<() => Promise<void>>;
  /** Returns the damage that the database's own check of its files finds. No server may be running on it. */
  damages(database: string): Promise<readonly string[]>;
}

export const testDatabases: readonly TestDatabases[] = [
  {
    name: 'SQLite',
    async newDatabase() {
      const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
      const database = `sqlite:${join(folder, 'headgate.db')}`;
      return { database, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }) };
    },
    async ask(database, sql) {
      const file = new DatabaseSync(database.replace('sqlite:', ''));
      const rows = file.prepare(sql).all();
      file.close();
      return rows;
    },
    async run(database, script) {
      const file = new DatabaseSync(database.replace('sqlite:', ''));
      file.exec(script);
      file.close();
    },
    async holdAnswers(database) {
      const file = new DatabaseSync(database.replace('sqlite:', ''));
      file.exec('BEGIN IMMEDIATE');
      return async () => file.close();
    },
    async damages(database) {
      const findings = await this.ask(database, 'PRAGMA integrity_check');
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
    async ask(database, sql) {
      const server = await testServer();
      return server.ask(nameIn(database), sql);
    },
    async run(database, script) {
      await this.ask(database, script);
    },
    holdAnswers: holdAnswersTable,
    async damages(database) {
      return damagesOf((sql) => this.ask(database, sql));
    },
  },
  ...testClusters.map((testCluster) => ({
    name: 'Citus',
    async newDatabase() {
      const cluster = await testCluster();
      const { url, drop } = await cluster.newDatabase();
      return { database: url, remove: drop };
    },
    async ask(database: string, sql: string) {
      const cluster = await testCluster();
      return cluster.ask(nameIn(database), sql);
    },
    async run(database: string, script: string) {
      await this.ask(database, script);
    },
    holdAnswers: holdAnswersTable,
    async damages(database: string) {
      const cluster = await testCluster();
      return damagesOf(async (sql) => (await cluster.askEveryNode(nameIn(database), sql)).flat());
    },
  })),
];

/** Whether tests of what does not depend on the database run on this one: the first, or in a thorough run each. */
export function isTriedInFull(databases: TestDatabases): boolean {
  return isThorough || databases === testDatabases[0];
}

async function holdAnswersTable(database: string): Promise<() => Promise<void>> {
  const client = new pg.Client(database);
  await client.connect();
  await client.query('BEGIN; LOCK TABLE idempotency_answers IN EXCLUSIVE MODE');
  return () => client.end();
}

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
  // Throws if an index and its table differ.
  await ask(
    `SELECT bt_index_check(oid, true) FROM pg_class
      WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace`,
  );
  return findings.map(({ finding }) => String(finding));
}
