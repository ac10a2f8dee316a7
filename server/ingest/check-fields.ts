// Checks one object against the declared fields of a record type or of the interaction, and converts its values into
// the form in which they are stored. Reports all problems of the object up to a limit, not just the first.

import type { Fields, Reference } from '@headgate/catalogue/declaration.ts';
import { type ColumnValue, Flaw, type Kind, shortened, typeNameOf } from '@headgate/catalogue/kinds/kind.ts';
import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import { nearName } from '../near-name.ts';

/** How fields that the type does not have are handled: `strict` rejects the record, `lenient` removes the fields. */
export type Handling = 'strict' | 'lenient';

export interface FieldProblem {
  readonly field: string | null;
  readonly code: ProblemCode;
  readonly message: string;
}

interface PlannedField {
  readonly name: string;
  readonly kind: Kind;
  readonly required: boolean;
  readonly omitted: boolean | null;
}

export interface PlannedReference {
  readonly field: string;
  readonly column: number;
  /** Returns the type that a row refers to, or undefined if the field that names the type is itself invalid. */
  targetOf(row: readonly ColumnValue[]): RecordTypeName | undefined;
}

/** The declared fields in a form that is fast to check, with indexes into arrays instead of lookups by name. */
export interface FieldPlan {
  readonly fields: readonly PlannedField[];
  readonly columnOf: ReadonlyMap<string, number>;
  readonly references: readonly PlannedReference[];
  /** Fields that the same object may have only in an upload of interactions. */
  readonly onlyInUploads: ReadonlySet<string>;
  /** Caches the suggested field for each unknown name, because the same unknown names occur again and again. */
  readonly suggestions: Map<string, string | null>;
}

/** The result of checking an object. `problems` is null if the object is valid. Invalid fields are null in `row`. */
export interface Checked {
  readonly row: ColumnValue[];
  /** At least one and at most 20 problems if the object is invalid. */
  problems: FieldProblem[] | null;
  readonly room: ProblemRoom;
  /** The number of problems that `problems` does not list. */
  omittedProblems: number;
}

/** How many more problems may be listed. The first problem of each object is always listed and does not count. */
export interface ProblemRoom {
  further: number;
}

/** Counts the unknown fields that lenient handling removes from the records of a batch. */
export class DroppedFields {
  /** How often each name occurred. */
  readonly named = new Map<string, number>();
  /** How often all other names occurred, counted together, because a hostile body can have very many. */
  others = 0;

  add(name: string): void {
    const count = this.named.get(name);
    if (count === undefined && this.named.size === MOST_NAMED_FIELDS) this.others++;
    else this.named.set(name, (count ?? 0) + 1);
  }
}

const MOST_NAMED_FIELDS = 100;
const MOST_PROBLEMS_PER_OBJECT = 20;
/** The cached names stay in memory, so their number and length are limited. */
const MOST_SUGGESTIONS = 1000;
const LONGEST_REMEMBERED_NAME_CHARACTERS = 64;

export function planOf(fields: Fields, onlyInUploads: Fields = {}): FieldPlan {
  const entries = Object.entries(fields);
  const columnOf = new Map(entries.map(([name], column) => [name, column]));
  return {
    fields: entries.map(([name, { kind, required, omitted }]) => ({ name, kind, required, omitted })),
    columnOf,
    references: entries.flatMap(([field, { references }], column) =>
      references === undefined ? [] : [{ field, column, targetOf: targetOf(references, columnOf) }],
    ),
    onlyInUploads: new Set(Object.keys(onlyInUploads)),
    suggestions: new Map(),
  };
}

function targetOf(
  reference: Reference,
  columnOf: ReadonlyMap<string, number>,
): (row: readonly ColumnValue[]) => RecordTypeName | undefined {
  if (typeof reference === 'string') return () => reference as RecordTypeName;
  const column = columnOf.get(reference.by)!;
  return (row) => reference.types[String(row[column])] as RecordTypeName | undefined;
}

/** Checks an object. If `dropped` is null, unknown fields are problems. Otherwise they are counted in `dropped`. */
export function checkFields(
  plan: FieldPlan,
  value: unknown,
  dropped: DroppedFields | null,
  room: ProblemRoom = { further: MOST_PROBLEMS_PER_OBJECT },
): Checked {
  const { fields } = plan;
  const row = new Array<ColumnValue>(fields.length);
  const checked: Checked = { row, problems: null, room, omittedProblems: 0 };
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    report(checked, null, 'not_an_object', `must be an object of fields, not ${typeNameOf(value)}`);
    return checked;
  }
  const object = value as Record<string, unknown>;
  let seen = 0;
  for (let column = 0; column < fields.length; column++) {
    const field = fields[column]!;
    const given = object[field.name];
    if (given !== undefined) seen++;
    if (given === undefined || given === null) {
      row[column] = field.omitted;
      if (field.required) report(checked, field.name, 'required', 'is required');
      continue;
    }
    const kept = field.kind.check(given, field.required);
    if (kept instanceof Flaw) {
      row[column] = null;
      report(checked, field.name, kept.code, kept.message);
    } else {
      row[column] = kept;
    }
  }
  const names = Object.keys(object);
  if (names.length !== seen) handleUnknown(plan, names, checked, dropped);
  return checked;
}

function handleUnknown(
  plan: FieldPlan,
  names: readonly string[],
  checked: Checked,
  dropped: DroppedFields | null,
): void {
  for (const name of names) {
    if (plan.columnOf.has(name)) continue;
    if (dropped === null && isFull(checked)) {
      checked.omittedProblems++;
      continue;
    }
    const shown = shortened(name);
    if (dropped !== null) {
      dropped.add(shown);
    } else {
      report(checked, shown, 'unknown_field', `is not a field of this type${hintFor(plan, name)}`);
    }
  }
}

function hintFor(plan: FieldPlan, name: string): string {
  if (plan.onlyInUploads.has(name)) return '; only POST /v1/data/interactions takes it';
  const suggestion = suggestedField(plan, name);
  return suggestion === null ? '' : `; did you mean ${suggestion}?`;
}

function suggestedField({ suggestions, columnOf }: FieldPlan, name: string): string | null {
  if (name.length > LONGEST_REMEMBERED_NAME_CHARACTERS) return nearName(name, columnOf.keys());
  const known = suggestions.get(name);
  if (known !== undefined) return known;
  const near = nearName(name, columnOf.keys());
  if (suggestions.size >= MOST_SUGGESTIONS) suggestions.clear();
  suggestions.set(name, near);
  return near;
}

export function report(checked: Checked, field: string | null, code: ProblemCode, message: string): void {
  if (isFull(checked)) {
    checked.omittedProblems++;
    return;
  }
  if (checked.problems !== null) checked.room.further--;
  checked.problems ??= [];
  checked.problems.push({ field, code, message: field === null ? message : `${field} ${message}` });
}

function isFull({ problems, room }: Checked): boolean {
  return problems !== null && (problems.length >= MOST_PROBLEMS_PER_OBJECT || room.further === 0);
}
