// The functions and types with which record types are declared, and the types that are derived from a declaration.

import type { Kind } from './kinds/kind.ts';

/** What a field refers to: always the same record type, or one of `types`, depending on the value of the field `by`. */
export type Reference =
  | string
  | { readonly by: string; readonly types: { readonly [value: string]: string } };

export interface Field<
  K extends Kind = Kind,
  Required extends boolean = boolean,
  R extends Reference | undefined = Reference | undefined,
  Nullable extends boolean = boolean,
> {
  readonly kind: K;
  /** Whether the field must have a value in every uploaded record. It may still be null in older stored records. */
  readonly required: Required;
  /** Whether the field may be null in a stored record. */
  readonly nullable: Nullable;
  readonly references: R;
  readonly note: string;
  /** The value that is stored for an omitted optional field. */
  readonly omitted: boolean | null;
}

export type Fields = { readonly [name: string]: Field };

interface FieldOptions {
  readonly note?: string;
  readonly references?: Reference;
  readonly omitted?: boolean;
}

type ReferenceIn<O extends FieldOptions> = O extends { readonly references: infer R extends Reference }
  ? R
  : undefined;

export function required<K extends Kind, const O extends FieldOptions = object>(
  kind: K,
  options?: O,
): Field<K, true, ReferenceIn<O>, false> {
  return fieldOf(kind, true, false, options);
}

/**
 * Declares a field that became required after records were stored without it. In uploaded records it must have a value.
 * In older stored records it stays null.
 */
export function newlyRequired<K extends Kind, const O extends FieldOptions = object>(
  kind: K,
  options?: O,
): Field<K, true, ReferenceIn<O>, true> {
  return fieldOf(kind, true, true, options);
}

export function optional<K extends Kind, const O extends FieldOptions = object>(
  kind: K,
  options?: O,
): Field<K, false, ReferenceIn<O>, true> {
  return fieldOf(kind, false, true, options);
}

function fieldOf<K extends Kind, Required extends boolean, Nullable extends boolean, O extends FieldOptions>(
  kind: K,
  required: Required,
  nullable: Nullable,
  options: O | undefined,
): Field<K, Required, ReferenceIn<O>, Nullable> {
  return {
    kind,
    required,
    nullable,
    references: options?.references as ReferenceIn<O>,
    note: options?.note ?? '',
    omitted: options?.omitted ?? null,
  };
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

type ReferencedBy<R> = R extends string
  ? R
  : R extends { readonly types: infer T }
    ? T[keyof T] & string
    : never;

/** A union of sentences, one for every reference to a type that does not exist. It is `never` if all types exist. */
export type DanglingReference<C extends Catalogue, Types extends string = keyof C & string> = {
  [T in keyof C & string]: DanglingReferenceIn<C[T]['fields'], Types, T>;
}[keyof C & string];

export type DanglingReferenceIn<F extends Fields, Types extends string, Owner extends string> = {
  [N in keyof F & string]: Exclude<ReferencedBy<F[N]['references']>, Types> extends never
    ? never
    : `${Owner}.${N} references ${Exclude<ReferencedBy<F[N]['references']>, Types>}, which is no record type`;
}[keyof F & string];
