// Everything that changes the database, as jobs to be run inside the writer's transaction.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type {
  ApiKey,
  Memory,
  Organisation,
  OrganisationNumber,
  Remembered,
  Tally,
  Written,
} from '../store.ts';
import { quoted, quotedList, recordTable, type Table, type Tables } from '../tables.ts';
import { type JsonRow, type PackedRows, unpackedBatches } from './packed-rows.ts';
import { keptAnswerSql, rememberedOf } from './remembered.ts';

/** Work for the writer's transaction. */
export interface Job<Result> {
  run(): Result;
}

/** An upload on its way to the writer. */
export interface PackedUpload {
  readonly organisation: OrganisationNumber;
  readonly type: RecordTypeName;
  readonly rows: PackedRows;
  readonly dryRun: boolean;
  readonly memory: Memory | null;
}

interface Upsert {
  readonly insert: StatementSync;
  readonly merge: StatementSync;
}

const NO_ROWID = -1;
/** Dropping answers that may be a megabyte each, a few hundred at a time, keeps other writes from waiting. */
export const FORGOTTEN_AT_ONCE = 200;

export type WriteOperations = ReturnType<typeof createWriteOperations>;

export function createWriteOperations(database: DatabaseSync, tables: Tables) {
  const prepared = new Map<string, StatementSync>();
  const statement = (sql: string): StatementSync => {
    const known = prepared.get(sql) ?? database.prepare(sql);
    prepared.set(sql, known);
    return known;
  };
  database.exec('CREATE TEMP TABLE no_rowid (rowid INTEGER PRIMARY KEY)');
  const forgetLastRowid = database.prepare(`INSERT OR REPLACE INTO no_rowid VALUES (${NO_ROWID})`);

  const upserts = new Map<Table, Upsert>();
  const upsertInto = (table: Table): Upsert => {
    const known = upserts.get(table) ?? {
      insert: database.prepare(`${insertSql(table)} ON CONFLICT DO NOTHING`),
      merge: database.prepare(`${insertSql(table)} ${mergeSql(table)}`),
    };
    upserts.set(table, known);
    return known;
  };

  /**
   * Rows mostly come all new or all known. A bare insert takes two thirds of the time of one that is ready to
   * merge, which prepares for being undone halfway, so that is for rows that follow one that was there.
   */
  const upsertAll = (
    { insert, merge }: Upsert,
    organisation: OrganisationNumber,
    rows: readonly SQLInputValue[][],
  ): Tally => {
    let created = 0;
    let updated = 0;
    let wasThere = false;
    // A merge leaves the last inserted rowid as it is, unless it had to insert. Before the first row that is one
    // which no row has.
    let lastRowid: number | bigint = NO_ROWID;
    forgetLastRowid.run();
    for (const row of rows) {
      if (!wasThere) {
        const { changes, lastInsertRowid } = insert.run(...row, organisation);
        lastRowid = lastInsertRowid;
        created += Number(changes);
        wasThere = changes === 0;
        if (!wasThere) continue;
      }
      const { changes, lastInsertRowid } = merge.run(...row, organisation);
      if (changes === 0) continue;
      wasThere = lastInsertRowid === lastRowid;
      lastRowid = lastInsertRowid;
      if (wasThere) updated++;
      else created++;
    }
    return { created, updated, unchanged: rows.length - created - updated };
  };

  const recall = (memory: Memory): Remembered | null =>
    rememberedOf(statement(keptAnswerSql).get(memory.organisation, memory.path, memory.key, memory.keptAtMs));

  const keep = (memory: Memory, tallies: readonly Tally[]): void => {
    statement(
      `INSERT OR REPLACE INTO idempotency_answers
        (organisation, path, key, fingerprint, answer, tallies, kept_at_ms, expires_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ).run(
      memory.organisation,
      memory.path,
      memory.key,
      memory.fingerprint,
      memory.answer,
      JSON.stringify(tallies),
      memory.keptAtMs,
      memory.expiresAtMs,
    );
  };

  const unlessRemembered = (memory: Memory | null, write: () => readonly Tally[]): Written => {
    const remembered = memory === null ? null : recall(memory);
    if (remembered !== null) return { kind: 'already', remembered };
    const tallies = write();
    if (memory !== null) keep(memory, tallies);
    return { kind: 'written', tallies };
  };

  const storingNothing = <Result>(work: () => Result): Result => {
    database.exec('SAVEPOINT dry_run');
    const result = work();
    database.exec('ROLLBACK TO dry_run');
    database.exec('RELEASE dry_run');
    return result;
  };

  const insertKey = (key: Omit<ApiKey, 'orgId'>): void => {
    statement(
      `INSERT INTO api_keys
        (key_id, organisation, secret_hash, name, scopes,
         created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, replaced_by)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ).run(
      key.keyId,
      key.organisation,
      key.secretHash,
      key.name,
      JSON.stringify(key.scopes),
      key.createdAtMs,
      key.expiresAtMs,
      key.revokedAtMs,
      key.lastUsedAtMs,
      key.replacedBy,
    );
  };

  return {
    createOrganisation: (name: string, orgId: string, createdAtMs: number): Job<Organisation | null> => ({
      run() {
        const row = statement(
          `INSERT INTO organisations (org_id, name, created_at_ms) VALUES (?, ?, ?)
           ON CONFLICT (name) DO NOTHING RETURNING organisation`,
        ).get(orgId, name, createdAtMs);
        return row === undefined
          ? null
          : { organisation: Number(row.organisation), orgId, name, createdAtMs };
      },
    }),

    addKey: (key: Omit<ApiKey, 'orgId'>): Job<void> => ({ run: () => insertKey(key) }),

    replaceKey: (keyId: string, endsAtMs: number, successor: Omit<ApiKey, 'orgId'>): Job<boolean> => ({
      run() {
        const found = statement('SELECT replaced_by FROM api_keys WHERE key_id = ?').get(keyId);
        if (found === undefined) throw new Error(`there is no key ${keyId} to replace`);
        if (found.replaced_by !== null) return false;
        statement(
          `UPDATE api_keys SET expires_at_ms = min(?1, coalesce(expires_at_ms, ?1)), replaced_by = ?2
           WHERE key_id = ?3`,
        ).run(endsAtMs, successor.keyId, keyId);
        insertKey(successor);
        return true;
      },
    }),

    revokeKey: (keyId: string, revokedAtMs: number): Job<void> => ({
      run() {
        statement('UPDATE api_keys SET revoked_at_ms = ? WHERE key_id = ? AND revoked_at_ms IS NULL').run(
          revokedAtMs,
          keyId,
        );
      },
    }),

    noteKeysUsed: (lastUsedAtMs: ReadonlyMap<string, number>): Job<void> => ({
      run() {
        const note = statement(
          `UPDATE api_keys SET last_used_at_ms = ?1
           WHERE key_id = ?2 AND (last_used_at_ms IS NULL OR last_used_at_ms < ?1)`,
        );
        for (const [keyId, usedAtMs] of lastUsedAtMs) note.run(usedAtMs, keyId);
      },
    }),

    write(upload: PackedUpload): Job<Written> {
      const table = recordTable(tables, upload.type);
      const upsert = upsertInto(table);
      const upsertBatches = (): readonly Tally[] => {
        const tallies: Tally[] = [];
        for (const rows of unpackedBatches(upload.rows)) {
          tallies.push(upsertAll(upsert, upload.organisation, bindable(table, rows)));
        }
        return tallies;
      };
      return {
        run() {
          if (!upload.dryRun) return unlessRemembered(upload.memory, upsertBatches);
          const remembered = upload.memory === null ? null : recall(upload.memory);
          if (remembered !== null) return { kind: 'already', remembered };
          return { kind: 'written', tallies: storingNothing(upsertBatches) };
        },
      };
    },

    /** Answers in one word what became of a row that nothing is remembered with: it crosses threads thousands of times a second. */
    writeInteraction(
      organisation: OrganisationNumber,
      rowJson: string | null,
      memory: Memory | null,
    ): Job<Written | keyof Tally> {
      const table = tables.interactions;
      const rows = rowJson === null ? [] : bindable(table, [JSON.parse(rowJson) as JsonRow]);
      const upsert = upsertInto(table);
      const write = (): readonly Tally[] => rows.map((row) => upsertAll(upsert, organisation, [row]));
      return {
        run() {
          if (memory !== null || rows.length === 0) return unlessRemembered(memory, write);
          const [{ created, updated }] = write() as [Tally];
          return created === 1 ? 'created' : updated === 1 ? 'updated' : 'unchanged';
        },
      };
    },

    /** Says how many were dropped, so that the caller can come back for more. */
    forgetExpired: (nowMs: number): Job<number> => ({
      run: () =>
        Number(
          statement(
            `DELETE FROM idempotency_answers WHERE rowid IN
              (SELECT rowid FROM idempotency_answers WHERE expires_at_ms <= ? LIMIT ${FORGOTTEN_AT_ONCE})`,
          ).run(nowMs).changes,
        ),
    }),
  };
}

