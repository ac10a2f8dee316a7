// The functions and types with which record types are declared, and the types that are derived from a declaration.

import type { Kind } from './kinds/kind.ts';

/** What a field refers to: always the same record type, or one of `types`, depending on the value of the field `by`. */
export type Reference =
  | string
  | { readonly by: string; readonly types: { readonly [value: string]: string } };

export interface Field<
  K extends Kind = Kind,
  Required extends boolean = boolean,
  Nullable extends boolean = boolean,
> {
  readonly kind: K;
  /** Whether the field must have a value in every uploaded record. It may still be null in older stored records. */
  readonly required: Required;
  /** Whether the field may be null in a stored record. */
  readonly nullable: Nullable;
  readonly references: Reference | undefined;
  readonly note: string;
  /** The value that is stored for an omitted optional field. */
  readonly omitted: boolean | null;
}

export type Fields = { readonly [name: string]: Field };

type FieldOptions = Partial<Pick<Field, 'references' | 'note' | 'omitted'>>;
const noOptions = { references: undefined, note: '', omitted: null };

export function required<K extends Kind>(kind: K, options?: FieldOptions): Field<K, true, false> {
  return { kind, required: true, nullable: false, ...noOptions, ...options };
}

/**
 * Declares a field that became required after records were stored without it. In uploaded records it must have a value.
 * In older stored records it stays null.
 */
export function newlyRequired<K extends Kind>(kind: K, options?: FieldOptions): Field<K, true, true> {
  return { kind, required: true, nullable: true, ...noOptions, ...options };
}

export function optional<K extends Kind>(kind: K, options?: FieldOptions): Field<K, false, true> {
  return { kind, required: false, nullable: true, ...noOptions, ...options };
}

export interface RecordType<F extends Fields = Fields> {
  /** The name of one record, for headings and messages, such as "Shop". */
  readonly title: string;
  /** The field that identifies a record within its organisation. */
  readonly key: string;
  readonly fields: F;
}

export function recordType<const F extends Fields>(
  title: string,
  key: keyof F & string,
  fields: F,
): RecordType<F> {
  return { title, key, fields };
}

export type Catalogue = { readonly [type: string]: RecordType };

type WireOf<F extends Field> = ReturnType<F['kind']['present']>;

/** A record as a client sends it: optional fields may be null or omitted. */
export type Sent<F extends Fields> = {
  [N in keyof F as F[N]['required'] extends true ? N : never]: WireOf<F[N]>;
} & { [N in keyof F as F[N]['required'] extends true ? never : N]?: WireOf<F[N]> | null };

/** A record as the server returns it, with every field. */
export type Shown<F extends Fields> = {
  [N in keyof F]: F[N]['nullable'] extends false ? WireOf<F[N]> : WireOf<F[N]> | null;
};
