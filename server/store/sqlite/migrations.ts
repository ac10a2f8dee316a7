// Upgrades a database file to the schema of this version, or throws with a message for the operator. Numbered
// migrations create the tables of organisations, keys, idempotency records, the ledger and segments. The tables of
// records and interactions follow the catalogue: missing tables, columns and indexes are added, and NOT NULL constraints
// that no longer apply are dropped. A new or changed type or field therefore needs no migration.

import type { DatabaseSync } from 'node:sqlite';
import { StoreUnusable } from '../store.ts';
import { isNotNull, type Table, type Tables, tablesIn } from '../tables.ts';
import { codecs } from './codecs.ts';
import { retryWhileLocked } from './lock-waiting.ts';
import {
  addColumnSql,
  type ColumnDefinition,
  createListIndexSql,
  createTableSql,
  redefineTableSql,
} from './schema.ts';

/**
 * The number in the file's header, "Hgat" in ASCII, that distinguishes Headgate's files from other SQLite databases.
 */
const APPLICATION_ID = 0x48676174;

/** The entry at index n upgrades the schema from version n to n + 1. Entries are only ever appended. */
const migrations: readonly string[] = [
  `CREATE TABLE organisations (
    organisation INTEGER PRIMARY KEY,
    org_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE api_keys (
    key_id TEXT PRIMARY KEY,
    organisation INTEGER NOT NULL,
    secret_hash TEXT NOT NULL,
    name TEXT,
    scopes TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    revoked_at_ms INTEGER,
    last_used_at_ms INTEGER,
    replaced_by TEXT
  ) STRICT;
  CREATE INDEX api_keys_by_organisation ON api_keys (organisation, created_at_ms, key_id);
  CREATE TABLE idempotency_answers (
    organisation INTEGER NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    answer BLOB NOT NULL,
    tallies TEXT NOT NULL,
    kept_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (organisation, path, key)
  ) STRICT;
  CREATE INDEX idempotency_answers_by_expiry ON idempotency_answers (expires_at_ms);`,
  // An organisation that exists already has records that are in no entry. Its ledger therefore begins after entry 1, and
  // whoever wants to follow it has to read all records first.
  `CREATE TABLE ledgers (
    organisation INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    ids_after_seq INTEGER NOT NULL,
    entries_after_seq INTEGER NOT NULL,
    kept_ids INTEGER NOT NULL
  ) STRICT;
  INSERT INTO ledgers SELECT organisation, 1, 1, 1, 0 FROM organisations;
  CREATE TABLE ledger_entries (
    organisation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    type TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    received INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    causes TEXT,
    changed_ids BLOB,
    PRIMARY KEY (organisation, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ledger_entries_by_request ON ledger_entries (organisation, request_id);
  CREATE TABLE usage_days (
    organisation INTEGER NOT NULL,
    day INTEGER NOT NULL,
    type TEXT NOT NULL,
    key_id TEXT NOT NULL,
    uploads INTEGER NOT NULL,
    received INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (organisation, day, type, key_id)
  ) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE segment_sets (
    organisation INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE segments (
    organisation INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    name TEXT,
    note TEXT,
    condition TEXT NOT NULL,
    uses TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    saved_at_ms INTEGER NOT NULL,
    members INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    kept_after_seq INTEGER NOT NULL,
    evaluated_at_ms INTEGER,
    evaluation_ms INTEGER,
    entered_members INTEGER,
    left_members INTEGER,
    attempted_at_ms INTEGER,
    failure TEXT,
    token TEXT,
    token_at_ms INTEGER,
    PRIMARY KEY (organisation, segment),
    UNIQUE (organisation, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE segment_memberships (
    organisation INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    customer_id TEXT NOT NULL,
    entered_seq INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    left_seq INTEGER,
    left_at_ms INTEGER,
    PRIMARY KEY (organisation, segment, customer_id, entered_seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX segment_memberships_by_entry ON segment_memberships (organisation, segment, entered_seq);
  CREATE INDEX segment_memberships_by_departure ON segment_memberships (organisation, segment, left_seq)
    WHERE left_seq IS NOT NULL;`,
  // The index had the whole user_id. The new one, which has its beginning, is built with the missing indexes.
  'DROP INDEX IF EXISTS interactions_by_user',
  // Nearly all entries had the same value, and every insert had to add one.
  'DROP INDEX IF EXISTS interactions_by_source',
  // Their entries contained the id as well. The new ones are built with the missing indexes.
  `DROP INDEX IF EXISTS interactions_by_time;
  DROP INDEX IF EXISTS interactions_by_student;
  DROP INDEX IF EXISTS interactions_by_user;
  DROP INDEX IF EXISTS interactions_by_item;`,
  // It had 256 characters of every user_id. The new one is built with the missing indexes.
  'DROP INDEX IF EXISTS interactions_by_user',
];

export const SCHEMA_VERSION = migrations.length;

/**
 * Upgrades the database. The upgrade may be interrupted, and several processes may run it at once: all steps run in one
 * transaction, which determines the missing steps again once it holds the write lock.
 */
