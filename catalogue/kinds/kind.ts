// A kind defines how the values of a field are checked, stored and returned. Each kind has its own file. Each store
// maps the names of the kinds to the column types of its database.

import type { ProblemCode } from '../problem-codes.ts';

/** A value in its stored form. */
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

/** Why a value is not valid. A Flaw is returned instead of thrown, because invalid input is normal. */
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
  /** The accepted values in words, for the docs and for error messages: "must be …". */
  readonly accepts: string;
  readonly schema: JsonSchema;
  /** Returns the value in its stored form, or a Flaw if the value is not valid. Not called for null and undefined. */
  check(value: unknown, required: boolean): ColumnValue | Flaw;
  /** Converts a stored value to the form in which it is returned to clients. */
  present(kept: string | number | boolean): Wire;
}

/** The limit applies to the escaped text, because an escaped control character is six times as long. */
const SHOWN_CHARACTERS = 100;
/** Matches everything except an escape that is cut off at the end. */
const wholeEscapes = /^(?:[^\\]|\\u.{4}|\\[^u])*/;

/** Returns a short quote of the value for a message. For an object or array, which may be large, returns its type. */
export function quote(value: unknown): string {
  if (typeof value !== 'string') return typeof value === 'number' ? String(value) : typeNameOf(value);
  const { escaped, isCut } = beginningOf(value);
  return isCut ? `"${escaped}…"` : `"${escaped}"`;
}

/** Returns the beginning of a text, short enough for a message. */
export function shortened(text: string): string {
  const { escaped, isCut } = beginningOf(text);
  return isCut ? (JSON.parse(`"${escaped}"`) as string) : text.toWellFormed();
}

function beginningOf(text: string): { readonly escaped: string; readonly isCut: boolean } {
  const escaped = JSON.stringify(text.slice(0, SHOWN_CHARACTERS).toWellFormed()).slice(1, -1);
  if (escaped.length <= SHOWN_CHARACTERS) return { escaped, isCut: text.length > SHOWN_CHARACTERS };
  const [whole] = wholeEscapes.exec(escaped.slice(0, SHOWN_CHARACTERS))!;
  return { escaped: whole.toWellFormed(), isCut: true };
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
