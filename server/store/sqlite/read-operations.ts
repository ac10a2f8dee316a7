// Everything that only reads the database. Rows are returned as JSON text, which crosses threads in a third of the time
// of a clone. Lists are read in steps of bounded cost, since nothing can interrupt a statement of SQLite.

import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import {
  type Bound,
  behind,
  interactionListing,
  type Listing,
  type Position,
  positionOf,
  recordListing,
  upTo,
} from '../listing.ts';
import { PageAccount, STEP_ENTRIES } from '../page-bounds.ts';
import type {
  ApiKey,
  InteractionPage,
  MemoryKey,
  Organisation,
  OrganisationNumber,
  RecordPage,
  Remembered,
  Row,
} from '../store.ts';
import { quoted, quotedList, recordTable, type Table, type Tables } from '../tables.ts';
import { keptAnswerSql, rememberedOf } from './remembered.ts';

const MOST_PREPARED_STATEMENTS = 500;

const keySql = `SELECT key_id, organisation, org_id, secret_hash, api_keys.name, scopes,
    api_keys.created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, replaced_by
  FROM api_keys JOIN organisations USING (organisation)`;

/** Entries of an index that are counted in one step; they are not even looked at. */
const COUNT_STEP_ENTRIES = 50_000;

/** A page on its way to another thread. */
export interface PackedPage {
  readonly rowsJson: string;
  readonly next: Position | null;
}

/** Yields after each step, so that others have their turn; returns the result. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

export type LookUps = ReturnType<typeof createLookUps>;
export type Lists = ReturnType<typeof createLists>;

type Prepare = (sql: string) => StatementSync;

function preparer(database: DatabaseSync): Prepare {
  const prepared = new Map<string, StatementSync>();
  return (sql) => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    if (prepared.size >= MOST_PREPARED_STATEMENTS) prepared.clear();
    const fresh = database.prepare(sql);
    prepared.set(sql, fresh);
    return fresh;
  };
}

/** Short reads of single rows. */
export function createLookUps(database: DatabaseSync, tables: Tables) {
  const statement = preparer(database);

  /** No row or one. */
  const rowByKey = (table: Table, organisation: OrganisationNumber, id: string): string => {
    const sql = `SELECT ${columnNames(table)} FROM ${quoted(table.name)}
      WHERE "organisation" = ? AND ${quoted(table.key)} = ?`;
    const select = statement(sql);
    select.setReturnArrays(true);
    const rows = select.all(organisation, id) as unknown as SQLOutputValue[][];
    return JSON.stringify(rows.map((row) => rowOf(table, row)));
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

    existing(
      organisation: OrganisationNumber,
      type: RecordTypeName,
      ids: readonly string[],
    ): ReadonlySet<string> {
      const { name, key } = recordTable(tables, type);
      const find = statement(`SELECT 1 FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} = ?`);
      return new Set(ids.filter((id) => find.get(organisation, id) !== undefined));
    },

    recall({ organisation, path, key }: MemoryKey, nowMs: number): Remembered | null {
      return rememberedOf(statement(keptAnswerSql).get(organisation, path, key, nowMs));
    },

    record: (organisation: OrganisationNumber, type: RecordTypeName, id: string): string =>
      rowByKey(recordTable(tables, type), organisation, id),

    interaction: (organisation: OrganisationNumber, interactionId: string): string =>
      rowByKey(tables.interactions, organisation, interactionId),
  };
}

