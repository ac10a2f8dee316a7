// Creates the databases for the measurements. Each measurement gets a new copy of a database that contains an
// organisation, its key, the shops, and the wanted number of transactions.

import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { copyFile, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueKey } from '../server/access/keys.ts';
import { createOrganisation } from '../server/access/organisations.ts';
import { defaultScopes } from '../server/access/scopes.ts';
import { openStore } from '../server/store/open-store.ts';
import { startTestServer, type TestServer } from '../server/store/postgres/test-server.ts';
import type { OrganisationNumber, Row } from '../server/store/rows.ts';
import { openForWriting } from '../server/store/sqlite/writing-connection.ts';
import { catalogueTables, quoted, quotedList, tableOf } from '../server/store/tables.ts';
import { copyInto } from './copy.ts';
import { bindable, ORGANISATION, rowsOf, upsertSql } from './rows.ts';
import { recordsOf, referencedShops } from './workloads.ts';

/** A table is filled with copies of this many generated rows. Each copy has a different key. */
const FILLING_ROWS = 50_000;
const FILLING_SEED = 77;
const FILLINGS_PER_COMMIT = 4;
const FILLING_CACHE_KIB = 1024 * 1024;

export interface BenchDatabase {
  /** The value of Headgate's `--database`. */
  readonly database: string;
  readonly key: string;
  remove(): Promise<void>;
}

export interface BenchDatabases {
  newDatabase(rowsPresent: number): Promise<BenchDatabase>;
}

export async function furnish(database: string): Promise<string> {
  const { organisation, key } = await addOrganisation(database, 'benchmark');
  if (organisation !== ORGANISATION) throw new Error(`the first organisation is number ${organisation}`);
  return key;
}

/** Adds an organisation with the shops that uploads refer to, and returns a key. */
export async function addOrganisation(
  database: string,
  name: string,
): Promise<{ readonly organisation: OrganisationNumber; readonly key: string }> {
  const store = await openStore(database);
  try {
    const nowMs = Date.now();
    const created = await createOrganisation(store, name, nowMs);
    if (created.kind !== 'created') throw new Error(`${database} has an organisation ${name}`);
    const { organisation, orgId } = created.organisation;
    const wish = { organisation, orgId, scopes: defaultScopes, name: 'benchmark', expiresAtMs: null, nowMs };
    const { apiKey } = await issueKey(store, wish);
    const batches = [rowsOf('shops', referencedShops)];
    await store.write({ organisation, type: 'shops', batches, idempotencyRecord: null, entry: null });
    return { organisation, key: apiKey };
  } finally {
    await store.close();
  }
}

const filled = tableOf(catalogueTables, 'transactions');

function firstFilling(rows: number): Row[] {
  const count = Math.min(rows, FILLING_ROWS);
  return rowsOf('transactions', recordsOf('transactions', FILLING_SEED, 0, count));
}

/** Yields the rows in parts of `FILLING_ROWS`, because millions of rows would not fit in memory. */
function* fillings(rows: number): Generator<Row[]> {
  const keyPosition = filled.columns.findIndex(({ name }) => name === filled.key);
  const filling = firstFilling(rows);
  for (let done = 0; done < rows; done += FILLING_ROWS) {
    yield filling.slice(0, rows - done).map((row) => row.with(keyPosition, randomUUID()));
  }
}

/**
 * Inserts the first `FILLING_ROWS` rows and lets SQLite copy them until the table is full. To save time, SQLite does
 * not wait for the disk and keeps the index in memory.
 */
