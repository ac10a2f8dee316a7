// Everything that changes the database, as jobs to be run inside the writer's transaction.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
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
import { recordTable, type Tables } from '../tables.ts';
import { type JsonRow, type PackedRows, packedSlices } from './packed-rows.ts';
import { keptAnswerSql, rememberedOf } from './remembered.ts';
import { createUpserts } from './upserts.ts';

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

/** Answers may be megabytes each. So few are dropped at once that other writes do not wait long. */
const FORGOTTEN_AT_ONCE = 200;
const FORGOTTEN_BYTES_AT_ONCE = 2 * 1024 * 1024;

export type WriteOperations = ReturnType<typeof createWriteOperations>;

export function createWriteOperations(database: DatabaseSync, tables: Tables) {
  const prepared = new Map<string, StatementSync>();
  const statement = (sql: string): StatementSync => {
    const known = prepared.get(sql) ?? database.prepare(sql);
    prepared.set(sql, known);
    return known;
  };
  const upserts = createUpserts(database);

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
      const upsertBatches = (): readonly Tally[] =>
        packedSlices(upload.rows).map((slices) =>
          sumOf(slices.map((slice) => upserts.slice(table, upload.organisation, slice))),
        );
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
      const rows = rowJson === null ? [] : [JSON.parse(rowJson) as JsonRow];
      const write = (): readonly Tally[] => rows.map((row) => upserts.row(table, organisation, row));
      return {
        run() {
          if (memory !== null || rows.length === 0) return unlessRemembered(memory, write);
          const [{ created, updated }] = write() as [Tally];
          return created === 1 ? 'created' : updated === 1 ? 'updated' : 'unchanged';
        },
      };
    },

    /** Drops some, the oldest first. Returns whether others may be left, so that the caller comes back for them. */
    forgetExpired: (nowMs: number): Job<boolean> => ({
      run() {
        const expired = statement(
          `SELECT rowid, length(answer) AS bytes FROM idempotency_answers
           WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${FORGOTTEN_AT_ONCE}`,
        ).all(nowMs);
        const forget = statement('DELETE FROM idempotency_answers WHERE rowid = ?');
        let bytes = 0;
        for (const [position, answer] of expired.entries()) {
          bytes += answer.bytes as number;
          if (position > 0 && bytes > FORGOTTEN_BYTES_AT_ONCE) return true;
          forget.run(answer.rowid!);
        }
        return expired.length === FORGOTTEN_AT_ONCE;
      },
    }),
  };
}

function sumOf(tallies: readonly Tally[]): Tally {
  const sum = { created: 0, updated: 0, unchanged: 0 };
  for (const { created, updated, unchanged } of tallies) {
    sum.created += created;
    sum.updated += updated;
    sum.unchanged += unchanged;
  }
  return sum;
}
