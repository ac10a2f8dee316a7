// The condition of a segment as it is written in JSON. The types let an editor complete fields, tests and measures.

import type { Field, Fields } from '@headgate/catalogue/declaration.ts';
import type { recordTypes, storedInteraction } from '@headgate/catalogue/record-types.ts';

export const MOST_NODES = 64;
export const MOST_DEPTH = 8;
export const MOST_LIST_VALUES = 1000;

export type Condition =
  | AllCondition
  | AnyCondition
  | NotCondition
  | CustomerCondition
  | DidCondition
  | SegmentCondition
  | SampleCondition;

/** Holds if every condition in the list holds. */
export interface AllCondition {
  readonly all: readonly Condition[];
}

/** Holds if at least one condition in the list holds. */
export interface AnyCondition {
  readonly any: readonly Condition[];
}

export interface NotCondition {
  readonly not: Condition;
}

/** Holds for the members of another segment. */
export interface SegmentCondition {
  readonly segment: string;
}

/** Holds for a share of all customers. The same percentage and salt always choose the same customers. */
export interface SampleCondition {
  readonly sample: { readonly percent: number; readonly salt: string };
}

/** A path along references to a field of another record, such as `shop.name`. */
export type ReferencePath = `${string}.${string}`;

/** Holds if a field of the customer, or of a record that the customer refers to, passes every given test. */
export type CustomerCondition =
  | {
      [Name in FieldName<CustomerFields>]: { readonly customer: Name } & FieldTests<CustomerFields[Name]>;
    }[FieldName<CustomerFields>]
  | ({ readonly customer: 'age' } & NumberTests)
  | ({ readonly customer: ReferencePath } & AnyTests);

/** Holds if what the customer did passes every given test. If no measure is given, once is enough. */
export type DidCondition = { [Type in EventType]: DidConditionOf<Type> }[EventType];

export type DidConditionOf<Type extends EventType> = {
  readonly did: Type;
  /** Only the rows that pass every test are counted. */
  readonly where?: Where<EventFields[Type]>;
} & Window &
  OneOrNone<Measures<EventFields[Type]>>;

type Where<F extends Fields> = { readonly [Name in FieldName<F>]?: FieldTests<F[Name]> } & {
  readonly [path: ReferencePath]: AnyTests;
};

/** `within` ends at the time of the evaluation. `since` is included, and `until` is excluded. */
type Window =
  | { readonly within?: Duration; readonly since?: never; readonly until?: never }
  | { readonly within?: never; readonly since?: Time; readonly until?: Time };

interface Measures<F extends Fields> {
  /** How many rows there are. */
  readonly times: CountTests;
  /** The sum of a number. It is 0 if there are no rows. */
  readonly sum: { readonly [Name in NumberFieldName<F> | ReferencePath]?: CountTests };
  /** The average of a number. Without a value, no test passes. */
  readonly average: { readonly [Name in NumberFieldName<F> | ReferencePath]?: CountTests };
  /** How many different values a field has. */
  readonly distinct: { readonly [Name in FieldName<F> | ReferencePath]?: CountTests };
  /** The time of the last row. Without a row that has a time, no test passes. */
  readonly last: TimeTests;
  /** The time of the first row. Without a row that has a time, no test passes. */
  readonly first: TimeTests;
}

type OneOrNone<M> =
  | { readonly [Name in keyof M]?: never }
  | {
      [Name in keyof M]: { readonly [Given in Name]: M[Given] } & {
        readonly [Other in Exclude<keyof M, Name>]?: never;
      };
    }[keyof M];

/** A number of hours, days or weeks, such as `12h`, `30d` or `4w`. A day always has 24 hours. */
export type Duration = `${number}${'h' | 'd' | 'w'}`;

/** A date, which means its beginning in UTC, a date-time, or a duration before the evaluation, such as `30d ago`. */
export type Time = string;

interface ExistsTest {
  /** Whether the field must have a value, or must have none. */
  readonly exists?: boolean;
}

interface EqualTests<Value> extends ExistsTest {
  readonly is?: Value;
  readonly in?: readonly Value[];
  /** Passes if the value is not in the list, or if there is none. */
  readonly not_in?: readonly Value[];
}

interface OrderTests<Value> {
  readonly at_least?: Value;
  readonly at_most?: Value;
  readonly above?: Value;
  readonly below?: Value;
}

export interface NumberTests extends EqualTests<number>, OrderTests<number> {}

/** The tests of a number that always exists, or that passes no test if it does not. */
export interface CountTests extends OrderTests<number> {
  readonly is?: number;
}

export interface TimeTests extends OrderTests<Time> {}

/** Dates and times are text as well, so all tests of text and of times are offered. */
interface TextTests extends EqualTests<string>, OrderTests<string> {
  readonly contains?: string;
}

interface BooleanTests extends ExistsTest {
  readonly is?: boolean;
}

type AnyTests = TextTests | NumberTests | BooleanTests;

type FieldTests<F> =
  F extends Field<infer K>
    ? [ReturnType<K['present']>] extends [number]
      ? NumberTests
      : [ReturnType<K['present']>] extends [boolean]
        ? BooleanTests
        : string extends ReturnType<K['present']>
          ? TextTests
          : EqualTests<ReturnType<K['present']>>
    : never;

/** Deleted records are never considered, and `occurred_at` replaces `event_timestamp`. */
type FieldName<F extends Fields> = Exclude<keyof F & string, 'is_deleted' | 'event_timestamp'>;

type NumberFieldName<F extends Fields> = {
  [Name in FieldName<F>]: [ReturnType<F[Name]['kind']['present']>] extends [number] ? Name : never;
}[FieldName<F>];

type CustomerFields = (typeof recordTypes)['customers']['fields'];

interface EventFields {
  transactions: (typeof recordTypes)['transactions']['fields'];
  interactions: typeof storedInteraction;
  'student-favourites': (typeof recordTypes)['student-favourites']['fields'];
}

/** What a customer can have done. */
export type EventType = keyof EventFields;
