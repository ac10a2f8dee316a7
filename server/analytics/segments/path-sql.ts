// Writes the SQL that follows a path from a row to the values of a field.

import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import { quoted } from '../../store/tables.ts';
import { recordTables } from '../replica-tables.ts';
import { type FieldPath, fieldsOf, type Step } from './field-paths.ts';

/** Returns `AND` and the condition that the row is not deleted, or nothing if the type has no deleted rows. */
export function andIsLive(type: UploadTypeName, alias: string): string {
  return Object.hasOwn(fieldsOf(type), 'is_deleted') ? ` AND ${alias}.is_deleted IS NOT TRUE` : '';
}

export function tableNameOf(type: UploadTypeName): string {
  return quoted(recordTables.get(type)!.name);
}

/** Returns DuckDB's type of the values to which a path leads. */
export function columnTypeOf({ from, steps, field }: FieldPath): string {
  const { columns } = recordTables.get(steps.at(-1)?.to ?? from)!;
  return columns.find(({ name }) => name === field)!.type;
}

/**
 * Returns SQL for whether the row refers to a value that passes the test. `test` gets the column with the value. The
 * result is null or false if there is no such value. Subqueries are used instead of joins, because DuckDB runs them as
 * semi joins, and a row is never counted twice.
 */
export function somePassesSql(
  path: FieldPath,
  alias: string,
  test: (column: string) => string,
  from = 0,
): string {
  const step = path.steps[from];
  if (step === undefined) return test(`${alias}.${quoted(path.field)}`);
  const inner = `${alias}_${from}`;
  const rest = somePassesSql(path, inner, test, from + 1);
  const keys = `SELECT ${inner}.${quoted(step.toField)} FROM ${tableNameOf(step.to)} ${inner}`;
  const isIn = `${alias}.${quoted(step.field)} IN (${keys} WHERE ${rest}${andIsLive(step.to, inner)})`;
  return step.onlyIf === null ? isIn : `(${onlyIfSql(step.onlyIf, alias)} AND ${isIn})`;
}

/** Returns joins along the path, and the column with the value. A row is repeated if it has several values. */
export function valueJoins(
  path: FieldPath,
  alias: string,
): { readonly joins: string; readonly column: string } {
  let current = alias;
  let joins = '';
  for (const [index, step] of path.steps.entries()) {
    const next = `${alias}_${index}`;
    const isSame = `${next}.${quoted(step.toField)} = ${current}.${quoted(step.field)}`;
    const onlyIf = step.onlyIf === null ? '' : ` AND ${onlyIfSql(step.onlyIf, current)}`;
    joins += ` LEFT JOIN ${tableNameOf(step.to)} ${next} ON ${isSame}${onlyIf}${andIsLive(step.to, next)}`;
    current = next;
  }
  return { joins, column: `${current}.${quoted(path.field)}` };
}

/** The value is one of the catalogue, not of a condition. */
function onlyIfSql({ field, value }: NonNullable<Step['onlyIf']>, alias: string): string {
  return `${alias}.${quoted(field)} = '${value}'`;
}
