// Everything that only reads the database. Pages of rows are answered as JSON text, which crosses threads
// in a third of the time of a clone.

import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type {
  ApiKey,
  InteractionPage,
  MemoryKey,
  Organisation,
  OrganisationNumber,
  RecordPage,
  Remembered,
} from '../store.ts';
import { quoted, quotedList, recordTable, type Table, type Tables } from '../tables.ts';
import { keptAnswerSql, rememberedOf } from './remembered.ts';

const MOST_PREPARED_STATEMENTS = 500;

const keySql = `SELECT key_id, organisation, org_id, secret_hash, api_keys.name, scopes,
    api_keys.created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, replaced_by
  FROM api_keys JOIN organisations USING (organisation)`;

export type ReadOperations = ReturnType<typeof createReadOperations>;

export function createReadOperations(database: DatabaseSync, tables: Tables) {
  const prepared = new Map<string, StatementSync>();
  const statement = (sql: string): StatementSync => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    if (prepared.size >= MOST_PREPARED_STATEMENTS) prepared.clear();
    const fresh = database.prepare(sql);
    prepared.set(sql, fresh);
    return fresh;
  };

  const rowsJson = (table: Table, sql: string, parameters: readonly SQLInputValue[]): string => {
    const select = statement(sql);
    select.setReturnArrays(true);
    const rows = select.all(...parameters) as unknown as (SQLOutputValue | boolean)[][];
    table.columns.forEach(({ kind }, position) => {
      if (kind !== 'boolean') return;
      for (const row of rows) if (row[position] !== null) row[position] = row[position] === 1;
    });
    return JSON.stringify(rows);
  };

  return {
    organisations(): readonly Organisation[] {
      return statement('SELECT organisation, org_id, name, created_at_ms FROM organisations ORDER BY name')
        .all()
        .map((row) => ({
          organisation: row.organisation as number,
          orgId: row.org_id as string,
          name: row.name as string,
          createdAtMs: row.created_at_ms as number,
        }));
    },

    findKey(keyId: string): ApiKey | null {
      const row = statement(`${keySql} WHERE key_id = ?`).get(keyId);
      return row === undefined ? null : apiKeyOf(row);
    },

    keysOf(organisation: OrganisationNumber): readonly ApiKey[] {
      return statement(`${keySql} WHERE organisation = ? ORDER BY api_keys.created_at_ms, key_id`)
        .all(organisation)
        .map(apiKeyOf);
    },

    /** One character per id, `1` for one that exists. */
    existing(organisation: OrganisationNumber, type: RecordTypeName, idsJson: string): string {
      const { name, key } = recordTable(tables, type);
      const find = statement(`SELECT 1 FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} = ?`);
      let marks = '';
      for (const id of JSON.parse(idsJson) as string[]) {
        marks += find.get(organisation, id) === undefined ? '0' : '1';
      }
      return marks;
    },

    recall({ organisation, path, key }: MemoryKey, nowMs: number): Remembered | null {
      return rememberedOf(statement(keptAnswerSql).get(organisation, path, key, nowMs));
    },

    /** No row or one. */
    record(organisation: OrganisationNumber, type: RecordTypeName, id: string): string {
      const table = recordTable(tables, type);
      return rowsJson(table, `${selectSql(table)} AND ${quoted(table.key)} = ?`, [organisation, id]);
    },

    records(organisation: OrganisationNumber, type: RecordTypeName, page: RecordPage): string {
      const table = recordTable(tables, type);
      const key = quoted(table.key);
      const sql = `${selectSql(table)} AND ${key} > ?
        ${page.includeDeleted ? '' : 'AND "is_deleted" = 0'} ORDER BY ${key} LIMIT ?`;
      return rowsJson(table, sql, [organisation, page.afterId ?? '', page.limit]);
    },

    /** No row or one. */
    interaction(organisation: OrganisationNumber, interactionId: string): string {
      const table = tables.interactions;
      return rowsJson(table, `${selectSql(table)} AND "interaction_id" = ?`, [organisation, interactionId]);
    },

    interactions(organisation: OrganisationNumber, page: InteractionPage): string {
      const { sql, parameters } = interactionsQuery(tables.interactions, organisation, page);
      return rowsJson(tables.interactions, sql, parameters);
    },

    count(organisation: OrganisationNumber, what: RecordTypeName | 'interactions'): number {
      const { name } = what === 'interactions' ? tables.interactions : recordTable(tables, what);
      const sql = `SELECT count(*) AS rows FROM ${quoted(name)} WHERE "organisation" = ?`;
      return Number(statement(sql).get(organisation)!.rows);
    },
  };
}

export interface Query {
  readonly sql: string;
  readonly parameters: readonly SQLInputValue[];
}

export function interactionsQuery(
  table: Table,
  organisation: OrganisationNumber,
  { equal, from, to, before, limit }: InteractionPage,
): Query {
  const conditions: string[] = [];
  const parameters: SQLInputValue[] = [organisation];
  const require = (condition: string, ...values: SQLInputValue[]): void => {
    conditions.push(`AND ${condition}`);
    parameters.push(...values);
  };
  for (const [field, value] of Object.entries(equal)) {
    const column = table.columns.find(({ name }) => name === field);
    if (column === undefined) throw new Error(`interactions have no field ${field} to filter by`);
    // `=` rather than `IS`, because only `=` tells SQLite that an index of non-null values will do.
    if (value === null) require(`${quoted(field)} IS NULL`);
    else require(`${quoted(field)} = ?`, typeof value === 'boolean' ? Number(value) : value);
  }
  if (from !== null) require('"occurred_at" >= ?', from);
  if (to !== null) require('"occurred_at" < ?', to);
  if (before !== null) {
    require('("occurred_at", "interaction_id") < (?, ?)', before.occurredAt, before.interactionId);
  }
  const sql = `${selectSql(table)} ${conditions.join(' ')}
    ORDER BY "occurred_at" DESC, "interaction_id" DESC LIMIT ?`;
  return { sql, parameters: [...parameters, limit] };
}

function selectSql({ name, columns }: Table): string {
  const names = columns.map((column) => column.name);
  return `SELECT ${quotedList(names)} FROM ${quoted(name)} WHERE "organisation" = ?`;
}

function apiKeyOf(row: Record<string, SQLOutputValue>): ApiKey {
  return {
    keyId: row.key_id as string,
    organisation: row.organisation as number,
    orgId: row.org_id as string,
    secretHash: row.secret_hash as string,
    name: row.name as string | null,
    scopes: JSON.parse(row.scopes as string) as string[],
    createdAtMs: row.created_at_ms as number,
    expiresAtMs: row.expires_at_ms as number | null,
    revokedAtMs: row.revoked_at_ms as number | null,
    lastUsedAtMs: row.last_used_at_ms as number | null,
    replacedBy: row.replaced_by as string | null,
  };
}
