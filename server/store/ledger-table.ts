// The tables of the ledger, which have the same columns in every store.

import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import {
  type EntryFilter,
  type LedgerEntry,
  type UploadEntry,
  type UploadStatus,
  type Usage,
  usageSums,
} from './ledger.ts';
import { ID_BYTES } from './packed-ids.ts';
import type { OrganisationNumber, Tally } from './rows.ts';

/** The columns of `ledger_entries` in the order in which `entryValues` returns their values. */
export const entryColumns = [
  'organisation',
  'seq',
  'request_id',
  'key_id',
  'type',
  'received_at_ms',
  'ms',
  'bytes',
  'received',
  'created',
  'updated',
  'unchanged',
  'rejected',
  'causes',
  'changed_ids',
] as const;

/** The columns that `entryOf` reads, without the organisation and the ids. */
export const readColumns = entryColumns.slice(1, -1);

/** The same columns without causes, which may be long, for lists. */
export const listColumns = readColumns.map((column) => (column === 'causes' ? 'NULL AS causes' : column));

type Value = string | number | null;

/** Returns the entry with its number, and with what is known once its rows are written. */
export function writtenEntry(
  entry: UploadEntry,
  type: UploadTypeName,
  seq: number,
  { created, updated }: Pick<Tally, 'created' | 'updated'>,
): LedgerEntry {
  const unchanged = entry.received - entry.rejected - created - updated;
  const ms = Math.max(0, Date.now() - entry.receivedAtMs);
  return { ...entry, seq, type, ms, created, updated, unchanged };
}

export function entryValues(organisation: number, entry: LedgerEntry): Value[] {
  const { seq, requestId, keyId, type, receivedAtMs, ms, bytes } = entry;
  const { received, created, updated, unchanged, rejected, causesJson } = entry;
  return [
    organisation,
    seq,
    requestId,
    keyId,
    type,
    receivedAtMs,
    ms,
    bytes,
    received,
    created,
    updated,
    unchanged,
    rejected,
    causesJson,
  ];
}

/** `values` are those of `readColumns`; numbers may be texts. */
export function entryOf(values: readonly unknown[]): LedgerEntry {
  const [seq, requestId, keyId, type, ...others] = values;
  const [receivedAtMs, ms, bytes, received, created, updated, unchanged, rejected] = others.map(Number);
  return {
    seq: Number(seq),
    requestId: requestId as string,
    keyId: keyId as string,
    type: type as UploadTypeName,
    receivedAtMs: receivedAtMs!,
    ms: ms!,
    bytes: bytes!,
    received: received!,
    created: created!,
    updated: updated!,
    unchanged: unchanged!,
    rejected: rejected!,
    causesJson: values.at(-1) as string | null,
  };
}

const statusSql: Readonly<Record<UploadStatus, string>> = {
  success: 'rejected = 0',
  partial: 'rejected > 0 AND rejected < received',
  error: 'rejected = received',
};

/** Returns the conditions of a filter. `given` returns the SQL of a parameter with the value. */
export function filterSql(filter: EntryFilter, given: (value: Value) => string): readonly string[] {
  const { types, own, status, keyId, fromMs, toMs } = filter;
  const isOf = (some: readonly string[]): string =>
    some.length === 0 ? 'false' : `type IN (${some.map(given).join(', ')})`;
  return [
    own === null ? isOf(types) : `(${isOf(types)} OR (key_id = ${given(own.keyId)} AND ${isOf(own.types)}))`,
    ...(status === null ? [] : [statusSql[status]]),
    ...(keyId === null ? [] : [`key_id = ${given(keyId)}`]),
    ...(fromMs === null ? [] : [`received_at_ms >= ${given(fromMs)}`]),
    ...(toMs === null ? [] : [`received_at_ms < ${given(toMs)}`]),
  ];
}

/**
 * After this many entries, they are added up in `usage_days`. So usage is read from one row per day, type and key, and
 * from the entries since the last complete group.
 */
export const USAGE_GROUP_ENTRIES = 1000;

const DAY_MS = 24 * 60 * 60 * 1000;

export const usageColumns = ['day', 'type', 'key_id', ...usageSums] as const;