/** The same rows, with booleans as the numbers that SQLite keeps for them. */
function bindable(table: Table, rows: readonly JsonRow[]): SQLInputValue[][] {
  const booleanPositions = table.columns.flatMap(({ kind }, position) =>
    kind === 'boolean' ? [position] : [],
  );
  for (const row of rows) {
    if (row.length !== table.columns.length) {
      throw new Error(`a row for ${table.name} has ${row.length} values, not ${table.columns.length}`);
    }
    for (const position of booleanPositions) {
      const value = row[position];
      if (typeof value === 'boolean') row[position] = value ? 1 : 0;
    }
  }
  return rows as SQLInputValue[][];
}

/** Parameters: the fields in order, then the organisation. Not numbered: each binding would look up its number. */
function insertSql({ name, columns }: Table): string {
  const names = columns.map((column) => column.name);
  return `INSERT INTO ${quoted(name)} (${quotedList(names)}, "organisation")
    VALUES (${names.map(() => '?').join(', ')}, ?)`;
}

/** Changes a row only where it differs and the incoming one is not older. */
function mergeSql({ key, columns }: Table): string {
  const values = columns.filter(({ name }) => name !== key).map(({ name }) => quoted(name));
  const isNotOlder = values.includes('"updated"')
    ? '("updated" IS NULL OR excluded."updated" IS NULL OR excluded."updated" >= "updated") AND'
    : '';
  return `ON CONFLICT ("organisation", ${quoted(key)}) DO UPDATE
    SET ${values.map((column) => `${column} = excluded.${column}`).join(', ')}
    WHERE ${isNotOlder} (${values.map((column) => `${column} IS NOT excluded.${column}`).join(' OR ')})`;
}
