// A kind is what a field's value may be: how it is checked, how it is kept, how it is shown.
// One file per kind; a store maps each kind's name to a column type of its own.

import type { ProblemCode } from '../problem-codes.ts';

/** A value in the form in which a store keeps it. */
export type ColumnValue = string | number | boolean | null;

export type JsonSchema = { readonly [keyword: string]: unknown };

export type KindName =
  | 'uuid'
  | 'date-time'
  | 'date'
  | 'region'
  | 'text'
  | 'number'
  | 'boolean'
  | 'choice'
  | 'event-timestamp';

/** Why a value was not accepted. Returned, never thrown: bad input is normal input. */
export class Flaw {
  readonly code: ProblemCode;
  readonly message: string;
  constructor(code: ProblemCode, message: string) {
    this.code = code;
    this.message = message;
  }
}

export interface Kind<Wire extends string | number | boolean = string | number | boolean> {
  readonly name: KindName;
  /** What is accepted, in the words of the docs and of error messages: "must be …". */
  readonly accepts: string;
  readonly schema: JsonSchema;
  /** The value as the store keeps it, or the flaw. Never sees null or undefined. */
  check(value: unknown, required: boolean): ColumnValue | Flaw;
  /** The kept value as an answer shows it. */
  present(kept: string | number | boolean): Wire;
}

const QUOTE_LIMIT_CHARACTERS = 100;

/** What a message quotes from the input: cut, and never recursing into a value of any depth. */
export function quote(value: unknown): string {
  if (typeof value === 'string') {
    let shown = value.slice(0, QUOTE_LIMIT_CHARACTERS);
    // Escapes count as they are shown: a text of control characters grows sixfold.
    while (JSON.stringify(shown).length > QUOTE_LIMIT_CHARACTERS + 2) shown = shown.slice(0, -1);
    const quoted = JSON.stringify(shown.toWellFormed());
    return shown === value ? quoted : `${quoted.slice(0, -1)}…"`;
  }
  return typeof value === 'number' ? String(value) : typeNameOf(value);
}

export function typeNameOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'boolean') return String(value);
  return `a ${typeof value}`;
}

export function wrongType(expected: string, value: unknown): Flaw {
  return new Flaw('wrong_type', `must be ${expected}, not ${typeNameOf(value)}`);
}
