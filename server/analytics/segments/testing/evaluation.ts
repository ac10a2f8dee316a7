// Evaluates conditions in plain TypeScript, independently of the SQL. Slow, but obvious.

import { createHash } from 'node:crypto';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';

export type Value = string | number | boolean | null;
export type Row = Readonly<Record<string, Value>>;
/** All records of an organisation. Date-times are in UTC with six fraction digits, so that their text sorts by time. */
export type Records = Readonly<Record<UploadTypeName, readonly Row[]>>;
type Json = Readonly<Record<string, unknown>>;

export interface Evaluated {
  readonly path: string;
  readonly holds: boolean;
  readonly saw: Value;
}

export class PlainEvaluation {
  readonly #records: Records;
  readonly #asOf: Date;
  readonly #segments: ReadonlyMap<string, Json>;

  constructor(records: Records, asOf: Date, segments: ReadonlyMap<string, Json> = new Map()) {
    this.#records = records;
    this.#asOf = asOf;
    this.#segments = segments;
  }

  liveCustomers(): readonly Row[] {
    return this.#live('customers');
  }

  members(condition: Json): readonly string[] {
    return this.liveCustomers()
      .filter((customer) => this.explain(condition, customer)[0]!.holds)
      .map((customer) => customer.customer_id as string)
      .sort();
  }

