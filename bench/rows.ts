// Converts records to rows in their stored form, and builds the plain upsert that writes a row to SQLite.

import type { SQLInputValue } from 'node:sqlite';
import { uploadTypes } from '@headgate/catalogue/record-types.ts';
import { checkFields, planOf } from '../server/ingest/check-fields.ts';
import type { Row } from '../server/store/rows.ts';
import { quoted, quotedList, type Table } from '../server/store/tables.ts';
import { type BenchRecord, type WorkloadName, workloads } from './workloads.ts';

/** The number of the only organisation in a new database. */
export const ORGANISATION = 1;

export function rowsOf(name: WorkloadName, records: readonly BenchRecord[]): Row[] {
  const plan = planOf(uploadTypes[workloads[name].type].fields);
  return records.map((record) => checkFields(plan, record, null).row);
}

export function upsertSql({ name, key, columns }: Table): string {
  const names = columns.map((column) => column.name);
  const values = names
    .filter((column) => column !== key)
    .map((column) => `${quoted(column)} = excluded.${quoted(column)}`);
  return `INSERT INTO ${quoted(name)} (${quotedList(names)}, "organisation")
    VALUES (${names.map(() => '?').join(', ')}, ${ORGANISATION})
    ON CONFLICT ("organisation", ${quoted(key)}) DO UPDATE SET ${values.join(', ')}`;
}

export function bindable(row: Row): SQLInputValue[] {
  return row.map((value) => (typeof value === 'boolean' ? Number(value) : value));
}
