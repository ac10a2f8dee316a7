// Checks the tests of a condition: which tests a kind of value allows, and the values they compare with.

import { alternatives } from '@headgate/catalogue/alternatives.ts';
import { date } from '@headgate/catalogue/kinds/date.ts';
import { parseDateTime } from '@headgate/catalogue/kinds/date-time.ts';
import { Flaw, type Kind, type KindName, quote, typeNameOf } from '@headgate/catalogue/kinds/kind.ts';
import { number } from '@headgate/catalogue/kinds/number.ts';
import { MOST_LIST_VALUES, type Test, type TestValue, type Time } from './condition-node.ts';
import { ConditionProblem, pathTo, suggestion } from './condition-problem.ts';

export type TestName =
  | 'is'
  | 'in'
  | 'not_in'
  | 'at_least'
  | 'at_most'
  | 'above'
  | 'below'
  | 'contains'
  | 'exists';

const equal: readonly TestName[] = ['is', 'in', 'not_in'];
const order: readonly TestName[] = ['at_least', 'at_most', 'above', 'below'];

const allowedTests: Readonly<Record<KindName, readonly TestName[]>> = {
  uuid: [...equal, 'exists'],
  region: [...equal, 'exists'],
  choice: [...equal, 'exists'],
  text: [...equal, 'contains', 'exists'],
  number: [...equal, ...order, 'exists'],
  date: [...equal, ...order, 'exists'],
  'date-time': [...order, 'exists'],
  boolean: ['is', 'exists'],
  'event-timestamp': ['exists'],
};

const testNames: ReadonlySet<string> = new Set([...equal, ...order, 'contains', 'exists']);

/** What is tested: how it is called in messages, its allowed tests, and how their values are checked. */
export interface Tested {
  readonly what: string;
  readonly tests: readonly TestName[];
  /** Returns the value in its stored form, or what it must be. */
  readonly check: (value: unknown) => TestValue | Flaw;
}

export function testedField(name: string, kind: Kind): Tested {
  return {
    what: `${quote(name)}, a ${kind.name} field,`,
    tests: allowedTests[kind.name],
    check: checkFor(kind),
  };
}

/** The age of a customer, which does not exist if the date of birth is unknown. */
export const testedAge: Tested = {
  what: '"age"',
  tests: allowedTests.number,
  check: checkFor(number()),
};

/** A number that is counted or computed from rows. */
export function testedCount(what: string): Tested {
  return { what: quote(what), tests: ['is', ...order], check: checkFor(number()) };
}

/** The time of the last or first row. */
export function testedTime(what: string): Tested {
  return { what: quote(what), tests: order, check: checkTime };
}

function checkFor(kind: Kind): Tested['check'] {
  // A limit of the field, such as an amount above 0, does not apply to what the field is compared with.
  if (kind.name === 'number') return (value) => number().check(value, true) as number | Flaw;
  if (kind.name === 'date-time') return checkTime;
  return (value) => {
    const checked = value === null || value === undefined ? null : kind.check(value, false);
    return checked ?? new Flaw('wrong_type', `must be ${kind.accepts}, not ${typeNameOf(value)}`);
  };
}

const TIME = 'a date, a date-time, or a time before now such as "30d ago"';

export function checkTime(value: unknown): Time | Flaw {
  if (typeof value !== 'string') return new Flaw('wrong_type', `must be ${TIME}, not ${typeNameOf(value)}`);
  if (value.endsWith(' ago')) {
    const agoMs = durationMs(value.slice(0, -' ago'.length));
    if (agoMs !== null) return { agoMs };
  }
  const day = date.check(value, true);
  const time = parseDateTime(day instanceof Flaw ? value : `${value}T00:00:00Z`);
  return time ?? new Flaw('invalid_format', `must be ${TIME}, not ${quote(value)}`);
}

const HOUR_MS = 3_600_000;
const unitsMs: Readonly<Record<string, number>> = { h: HOUR_MS, d: 24 * HOUR_MS, w: 7 * 24 * HOUR_MS };
const LONGEST_DURATION_MS = 100 * 366 * 24 * HOUR_MS;
export const DURATION = 'a number of hours, days or weeks of at most 100 years, such as "12h", "30d" or "4w"';

/** Returns null if the text is not a duration. */
export function durationMs(text: string): number | null {
  const parts = /^([1-9][0-9]{0,6})([hdw])$/.exec(text);
  if (parts === null) return null;
  const ms = Number(parts[1]) * unitsMs[parts[2]!]!;
  return ms <= LONGEST_DURATION_MS ? ms : null;
}

/** Checks an object whose properties are tests, such as `{"at_least": 3}`. */
export function parseTests(
  given: Readonly<Record<string, unknown>>,
  at: string,
  tested: Tested,
): readonly Test[] | ConditionProblem {
  const names = Object.keys(given);
  if (names.length === 0) return new ConditionProblem(at, `must have a test: ${alternatives(tested.tests)}`);
  const tests: Test[] = [];
  for (const name of names) {
    const test = parseTest(name, given[name], pathTo(at, name), tested);
    if (test instanceof ConditionProblem) return test;
    tests.push(test);
  }
  return tests;
}

function parseTest(name: string, given: unknown, at: string, tested: Tested): Test | ConditionProblem {
  const { what, tests, check } = tested;
  if (!testNames.has(name)) {
    return new ConditionProblem(at, `there is no test ${quote(name)}${suggestion(name, tests)}`);
  }
  if (!tests.includes(name as TestName)) {
    return new ConditionProblem(
      at,
      `${what} cannot be tested with ${quote(name)}, only with ${alternatives(tests)}`,
    );
  }
  switch (name as TestName) {
    case 'exists':
      return typeof given === 'boolean'
        ? { kind: 'exists', expected: given }
        : new ConditionProblem(at, `must be true or false, not ${typeNameOf(given)}`);
    case 'contains':
      return parseContains(given, at, check);
    case 'in':
    case 'not_in':
      return parseList(name as 'in' | 'not_in', given, at, check);
    default: {
      const value = checked(given, at, check);
      if (value instanceof ConditionProblem) return value;
      if (name === 'is') return { kind: 'in', values: [value] };
      return { kind: name as 'at_least' | 'at_most' | 'above' | 'below', value };
    }
  }
}

function parseContains(given: unknown, at: string, check: Tested['check']): Test | ConditionProblem {
  const text = checked(given, at, check);
  if (text instanceof ConditionProblem) return text;
  if (text === '') return new ConditionProblem(at, 'must not be empty');
  return { kind: 'contains', text: text as string };
}

function parseList(
  kind: 'in' | 'not_in',
  given: unknown,
  at: string,
  check: Tested['check'],
): Test | ConditionProblem {
  if (!Array.isArray(given))
    return new ConditionProblem(at, `must be a list of values, not ${typeNameOf(given)}`);
  if (given.length === 0) return new ConditionProblem(at, 'must have at least one value');
  if (given.length > MOST_LIST_VALUES) {
    return new ConditionProblem(at, `must have at most ${MOST_LIST_VALUES} values, not ${given.length}`);
  }
  const values: TestValue[] = [];
  for (const [index, each] of given.entries()) {
    const value = checked(each, `${at}[${index}]`, check);
    if (value instanceof ConditionProblem) return value;
    values.push(value);
  }
  return { kind, values };
}

function checked(given: unknown, at: string, check: Tested['check']): TestValue | ConditionProblem {
  const value = check(given);
  return value instanceof Flaw ? new ConditionProblem(at, value.message) : value;
}
