// Runs a program that keeps tables in a PostgreSQL database in sync with a server, kills it, and compares the tables with
// the server's records.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { type HeadgateClient, keyFields } from '@headgate/client/client.ts';
import pg from 'pg';
import { type TestDatabase, testServer } from '../../server/store/postgres/test-server.ts';
import { exitCodeOf, waitUntil } from './waiting.ts';

export const syncedTypes = ['shops', 'transactions', 'interactions'] as const;

type Row = Readonly<Record<string, unknown>>;
type Start = (databaseUrl: string) => ChildProcess;

export class SyncedTables {
  readonly #client: HeadgateClient;
  readonly #database: TestDatabase;
  readonly #connection: pg.Client;
  readonly #start: Start;
  #program: ChildProcess | null = null;
  #errors = '';

  /** `start` starts the program, with its standard error as a pipe. */
  static async prepare(client: HeadgateClient, start: Start): Promise<SyncedTables> {
    const database = await (await testServer()).newDatabase();
    const tables = new SyncedTables(client, database, start);
    await tables.#connection.connect();
    // The driver reads dates only in this style, and the test server has another one.
    await tables.ask('SET DateStyle = ISO');
    return tables;
  }

  private constructor(client: HeadgateClient, database: TestDatabase, start: Start) {
    this.#client = client;
    this.#database = database;
    this.#connection = new pg.Client(database.url);
    this.#start = start;
  }

  start(): void {
    this.#program = this.#start(this.#database.url);
    this.#errors = '';
    this.#program.stderr!.on('data', (chunk) => {
      this.#errors += chunk;
    });
  }

  async kill(): Promise<void> {
    if (this.#program === null) return;
    this.#program.kill('SIGKILL');
    await exitCodeOf(this.#program);
    this.#program = null;
  }

  /** Starts the program, and kills it when it has begun a transaction and has to write to the table. */
  async killWhileItWrites(table: string): Promise<void> {
    await this.ask(`BEGIN; LOCK TABLE ${table} IN SHARE MODE`);
    try {
      this.start();
      await this.#until('the program waits for the table', async () => {
        const waiting = await this.ask(
          `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '${table}'::regclass`,
        );
        return waiting.length > 0;
      });
      await this.kill();
    } finally {
      await this.ask('ROLLBACK');
    }
  }

  /** Waits until the program has processed everything, and compares its tables with the server's records. */
  async assertCurrent(): Promise<void> {
    const latest = String(await this.#client.latest());
    await this.#until('the program has stored the last position', async () => {
      const [made] = await this.ask(`SELECT to_regclass('headgate_position') IS NOT NULL AS is_made`);
      if (made!.is_made !== true) return false;
      return (await this.ask('SELECT position FROM headgate_position'))[0]?.position === latest;
    });
    for (const type of syncedTypes) {
      const records = new Map<unknown, Row>();
      for await (const record of type === 'interactions'
        ? this.#client.interactions()
        : this.#client.list(type)) {
        records.set((record as unknown as Row)[keyFields[type]], record as unknown as Row);
      }
      const rows = await this.ask(`SELECT * FROM ${type}`);
      assert.equal(rows.length, records.size, `the number of ${type}`);
      for (const row of rows) {
        const record = records.get(row[keyFields[type]]) ?? {};
        const expected = Object.entries(row).map(([name, value]) => [
          name,
          value instanceof Date ? new Date(record[name] as string) : record[name],
        ]);
        assert.deepEqual(row, Object.fromEntries(expected));
      }
    }
  }

  /** Returns everything that the program has stored. */
  async stored(): Promise<readonly (readonly Row[])[]> {
    const tables: (readonly Row[])[] = [];
    for (const table of [...syncedTypes, 'headgate_position']) {
      tables.push(await this.ask(`SELECT * FROM ${table} ORDER BY 1`));
    }
    return tables;
  }

  async ask(sql: string): Promise<readonly Row[]> {
    return (await this.#connection.query<Record<string, unknown>>(sql)).rows;
  }

  async remove(): Promise<void> {
    try {
      await this.kill();
    } finally {
      await this.#connection.end();
      await this.#database.drop();
    }
  }

  #until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    return waitUntil(what, () => {
      assert.equal(this.#program?.exitCode, null, `the program has ended: ${this.#errors}`);
      return isSo();
    });
  }
}