export function prepareDatabase(database: DatabaseSync, path: string, tables: Tables): void {
  const isReady = retryWhileLocked(
    () =>
      missingMigrations(database, path).length === 0 &&
      missingInTables(database, path, tables).length === 0 &&
      redefinitions(database, tables).length === 0,
  );
  retryWhileLocked(() => database.exec('PRAGMA journal_mode = WAL'));
  if (isReady) return;
  retryWhileLocked(() => database.exec('BEGIN IMMEDIATE'));
  try {
    for (const step of missingMigrations(database, path)) database.exec(step);
    for (const step of missingInTables(database, path, tables)) database.exec(step);
    redefine(database, redefinitions(database, tables));
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function missingMigrations(database: DatabaseSync, path: string): readonly string[] {
  const version = knownVersion(database, path);
  if (version === SCHEMA_VERSION) return [];
  return [
    ...migrations.slice(version),
    `PRAGMA application_id = ${APPLICATION_ID}`,
    `PRAGMA user_version = ${SCHEMA_VERSION}`,
  ];
}

function missingInTables(database: DatabaseSync, path: string, tables: Tables): readonly string[] {
  return tablesIn(tables).flatMap((table) => stepsOfTable(database, path, table));
}

/**
 * Returns the file's schema version, or 0 for a file that is not used yet. Throws if the file is not Headgate's, or if
 * a newer version made it.
 */
export function knownVersion(database: DatabaseSync, path: string): number {
  // Reads the application id last. If another process creates its tables between these reads, the application id is
  // then already Headgate's, and the file is not refused.
  const isEmpty = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
  const version = pragmaNumber(database, 'user_version');
  const applicationId = pragmaNumber(database, 'application_id');
  const isUnused = isEmpty && version === 0 && applicationId === 0;
  if (applicationId !== APPLICATION_ID && !isUnused) {
    throw new StoreUnusable(`${path} is a SQLite database that Headgate has not made: name another file`);
  }
  if (version > SCHEMA_VERSION) {
    throw new StoreUnusable(
      `${path} was made by a newer Headgate (schema ${version}; this one knows ${SCHEMA_VERSION}): upgrade Headgate`,
    );
  }
  return version;
}

function stepsOfTable(database: DatabaseSync, path: string, table: Table): readonly string[] {
  const columns = columnsIn(database, table);
  const indexes = database.prepare('SELECT name FROM pragma_index_list(?)').all(table.name);
  const steps: string[] = [];
  if (columns.length === 0) steps.push(createTableSql(table));
  else {
    refuseUnknownColumns(path, table, columns);
    const added = table.columns.filter(({ name }) => !columns.some((column) => column.name === name));
    steps.push(...added.map((column) => addColumnSql(table, column)));
  }
  const addedIndexes = table.indexes.filter(({ name }) => !indexes.some((index) => index.name === name));
  return [...steps, ...addedIndexes.map((index) => createListIndexSql(table, index))];
}

interface PresentColumn extends ColumnDefinition {
  readonly isNotNull: boolean;
}

/** Returns the columns that the table has in the file. There are none if the table does not exist. */
function columnsIn(database: DatabaseSync, { name }: Table): readonly PresentColumn[] {
  return database
    .prepare('SELECT name, type, "notnull" AS is_not_null, dflt_value FROM pragma_table_info(?)')
    .all(name)
    .map((column) => ({
      name: String(column.name),
      type: String(column.type),
      defaultSql: column.dflt_value as string | null,
      isNotNull: column.is_not_null === 1,
    }));
}

/** Returns the statements that redefine the tables in which a column is NOT NULL but should not be. */
function redefinitions(database: DatabaseSync, tables: Tables): readonly string[] {
  return tablesIn(tables).flatMap((table) => {
    const columns = columnsIn(database, table);
    const isStricter = columns.some((column) => column.isNotNull && !isNotNull(table, column.name));
    return isStricter ? [redefineTableSql(table, columns)] : [];
  });
}

/**
 * Runs the statements, which drop constraints without rewriting rows. SQLite documents this way for releases before
 * 3.53, whose ALTER TABLE cannot drop constraints: https://www.sqlite.org/lang_altertable.html#otheralter
 */
function redefine(database: DatabaseSync, statements: readonly string[]): void {
  if (statements.length === 0) return;
  database.enableDefensive(false);
  database.exec('PRAGMA writable_schema = ON');
  try {
    for (const statement of statements) database.exec(statement);
    // A new schema version makes other connections read the definitions again. RESET makes this connection read them
    // again, and fails if a definition cannot be read.
    database.exec(`PRAGMA schema_version = ${pragmaNumber(database, 'schema_version') + 1}`);
    database.exec('PRAGMA writable_schema = RESET');
  } finally {
    database.exec('PRAGMA writable_schema = OFF');
    database.enableDefensive(true);
  }
}

function refuseUnknownColumns(path: string, table: Table, present: readonly ColumnDefinition[]): void {
  const declared = new Map<string, string>(table.columns.map(({ name, kind }) => [name, codecs[kind].type]));
  declared.set('organisation', 'INTEGER');
  for (const { name, type } of present) {
    const declaredType = declared.get(name);
    if (declaredType === undefined) {
      throw new StoreUnusable(
        `${path} was made by a newer Headgate (its table ${table.name} has a column ${name} ` +
          'that this one does not know): upgrade Headgate',
      );
    }
    if (declaredType !== type) {
      throw new StoreUnusable(
        `${path} stores the column ${table.name}.${name} as ${type}, but this Headgate stores ${declaredType}: ` +
          'use the version that made it',
      );
    }
  }
}

function pragmaNumber(
  database: DatabaseSync,
  pragma: 'user_version' | 'application_id' | 'schema_version',
): number {
  return Number(database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
}