  /** Returns all nodes, parents first. */
  explain(condition: Json, customer: Row, path = ''): readonly Evaluated[] {
    const prefix = path === '' ? '' : `${path}.`;
    if ('not' in condition) {
      const below = this.explain(condition.not as Json, customer, `${prefix}not`);
      return [{ path, holds: !below[0]!.holds, saw: null }, ...below];
    }
    for (const name of ['all', 'any'] as const) {
      if (!(name in condition)) continue;
      const below = (condition[name] as Json[]).map((each, index) =>
        this.explain(each, customer, `${prefix}${name}[${index}]`),
      );
      const roots = below.map(([root]) => root!.holds);
      const holds = name === 'all' ? roots.every(Boolean) : roots.some(Boolean);
      return [{ path, holds, saw: null }, ...below.flat()];
    }
    return [{ path, ...this.#leaf(condition, customer) }];
  }

  #leaf(condition: Json, customer: Row): { holds: boolean; saw: Value } {
    if ('segment' in condition) {
      const other = this.#segments.get(condition.segment as string)!;
      return { holds: this.explain(other, customer)[0]!.holds, saw: null };
    }
    if ('sample' in condition) {
      const { percent, salt } = condition.sample as { percent: number; salt: string };
      const hash = createHash('md5').update(`${salt}:${customer.customer_id}`).digest();
      const saw = (hash.readUInt32BE(0) / 2 ** 32) * 100;
      return { holds: saw < percent, saw };
    }
    if ('customer' in condition) {
      const { customer: field, ...tests } = condition;
      if (field === 'age') {
        const age = this.#age(customer.birthdate as string | null);
        return { holds: this.#passes(age === null ? [] : [age], tests), saw: age };
      }
      const values = this.values('customers', customer, field as string);
      return { holds: this.#passes(values, tests), saw: shown(values[0] ?? null) };
    }
    return this.#did(condition, customer);
  }

  #did(condition: Json, customer: Row): { holds: boolean; saw: Value } {
    const type = condition.did as UploadTypeName;
    const timeOf = (row: Row): string | null =>
      (type === 'interactions' ? row.occurred_at : row.created) as string | null;
    const rows = this.#live(type)
      .filter((row) => row.student_id === customer.customer_id)
      .filter((row) => this.#isInWindow(timeOf(row), condition))
      .filter((row) =>
        Object.entries((condition.where ?? {}) as Record<string, Json>).every(([path, tests]) =>
          this.#passes(this.values(type, row, path), tests),
        ),
      );
    for (const name of ['sum', 'average', 'distinct'] as const) {
      if (condition[name] === undefined) continue;
      const [path, tests] = Object.entries(condition[name] as Record<string, Json>)[0]!;
      const values = rows.flatMap((row) => this.values(type, row, path));
      const sum = (values as number[]).reduce((total, value) => total + value, 0);
      if (name === 'distinct') return this.#measured(new Set(values).size, tests);
      if (name === 'sum') return this.#measured(sum, tests);
      return this.#measured(values.length === 0 ? null : sum / values.length, tests);
    }
    const times = rows
      .map(timeOf)
      .filter((time) => time !== null)
      .sort();
    if (condition.last !== undefined) return this.#measured(times.at(-1) ?? null, condition.last as Json);
    if (condition.first !== undefined) return this.#measured(times[0] ?? null, condition.first as Json);
    return this.#measured(rows.length, (condition.times ?? { at_least: 1 }) as Json);
  }

  #measured(value: string | number | null, tests: Json): { holds: boolean; saw: Value } {
    return { holds: this.#passes(value === null ? [] : [value], tests), saw: shown(value) };
  }

  #isInWindow(time: string | null, { within, since, until }: Json): boolean {
    if (within === undefined && since === undefined && until === undefined) return true;
    if (time === null) return false;
    if (within !== undefined) {
      return time > this.#time(`${within} ago`) && time <= this.#time('0h ago');
    }
    if (since !== undefined && time < this.#time(since as string)) return false;
    return until === undefined || time < this.#time(until as string);
  }

  /** Converts a date, a date-time or a relative time to a date-time with six fraction digits. */
  #time(text: string): string {
    const relative = /^(\d+)([hdw]) ago$/.exec(text);
    if (relative !== null) {
      const hours = { h: 1, d: 24, w: 168 }[relative[2] as 'h' | 'd' | 'w'] * Number(relative[1]);
      return new Date(this.#asOf.getTime() - hours * 3_600_000).toISOString().replace('Z', '000Z');
    }
    return text.length === 10 ? `${text}T00:00:00.000000Z` : text;
  }

  #age(birthdate: string | null): number | null {
    if (birthdate === null) return null;
    const today = this.#asOf.toISOString().slice(0, 10);
    const years = Number(today.slice(0, 4)) - Number(birthdate.slice(0, 4));
    return today.slice(5) < birthdate.slice(5) ? years - 1 : years;
  }

  /** Returns whether the values of one field pass every test. */
  #passes(values: readonly Value[], tests: Json): boolean {
    return Object.entries(tests).every(([name, expected]) => {
      const compared = (value: Value): [Value, Value] => {
        const isTime = typeof value === 'string' && value.includes('T') && value.endsWith('Z');
        return [value, isTime ? this.#time(expected as string) : (expected as Value)];
      };
      switch (name) {
        case 'is':
          return values.includes(expected as Value);
        case 'in':
          return values.some((value) => (expected as Value[]).includes(value));
        case 'not_in':
          return !values.some((value) => (expected as Value[]).includes(value));
        case 'contains':
          return values.some((value) => (value as string).includes(expected as string));
        case 'exists':
          return values.length > 0 === expected;
        default:
          return values.some((value) => isOrdered(name, ...compared(value)));
      }
    });
  }

  /** Returns the values to which a path leads from a row, without those that are missing. */
  values(type: UploadTypeName, row: Row, path: string): readonly Value[] {
    const [name, ...rest] = path.split('.') as [string, ...string[]];
    if (name in row) return row[name] === null ? [] : [row[name]!];
    const { to, rows } = this.#related(type, row, name);
    return rows.flatMap((each) => this.values(to, each, rest.length === 0 ? 'name' : rest.join('.')));
  }

  #related(type: UploadTypeName, row: Row, name: string): { to: UploadTypeName; rows: readonly Row[] } {
    const types: Record<string, UploadTypeName> = {
      institute: 'institutes',
      course: 'courses',
      shop: 'shops',
      offer: 'offers',
      branch: 'branches',
      tag: 'tags',
      category: 'categories',
      keyword: 'keywords',
    };
    const to = types[name]!;
    const key = `${name}_id`;
    let ids: readonly (Value | undefined)[];
    if (type === 'interactions') ids = row.item_type === name.toUpperCase() ? [row.item_id] : [];
    else if (type === 'shops') {
      const links = { tag: 'shop-tags', category: 'shop-categories', keyword: 'shop-keywords' } as const;
      const linked = this.#live(links[name as keyof typeof links]);
      ids = linked.filter((link) => link.shop_id === row.shop_id).map((link) => link[key]);
    } else ids = [row[key]];
    return { to, rows: this.#live(to).filter((each) => each[key] !== null && ids.includes(each[key]!)) };
  }

  #live(type: UploadTypeName): readonly Row[] {
    return this.#records[type].filter((row) => row.is_deleted !== true);
  }
}

function isOrdered(name: string, value: Value, expected: Value): boolean {
  switch (name) {
    case 'at_least':
      return value! >= expected!;
    case 'at_most':
      return value! <= expected!;
    case 'above':
      return value! > expected!;
    case 'below':
      return value! < expected!;
    default:
      throw new Error(`there is no test ${name}`);
  }
}

/** Returns a time as clients see it, with as few fraction digits as possible. */
function shown(value: Value): Value {
  if (typeof value !== 'string' || !/T.*\.\d{6}Z$/.test(value)) return value;
  return value.replace(/(\.000)?000Z$/, 'Z');
}
