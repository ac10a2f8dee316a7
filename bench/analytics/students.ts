// The data of the analytics measurements: customers, and their transactions and interactions of the last 120 days.
// SQLite generates the rows, because millions of uploaded records would take minutes.

import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { Row } from '../../server/store/rows.ts';
import { openForWriting } from '../../server/store/sqlite/writing-connection.ts';
import { catalogueTables, quoted, quotedList, tableOf } from '../../server/store/tables.ts';
import { copyInto } from '../copy.ts';
import { type BenchDatabase, furnish, type PostgresDatabases, writeOut } from '../databases.ts';
import { ORGANISATION } from '../rows.ts';

export interface StudentsSize {
  readonly customers: number;
  readonly transactions: number;
  readonly interactions: number;
}

/** The types that are filled. */
const filledTypes = ['customers', 'transactions', 'interactions'] as const;
const ROWS_PER_COMMIT = 200_000;
const ROWS_PER_COPY = 50_000;
const CACHE_KIB = 1024 * 1024;
const DAYS = 120;

/** Returns SQL for one of the words. Each row gets another one, because `n.i` is its number. */
function oneOf(...words: readonly string[]): string {
  const cases = words.map((word, at) => `WHEN ${at} THEN '${word}'`);
  return `CASE (abs(random()) + n.i) % ${words.length} ${cases.join(' ')} END`;
}

const time = `strftime('%Y-%m-%dT%H:%M:%S', unixepoch() - (abs(random()) + n.i) % (${DAYS} * 86400), 'unixepoch') || '.000000Z'`;
const student =
  '(SELECT id FROM temp.students WHERE rowid = 1 + (abs(random()) + n.i) % (SELECT count FROM temp.sizes))';
const shop =
  '(SELECT id FROM temp.shop_ids WHERE rowid = 1 + (abs(random()) + n.i) % (SELECT shops FROM temp.sizes))';
const region = oneOf('GB', 'DE', 'FR', 'ES', 'NL', 'IE');
const cents = (most: number): string => `((abs(random()) + n.i) % ${most}) / 100.0`;

/** SQL for the columns of each type. The others are null. */
const values: Readonly<Record<(typeof filledTypes)[number], Readonly<Record<string, string>>>> = {
  customers: {
    customer_id: 'random_uuid()',
    user_id: 'random_uuid()',
    region,
    birthdate: `date('2000-01-01', '+' || (n.i % 3000) || ' days')`,
    created: time,
    is_deleted: '0',
    gender: oneOf('F', 'M'),
  },
  transactions: {
    transaction_id: 'random_uuid()',
    shop_id: shop,
    region,
    savings: cents(5000),
    amount: cents(20_000),
    student_id: student,
    offer_id: 'random_uuid()',
    created: time,
    updated: time,
    is_deleted: '0',
    discount_value: 'n.i % 50',
    source: oneOf('online', 'in-store', 'app'),
    discount_name: `'Autumn offer ' || n.i % 500`,
    discount_type: `'percentage'`,
  },
  interactions: {
    interaction_id: 'random_uuid()',
    interaction_type: oneOf('PAGE_VIEW', 'PAGE_VIEW', 'PAGE_VIEW', 'DISCOUNT_CODE'),
    student_id: student,
    item_type: `'SHOP'`,
    item_id: shop,
    platform: oneOf('WEB', 'IOS', 'ANDROID'),
    event_timestamp: `cast(1700000000 + n.i as text)`,
    source: oneOf('SERVICE', 'ORGANIC'),
    recommendation_id: 'random_uuid()',
    occurred_at: time,
    created: time,
    user_id: `'user-' || n.i % 99999`,
    city: `'Cambridge'`,
    country: `'GB'`,
  },
};

function fillType(database: DatabaseSync, type: (typeof filledTypes)[number], rows: number): void {
  const columns = Object.keys(values[type]);
  const insert = database.prepare(
    `WITH RECURSIVE n(i) AS (SELECT cast(?1 AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
     INSERT INTO ${quoted(type)} (organisation, ${quotedList(columns)})
     SELECT ${ORGANISATION}, ${Object.values(values[type]).join(', ')} FROM n`,
  );
  for (let first = 1; first <= rows; first += ROWS_PER_COMMIT) {
    database.exec('BEGIN IMMEDIATE');
    insert.run(first, Math.min(rows, first + ROWS_PER_COMMIT - 1));
    database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
  }
}

function fill(path: string, size: StudentsSize): void {
  const database = openForWriting(path);
  database.exec(`PRAGMA synchronous = OFF; PRAGMA cache_size = -${CACHE_KIB}; PRAGMA cache_spill = OFF`);
  database.function('random_uuid', () => randomUUID());
  fillType(database, 'customers', size.customers);
  database.exec(`
    CREATE TEMP TABLE students AS SELECT customer_id AS id FROM main.customers;
    CREATE TEMP TABLE shop_ids AS SELECT shop_id AS id FROM main.shops;
    CREATE TEMP TABLE sizes AS SELECT (SELECT count(*) FROM students) AS count, (SELECT count(*) FROM shop_ids) AS shops`);
  fillType(database, 'transactions', size.transactions);
  // Indexes are made faster when all rows are there.
  const indexes = database
    .prepare(
      `SELECT name, sql FROM sqlite_master WHERE tbl_name = 'interactions' AND type = 'index' AND sql IS NOT NULL`,
    )
    .all() as { name: string; sql: string }[];
  for (const { name } of indexes) database.exec(`DROP INDEX ${quoted(name)}`);
  fillType(database, 'interactions', size.interactions);
  for (const { sql } of indexes) database.exec(sql);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

/** A database that is made once. Each measurement that changes it gets a copy. */
export class Students {
  readonly size: StudentsSize;
  readonly #folder: string;
  readonly #key: string;

  private constructor(folder: string, size: StudentsSize, key: string) {
    this.#folder = folder;
    this.size = size;
    this.#key = key;
  }

  static async create(parentFolder: string, size: StudentsSize): Promise<Students> {
    const folder = join(parentFolder, 'students');
    await mkdir(folder);
    const path = join(folder, 'students.db');
    const key = await furnish(path);
    fill(path, size);
    await writeOut(path);
    return new Students(folder, size, key);
  }

  get path(): string {
    return join(this.#folder, 'students.db');
  }

  async newDatabase(): Promise<BenchDatabase> {
    const folder = await mkdtemp(join(this.#folder, 'copy-'));
    const database = join(folder, 'headgate.db');
    await copyFile(this.path, database);
    await writeOut(database);
    return { database, key: this.#key, remove: () => rm(folder, { recursive: true }) };
  }

  /** Copies the rows to PostgreSQL. */
  async copyToPostgres(postgres: PostgresDatabases): Promise<BenchDatabase> {
    const copy = await postgres.newDatabase(0);
    const database = new DatabaseSync(this.path, { readOnly: true });
    try {
      for (const type of filledTypes) await copyInto(copy.database, type, batchesOf(database, type));
      return copy;
    } finally {
      database.close();
    }
  }
}

function* batchesOf(database: DatabaseSync, type: UploadTypeName): Generator<Row[]> {
  const { name, columns } = tableOf(catalogueTables, type);
  const select = database.prepare(
    `SELECT ${quotedList(columns.map((column) => column.name))} FROM ${quoted(name)}`,
  );
  select.setReturnArrays(true);
  let batch: Row[] = [];
  for (const values of select.iterate() as unknown as Iterable<SQLInputValue[]>) {
    batch.push(values as ColumnValue[]);
    if (batch.length < ROWS_PER_COPY) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