/** Reads that may go through many rows, in steps. */
export function createLists(database: DatabaseSync, tables: Tables) {
  const statement = preparer(database);

  function* pageOf(organisation: OrganisationNumber, whole: Listing, limit: number): Steps<PackedPage> {
    const account = new PageAccount(limit);
    const rowsJson: string[] = [];
    const pageUntil = (next: Position | null): PackedPage => ({ rowsJson: `[${rowsJson.join(',')}]`, next });
    let rest = whole;
    let last: Row | null = null;
    for (;;) {
      account.beginStep();
      const stepEnd = whole.inRow.length === 0 ? null : endOfStep(statement, organisation, rest);
      const step = stepEnd === null ? rest : upTo(rest, stepEnd);
      const { sql, parameters } = rowsQuery(organisation, step, account.roomRows + 1);
      const select = statement(sql);
      select.setReturnArrays(true);
      for (const values of select.iterate(...parameters) as unknown as Iterable<SQLOutputValue[]>) {
        const row = rowOf(whole.table, values);
        const json = JSON.stringify(row);
        if (!account.take(json)) return pageUntil(positionOf(whole, last!));
        rowsJson.push(json);
        last = row;
      }
      if (stepEnd === null) return pageUntil(null);
      if (!account.endStep()) return pageUntil(stepEnd);
      rest = behind(whole, stepEnd);
      yield;
    }
  }

  return {
    records: (organisation: OrganisationNumber, type: RecordTypeName, page: RecordPage): Steps<PackedPage> =>
      pageOf(organisation, recordListing(recordTable(tables, type), page), page.limit),

    interactions: (organisation: OrganisationNumber, page: InteractionPage): Steps<PackedPage> =>
      pageOf(organisation, interactionListing(tables.interactions, page), page.limit),

    *count(organisation: OrganisationNumber, what: RecordTypeName | 'interactions'): Steps<number> {
      const { name, key } = what === 'interactions' ? tables.interactions : recordTable(tables, what);
      const skip = statement(
        `SELECT ${quoted(key)} FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} > ?
          ORDER BY ${quoted(key)} LIMIT 1 OFFSET ${COUNT_STEP_ENTRIES - 1}`,
      );
      const countRest = statement(
        `SELECT count(*) AS entries FROM ${quoted(name)} WHERE "organisation" = ? AND ${quoted(key)} > ?`,
      );
      let entries = 0;
      for (let after = ''; ; ) {
        const end = skip.get(organisation, after);
        if (end === undefined) return entries + Number(countRest.get(organisation, after)!.entries);
        entries += COUNT_STEP_ENTRIES;
        after = end[key] as string;
        yield;
      }
    },
  };
}

/** The last position of the next step; null if no more entries are left than a step looks at. */
function endOfStep(statement: Prepare, organisation: OrganisationNumber, listing: Listing): Position | null {
  const { sql, parameters } = stepEndQuery(organisation, listing);
  const row = statement(sql).get(...parameters);
  return row === undefined ? null : listing.order.map((column) => row[column] as string);
}

export interface Query {
  readonly sql: string;
  readonly parameters: readonly SQLInputValue[];
}

/** Looks at nothing but the index. */
export function stepEndQuery(organisation: OrganisationNumber, listing: Listing): Query {
  const { sql, parameters } = selection(quotedList(listing.order), organisation, { ...listing, inRow: [] });
  return { sql: `${sql} LIMIT 1 OFFSET ${STEP_ENTRIES}`, parameters };
}

export function rowsQuery(organisation: OrganisationNumber, listing: Listing, limit: number): Query {
  const { sql, parameters } = selection(columnNames(listing.table), organisation, listing);
  return { sql: `${sql} LIMIT ?`, parameters: [...parameters, limit] };
}

function selection(selected: string, organisation: OrganisationNumber, listing: Listing): Query {
  const { table, index, order, isDescending, inIndex, inRow, begin, end } = listing;
  const conditions = ['"organisation" = ?'];
  const parameters: SQLInputValue[] = [organisation];
  for (const [field, value] of [...inIndex, ...inRow]) {
    // `=` rather than `IS`, because only `=` tells SQLite that an index of non-null values will do.
    conditions.push(value === null ? `${quoted(field)} IS NULL` : `${quoted(field)} = ?`);
    if (value !== null) parameters.push(typeof value === 'boolean' ? Number(value) : value);
  }
  for (const bound of [begin, end]) {
    if (bound === null) continue;
    conditions.push(boundSql(bound));
    parameters.push(...bound.values);
  }
  // Named, because another index would have other entries between the bounds, and perhaps many more.
  const source = `${quoted(table.name)}${index === null ? '' : ` INDEXED BY ${quoted(index.name)}`}`;
  const ordered = order.map((column) => `${quoted(column)} ${isDescending ? 'DESC' : 'ASC'}`);
  return {
    sql: `SELECT ${selected} FROM ${source} WHERE ${conditions.join(' AND ')} ORDER BY ${ordered.join(', ')}`,
    parameters,
  };
}

function boundSql({ columns, test, values }: Bound): string {
  return `(${quotedList(columns)}) ${test} (${values.map(() => '?').join(', ')})`;
}

function columnNames({ columns }: Table): string {
  return quotedList(columns.map(({ name }) => name));
}

/** The row as the port has it: SQLite keeps booleans as numbers. */
function rowOf({ columns }: Table, values: readonly SQLOutputValue[]): Row {
  return columns.map(({ kind }, position): ColumnValue => {
    const value = values[position] as string | number | null;
    return kind === 'boolean' && value !== null ? value === 1 : value;
  });
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