function fillSqlite(path: string, rows: number): void {
  const database = openForWriting(path);
  database.exec(
    `PRAGMA synchronous = OFF; PRAGMA cache_size = -${FILLING_CACHE_KIB}; PRAGMA cache_spill = OFF`,
  );
  const inOneCommit = (write: () => void): void => {
    database.exec('BEGIN IMMEDIATE');
    write();
    database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
  };
  const insert = database.prepare(upsertSql(filled));
  inOneCommit(() => {
    for (const row of firstFilling(rows)) insert.run(...bindable(row));
  });
  database.function('random_uuid', () => randomUUID());
  const columns = ['organisation', ...filled.columns.map(({ name }) => name)];
  const values = columns.map((name) => (name === filled.key ? 'random_uuid()' : quoted(name)));
  const repeat = database.prepare(
    `INSERT INTO ${quoted(filled.name)} (${quotedList(columns)})
     SELECT ${values.join(', ')} FROM ${quoted(filled.name)} ORDER BY rowid LIMIT ?`,
  );
  const perCommit = FILLING_ROWS * FILLINGS_PER_COMMIT;
  for (let done = FILLING_ROWS; done < rows; done += perCommit) {
    inOneCommit(() => {
      const end = Math.min(done + perCommit, rows);
      for (let at = done; at < end; at += FILLING_ROWS) repeat.run(Math.min(FILLING_ROWS, end - at));
    });
  }
  database.close();
}

/** Syncs a large file to disk. If the kernel wrote it later, that would disturb the next measurement. */
export async function writeOut(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

export class SqliteDatabases implements BenchDatabases {
  readonly folder: string;
  readonly #templates = new Map<number, Promise<{ path: string; key: string }>>();
  #copies = 0;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Creates a folder for the databases, which is deleted when the process exits. */
  static async create(): Promise<SqliteDatabases> {
    const folder = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    return new SqliteDatabases(folder);
  }

  async newDatabase(rowsPresent: number): Promise<BenchDatabase> {
    const template = this.#templates.get(rowsPresent) ?? this.#makeTemplate(rowsPresent);
    this.#templates.set(rowsPresent, template);
    const { path, key } = await template;
    const folder = await mkdtemp(join(this.folder, `copy-${++this.#copies}-`));
    const database = join(folder, 'headgate.db');
    await copyFile(path, database);
    await writeOut(database);
    return { database, key, remove: () => rm(folder, { recursive: true }) };
  }

  async #makeTemplate(rows: number): Promise<{ path: string; key: string }> {
    const path = join(this.folder, `template-${rows}.db`);
    const key = await furnish(path);
    fillSqlite(path, rows);
    await writeOut(path);
    return { path, key };
  }
}

/** Typical settings for a small machine: durable, with a WAL that is large enough for infrequent checkpoints. */
const postgresSettings: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '1GB',
  max_wal_size: '4GB',
};

export class PostgresDatabases implements BenchDatabases {
  readonly server: TestServer;
  readonly #templates = new Map<number, Promise<{ name: string; key: string }>>();

  private constructor(server: TestServer) {
    this.server = server;
  }

  static async create(): Promise<PostgresDatabases> {
    return new PostgresDatabases(await startTestServer(postgresSettings));
  }

  async newDatabase(rowsPresent: number): Promise<BenchDatabase> {
    const template = this.#templates.get(rowsPresent) ?? this.#makeTemplate(rowsPresent);
    this.#templates.set(rowsPresent, template);
    const { name, key } = await template;
    const { url, drop } = await this.server.newDatabase(name);
    return { database: url, key, remove: drop };
  }

  async version(): Promise<string> {
    const [row] = await this.server.ask('postgres', 'SHOW server_version');
    return String(row?.server_version);
  }

  async #makeTemplate(rows: number): Promise<{ name: string; key: string }> {
    const { name, url } = await this.server.newDatabase();
    const key = await furnish(url);
    await copyInto(url, 'transactions', fillings(rows));
    // Vacuums and checkpoints now; if PostgreSQL did so later by itself, that would disturb the next measurement.
    await this.server.ask(name, 'VACUUM (ANALYZE) transactions');
    await this.server.ask(name, 'CHECKPOINT');
    return { name, key };
  }
}