const entrySums = usageSums.slice(1).map((column) => `sum(${column}) AS ${column}`);
/** Selects the organisation, and the `usageColumns`, of entries. */
const usageOfEntriesSql = `SELECT organisation, received_at_ms / ${DAY_MS} AS day, type, key_id, count(*) AS uploads,
  ${entrySums.join(', ')} FROM ledger_entries`;

/**
 * Returns the statement that adds the usage of entries to `usage_days`. Its parameters are the organisation, and the
 * numbers after which the entries begin and with which they end.
 */
export function addUsageSql([organisation, afterSeq, lastSeq]: readonly [string, string, string]): string {
  return `INSERT INTO usage_days (organisation, ${usageColumns.join(', ')})
    ${usageOfEntriesSql} WHERE organisation = ${organisation} AND seq > ${afterSeq} AND seq <= ${lastSeq}
      GROUP BY 1, 2, 3, 4
    ON CONFLICT (organisation, day, type, key_id) DO UPDATE SET
      ${usageSums.map((column) => `${column} = usage_days.${column} + excluded.${column}`).join(', ')}`;
}

/**
 * Returns the query for the usage of some days: what is added up in `usage_days`, and the entries since then. It is one
 * statement, so that entries that are being added up are neither missed nor counted twice. `given` returns the SQL of a
 * parameter with the value.
 */
export function usageSql(
  organisation: OrganisationNumber,
  firstDay: string,
  lastDay: string,
  given: (value: Value) => string,
): string {
  const columns = usageColumns.join(', ');
  const isInDays = (): string => `day BETWEEN ${given(dayNumber(firstDay))} AND ${given(dayNumber(lastDay))}`;
  return `SELECT ${columns} FROM usage_days WHERE organisation = ${given(organisation)} AND ${isInDays()}
    UNION ALL
    SELECT ${columns} FROM (
      ${usageOfEntriesSql} WHERE organisation = ${given(organisation)} AND seq >
        (SELECT last_seq - last_seq % ${USAGE_GROUP_ENTRIES} FROM ledgers WHERE organisation = ${given(organisation)})
      GROUP BY 1, 2, 3, 4) AS recent
    WHERE ${isInDays()}`;
}

/**
 * Returns the statements that complete a copied ledger: they delete what has expired in the source since an earlier copy,
 * and count the ids. `organisation` is the SQL of their parameter.
 */
export function afterCopySql(organisation: string): readonly string[] {
  const after = (bound: string): string =>
    `(SELECT ${bound} FROM ledgers WHERE organisation = ${organisation})`;
  const ofOrganisation = `FROM ledger_entries WHERE organisation = ${organisation}`;
  return [
    `DELETE ${ofOrganisation} AND seq <= ${after('entries_after_seq')}`,
    `UPDATE ledger_entries SET changed_ids = NULL
      WHERE organisation = ${organisation} AND seq <= ${after('ids_after_seq')} AND changed_ids IS NOT NULL`,
    `UPDATE ledgers SET kept_ids = (SELECT coalesce(sum(length(changed_ids)), 0) / ${ID_BYTES} ${ofOrganisation})
      WHERE organisation = ${organisation}`,
  ];
}

/** `values` are those of `usageColumns`; numbers may be texts. */
export function usageOf([day, type, keyId, ...sums]: readonly unknown[]): Usage {
  return {
    day: dayText(Number(day)),
    type: type as UploadTypeName,
    keyId: keyId as string,
    ...(Object.fromEntries(usageSums.map((name, at) => [name, Number(sums[at])])) as Pick<
      Usage,
      (typeof usageSums)[number]
    >),
  };
}

export function usageValues(usage: Usage): Value[] {
  return [dayNumber(usage.day), usage.type, usage.keyId, ...usageSums.map((name) => usage[name])];
}

function dayNumber(day: string): number {
  return Date.parse(day) / DAY_MS;
}

function dayText(number: number): string {
  return new Date(number * DAY_MS).toISOString().slice(0, 10);
}

/** Returns the sum of usages of the same day, type and key. */
export function addUp(usages: readonly Usage[]): readonly Usage[] {
  const sums = new Map<string, Usage>();
  for (const usage of usages) {
    const key = `${usage.day} ${usage.type} ${usage.keyId}`;
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, usage);
    else {
      const added = Object.fromEntries(usageSums.map((column) => [column, sum[column] + usage[column]]));
      sums.set(key, { ...sum, ...added });
    }
  }
  return [...sums.values()];
}
