// The condition of a segment as it is written in JSON. The types let an editor complete fields, tests and measures.

import type { ConditionFields } from './condition-fields.ts';

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

type CustomerFields = ConditionFields['customers'];

/** Holds if a field of the customer, or of a record that the customer refers to, passes every given test. */
export type CustomerCondition = {
  [Name in keyof CustomerFields]: { readonly customer: Name } & FieldTests<CustomerFields[Name]>;
}[keyof CustomerFields];

/** What a customer can have done. */
export type EventType = Exclude<keyof ConditionFields, 'customers'>;

/** Holds if what the customer did passes every given test. If no measure is given, once is enough. */
export type DidCondition = { [Type in EventType]: DidConditionOf<Type> }[EventType];

export type DidConditionOf<Type extends EventType> = {
  readonly did: Type;
  /** Only the rows that pass every test are considered. A path such as `shop.tag` leads to other records. */
  readonly where?: {
    readonly [Name in keyof ConditionFields[Type]]?: FieldTests<ConditionFields[Type][Name]>;
  };
} & Window &
  OneOrNone<Measures<ConditionFields[Type]>>;

/** `within` ends at the time of the evaluation. `since` is included, and `until` is excluded. */
type Window =
  | { readonly within?: Duration; readonly since?: never; readonly until?: never }
  | { readonly within?: never; readonly since?: Time; readonly until?: Time };

interface Measures<Fields> {
  /** How many rows there are. */
  readonly times: CountTests;
  /** The sum of a number. It is 0 if there are no rows. */
  readonly sum: OneOf<{ readonly [Name in NumberName<Fields>]: CountTests }>;
  /** The average of a number. Without a value, no test passes. */
  readonly average: OneOf<{ readonly [Name in NumberName<Fields>]: CountTests }>;
  /** How many different values a field has. */
  readonly distinct: OneOf<{ readonly [Name in keyof Fields]: CountTests }>;
  /** The time of the last row. Without a row that has a time, no test passes. */
  readonly last: TimeTests;
  /** The time of the first row. Without a row that has a time, no test passes. */
  readonly first: TimeTests;
}

/** The names of the fields that are numbers. */
type NumberName<Fields> = {
  [Name in keyof Fields]: Fields[Name] extends 'number' ? Name : never;
}[keyof Fields];

/** An object with exactly one of the properties. */
type OneOf<Properties> = {
  [Name in keyof Properties]: { readonly [Given in Name]: Properties[Given] } & {
    readonly [Other in Exclude<keyof Properties, Name>]?: never;
  };
}[keyof Properties];

type OneOrNone<Properties> = { readonly [Name in keyof Properties]?: never } | OneOf<Properties>;

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

/** The tests of a number that is counted or computed. */
export interface CountTests extends OrderTests<number> {
  readonly is?: number;
}

export interface TimeTests extends OrderTests<Time> {}

export interface TextTests extends EqualTests<string> {
  readonly contains?: string;
}

interface TestsOfKinds {
  readonly uuid: EqualTests<string>;
  readonly region: EqualTests<string>;
  readonly text: TextTests;
  readonly number: NumberTests;
  readonly date: EqualTests<string> & OrderTests<string>;
  readonly 'date-time': TimeTests & ExistsTest;
  readonly boolean: ExistsTest & { readonly is?: boolean };
}

type FieldTests<Kind> = Kind extends { readonly choice: infer Value }
  ? EqualTests<Value>
  : Kind extends keyof TestsOfKinds
    ? TestsOfKinds[Kind]
    : never;
