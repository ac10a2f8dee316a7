// Everything that only reads the database.

import {
  type ApiKey,
  type InteractionPage,
  type OrganisationNumber,
  type Store,
  StoreUnavailable,
} from '../store.ts';
import { quoted, recordTable, type Table, type Tables } from '../tables.ts';
import type { Sessions, Statement, TextRow } from './connections.ts';
import { recall } from './remembered.ts';
import { columnTypes, rowOf, selectedColumn } from './schema.ts';

type ReadOperations = Pick<
  Store,
  | 'organisations'
  | 'findKey'
  | 'keysOf'
  | 'existing'
  | 'recall'
  | 'record'
  | 'records'
  | 'interaction'
  | 'interactions'
  | 'count'
  | 'ping'
>;

const keySql = `SELECT key_id, organisation, org_id, secret_hash, api_keys.name, scopes,
    api_keys.created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, replaced_by
  FROM api_keys JOIN organisations USING (organisation)`;

// Names are compared byte by byte, as SQLite does, whatever collation the database has.
const organisationsSql =
  'SELECT organisation, org_id, name, created_at_ms FROM organisations ORDER BY name COLLATE "C"';

export function createReadOperations({ run }: Sessions, tables: Tables): ReadOperations {
  return {
    async organisations() {
      const rows = await run({ name: 'organisations', text: organisationsSql, values: [] });
      return rows.map((row) => {
        const [organisation, orgId, name, createdAtMs] = row as [string, string, string, string];
        return { organisation: Number(organisation), orgId, name, createdAtMs: Number(createdAtMs) };
      });
    },

    async findKey(keyId) {
      const text = `${keySql} WHERE key_id = $1`;
      const [row] = await run({ name: 'find key', text, values: [keyId] });
      return row === undefined ? null : apiKeyOf(row);
    },

    async keysOf(organisation) {
      const text = `${keySql} WHERE organisation = $1 ORDER BY api_keys.created_at_ms, key_id COLLATE "C"`;
      return (await run({ name: 'keys of', text, values: [organisation] })).map(apiKeyOf);
    },

    async existing(organisation, type, ids) {
      if (ids.length === 0) return new Set();
      const { name, key } = recordTable(tables, type);
      const rows = await run({
        name: `existing ${name}`,
        text: `SELECT ${quoted(key)} FROM ${quoted(name)}
          WHERE "organisation" = $1 AND ${quoted(key)} = ANY ($2::uuid[])`,
        values: [organisation, `{${ids.join(',')}}`],
      });
      return new Set(rows.map(([id]) => id!));
    },

    recall: (key, nowMs) => recall(run, key, nowMs),

    async record(organisation, type, id) {
      const table = recordTable(tables, type);
      const [row] = await run(byKey(table, organisation, id));
      return row === undefined ? null : rowOf(table, row);
    },

    async records(organisation, type, { afterId, limit, includeDeleted }) {
      const table = recordTable(tables, type);
      const key = quoted(table.key);
      const from = afterId === null ? 'first' : 'further';
      const rows = await run({
        name: `records ${table.name} ${from}${includeDeleted ? ' with deleted' : ''}`,
        text: `${selectSql(table)} ${includeDeleted ? '' : 'AND NOT "is_deleted"'}
          ${afterId === null ? '' : `AND ${key} > $3::uuid`} ORDER BY ${key} LIMIT $2`,
        values: afterId === null ? [organisation, limit] : [organisation, limit, afterId],
      });
      return rows.map((row) => rowOf(table, row));
    },

    async interaction(organisation, interactionId) {
      const [row] = await run(byKey(tables.interactions, organisation, interactionId));
      return row === undefined ? null : rowOf(tables.interactions, row);
    },

    async interactions(organisation, page) {
      const rows = await run(interactionsQuery(tables.interactions, organisation, page));
      return rows.map((row) => rowOf(tables.interactions, row));
    },

    async count(organisation, what) {
      const { name } = what === 'interactions' ? tables.interactions : recordTable(tables, what);
      const text = `SELECT count(*) FROM ${quoted(name)} WHERE "organisation" = $1`;
      const [row] = await run({ name: `count ${name}`, text, values: [organisation] });
      return Number(row![0]);
    },

    async ping() {
      const [row] = await run({
        name: 'ping',
        text: `SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'`,
        values: [],
      });
      const [isStandby, isReadOnly] = row!;
      if (isStandby === 't') throw new StoreUnavailable('PostgreSQL is a read-only standby at this moment');
      if (isReadOnly === 't') throw new StoreUnavailable('PostgreSQL is read-only at this moment');
    },
  };
}

/** Without a name: there are too many combinations of filters for each connection to keep a plan of each. */
export function interactionsQuery(
  table: Table,
  organisation: OrganisationNumber,
  { equal, from, to, before, limit }: InteractionPage,
): Statement {
  const conditions: string[] = [];
  const values: unknown[] = [organisation];
  const given = (value: unknown): string => `$${values.push(value)}`;
  for (const [field, value] of Object.entries(equal)) {
    const column = table.columns.find(({ name }) => name === field);
    if (column === undefined) throw new Error(`interactions have no field ${field} to filter by`);
    conditions.push(
      value === null
        ? `${quoted(field)} IS NULL`
        : `${quoted(field)} = ${given(value)}::${columnTypes[column.kind]}`,
    );
  }
  if (from !== null) conditions.push(`"occurred_at" >= ${given(from)}::timestamptz`);
  if (to !== null) conditions.push(`"occurred_at" < ${given(to)}::timestamptz`);
  if (before !== null) {
    const [moment, id] = [given(before.occurredAt), given(before.interactionId)];
    conditions.push(`("occurred_at", "interaction_id") < (${moment}::timestamptz, ${id}::uuid)`);
  }
  const text = `${selectSql(table)} ${conditions.map((condition) => `AND ${condition}`).join(' ')}
    ORDER BY "occurred_at" DESC, "interaction_id" DESC LIMIT ${given(limit)}`;
  return { text, values };
}

function byKey(table: Table, organisation: OrganisationNumber, id: string): Statement {
  return {
    name: `one of ${table.name}`,
    text: `${selectSql(table)} AND ${quoted(table.key)} = $2::uuid`,
    values: [organisation, id],
  };
}

function selectSql({ name, columns }: Table): string {
  return `SELECT ${columns.map(selectedColumn).join(', ')} FROM ${quoted(name)} WHERE "organisation" = $1`;
}

function apiKeyOf(row: TextRow): ApiKey {
  const [keyId, organisation, orgId, secretHash, name, scopes, createdAtMs, ...others] = row as [
    string,
    string,
    string,
    string,
    string | null,
    string,
    string,
    ...[string | null, string | null, string | null, string | null],
  ];
  const [expiresAt, revokedAt, lastUsedAt, replacedBy] = others;
  return {
    keyId,
    organisation: Number(organisation),
    orgId,
    secretHash,
    name,
    scopes: JSON.parse(scopes) as string[],
    createdAtMs: Number(createdAtMs),
    expiresAtMs: numberOrNull(expiresAt),
    revokedAtMs: numberOrNull(revokedAt),
    lastUsedAtMs: numberOrNull(lastUsedAt),
    replacedBy,
  };
}

function numberOrNull(text: string | null): number | null {
  return text === null ? null : Number(text);
}
