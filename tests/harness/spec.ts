// The record types of the service's contract, transcribed by hand: the types and their fields, what each field holds,
// which fields are required, and which must name an existing record. The catalogue declares the same for the product.
// Tests that use this table fail if the two differ.

import { randomUUID } from 'node:crypto';
import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import type { Api } from './api.ts';
import type { TestRecord } from './records.ts';

export type Holds =
  | 'uuid'
  | 'date-time'
  | 'date'
  | 'region'
  | 'text'
  | 'boolean'
  | 'number'
  | 'number >= 0'
  | 'number > 0'
  | 'latitude'
  | 'longitude';

/** A trailing `!` means `required`. */
type Cell = Holds | `${Holds}!`;

const bookkeeping = { created: 'date-time', updated: 'date-time', is_deleted: 'boolean' } as const;

/** The first field is the one that identifies a record. */
const cells: Readonly<Record<string, Readonly<Record<string, Cell>>>> = {
  customers: {
    customer_id: 'uuid!',
    user_id: 'uuid!',
    region: 'region!',
    birthdate: 'date',
    institute_id: 'uuid',
    course_id: 'uuid',
    gender: 'text',
    ...bookkeeping,
  },
  transactions: {
    transaction_id: 'uuid!',
    shop_id: 'uuid!',
    region: 'region!',
    savings: 'number >= 0!',
    amount: 'number > 0!',
    student_id: 'uuid',
    offer_id: 'uuid',
    branch_id: 'uuid',
    source: 'text',
    ...bookkeeping,
    discount_name: 'text',
    discount_type: 'text',
    discount_value: 'number',
  },
  offers: {
    offer_id: 'uuid!',
    shop_id: 'uuid!',
    name: 'text!',
    type: 'text!',
    value: 'number > 0!',
    region: 'region!',
    allowed_from: 'date-time',
    allowed_to: 'date-time',
    allowed_branches: 'text',
    allowed_days: 'text',
    ...bookkeeping,
    is_enabled: 'boolean',
  },
  shops: { shop_id: 'uuid!', name: 'text!', region: 'region!', is_public: 'boolean', ...bookkeeping },
  branches: {
    branch_id: 'uuid!',
    shop_id: 'uuid!',
    name: 'text!',
    region: 'region!',
    latitude: 'latitude',
    longitude: 'longitude',
    ...bookkeeping,
  },
  categories: { category_id: 'uuid!', name: 'text!', region: 'region!', ...bookkeeping },
  'shop-categories': {
    shop_category_id: 'uuid!',
    shop_id: 'uuid!',
    category_id: 'uuid!',
    region: 'region!',
    ...bookkeeping,
  },
  institutes: { institute_id: 'uuid!', name: 'text!', region: 'region!', ...bookkeeping },
  courses: { course_id: 'uuid!', name: 'text!', ...bookkeeping },
  keywords: { keyword_id: 'uuid!', name: 'text!', ...bookkeeping },
  'shop-keywords': { shop_keyword_id: 'uuid!', shop_id: 'uuid!', keyword_id: 'uuid!', ...bookkeeping },
  tags: { tag_id: 'uuid!', name: 'text!', ...bookkeeping },
  'shop-tags': { shop_tag_id: 'uuid!', shop_id: 'uuid!', tag_id: 'uuid!', ...bookkeeping },
  'student-favourites': {
    student_favourite_id: 'uuid!',
    student_id: 'uuid!',
    shop_id: 'uuid!',
    ...bookkeeping,
  },
};

export interface SpecField {
  readonly name: string;
  readonly holds: Holds;
  readonly required: boolean;
}

export interface SpecReference {
  readonly type: string;
  readonly field: string;
  readonly target: string;
}

export const specTypes: readonly string[] = Object.keys(cells);

export const specReferences: readonly SpecReference[] = [
  { type: 'transactions', field: 'shop_id', target: 'shops' },
  { type: 'offers', field: 'shop_id', target: 'shops' },
  { type: 'branches', field: 'shop_id', target: 'shops' },
  { type: 'shop-categories', field: 'shop_id', target: 'shops' },
  { type: 'shop-categories', field: 'category_id', target: 'categories' },
  { type: 'shop-tags', field: 'shop_id', target: 'shops' },
  { type: 'shop-tags', field: 'tag_id', target: 'tags' },
  { type: 'shop-keywords', field: 'shop_id', target: 'shops' },
  { type: 'shop-keywords', field: 'keyword_id', target: 'keywords' },
  { type: 'student-favourites', field: 'student_id', target: 'customers' },
  { type: 'student-favourites', field: 'shop_id', target: 'shops' },
];

/** Fields that look like references and are stored as given. */
export const specNonReferences: readonly { readonly type: string; readonly field: string }[] = [
  { type: 'customers', field: 'user_id' },
  { type: 'customers', field: 'institute_id' },
  { type: 'customers', field: 'course_id' },
  { type: 'transactions', field: 'student_id' },
  { type: 'transactions', field: 'offer_id' },
  { type: 'transactions', field: 'branch_id' },
  { type: 'offers', field: 'allowed_branches' },
];

export function specFields(type: string): readonly SpecField[] {
  return Object.entries(cells[type]!).map(([name, cell]) => ({
    name,
    holds: cell.replace(/!$/, '') as Holds,
    required: cell.endsWith('!'),
  }));
}

export function specKey(type: string): string {
  return specFields(type)[0]!.name;
}

export function specReferenceOf(type: string, field: string): SpecReference | undefined {
  return specReferences.find((reference) => reference.type === type && reference.field === field);
}

/** A value as sent, and as returned. */
export interface GoodForm {
  readonly sent: unknown;
  readonly shown: unknown;
}

export interface BadForm {
  readonly sent: unknown;
  readonly code: ProblemCode;
}

const LONGEST_TEXT_CHARACTERS = 10_000;

const same = (...values: unknown[]): GoodForm[] => values.map((value) => ({ sent: value, shown: value }));
const pairs = (...values: (readonly [sent: unknown, shown: unknown])[]): GoodForm[] =>
  values.map(([sent, shown]) => ({ sent, shown }));
const bad = (code: ProblemCode, ...values: unknown[]): BadForm[] => values.map((sent) => ({ sent, code }));

const goodForms: Record<Holds, () => readonly GoodForm[]> = {
  uuid() {
    const id = randomUUID();
    return [
      ...pairs([id.toUpperCase(), id]),
      ...same(randomUUID(), '00000000-0000-0000-0000-000000000001', '018f3b1c-9a77-7c3e-bd6f-0f3a5d2f9c11'),
    ];
  },
  'date-time': () =>
    pairs(
      ['2024-05-01T09:30:00Z', '2024-05-01T09:30:00Z'],
      ['2024-05-01T09:30:00', '2024-05-01T09:30:00Z'],
      ['2024-05-01T09:30:00+02:00', '2024-05-01T07:30:00Z'],
      ['2024-02-29T23:30:00-01:30', '2024-03-01T01:00:00Z'],
      ['2024-01-01T00:15:00+14:00', '2023-12-31T10:15:00Z'],
      ['2024-05-01T09:30:00.5Z', '2024-05-01T09:30:00.500Z'],
      ['2024-05-01T09:30:00.123Z', '2024-05-01T09:30:00.123Z'],
      ['2024-05-01T09:30:00.123456Z', '2024-05-01T09:30:00.123456Z'],
      ['2024-05-01T09:30:00.123456789Z', '2024-05-01T09:30:00.123456Z'],
      ['1969-07-20T20:17:40Z', '1969-07-20T20:17:40Z'],
      ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
      ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
    ),
  date: () => same('2001-02-28', '2000-02-29', '0001-01-01', '9999-12-31'),
  region: () => pairs(['GB', 'GB'], ['gr', 'GR'], ['dE', 'DE'], ['ZZ', 'ZZ']),
  text: () =>
    same(
      'x',
      ' spaced  out ',
      'Žluťoučký 😀 中文 e\u0301 é',
      'line\nbreak\ttab "quote" \\ \' ; --',
      '\u0001\u007f\u2028',
      'null',
      'x'.repeat(LONGEST_TEXT_CHARACTERS),
      '😀'.repeat(LONGEST_TEXT_CHARACTERS),
    ),
  boolean: () => same(true, false),
  number: () => same(0, -1.5, 42, 0.1, 1e-300, Number.MAX_VALUE, -Number.MAX_VALUE, Number.MAX_SAFE_INTEGER),
  'number >= 0': () => same(0, 0.01, 5e-324, 12.34, Number.MAX_VALUE),
  'number > 0': () => same(5e-324, 0.01, 1, 12.34, Number.MAX_VALUE),
  latitude: () => same(-90, 0, 37.983810123, 90),
  longitude: () => same(-180, 0, 23.727539, 180),
};

const notText = bad('wrong_type', 7, 0, true, false, [], ['text'], {});
const notNumber = bad('wrong_type', '1', '', true, [1], {});

const badForms: Record<Holds, () => readonly BadForm[]> = {
  uuid() {
    const id = randomUUID();
    return [
      ...notText,
      ...bad(
        'invalid_format',
        '',
        'seven',
        `{${id}}`,
        id.replaceAll('-', ''),
        `urn:uuid:${id}`,
        id.slice(1),
        `${id}0`,
        `g${id.slice(1)}`,
        ` ${id}`,
        `${id}\n`,
      ),
    ];
  },
  'date-time': () => [
    ...notText,
    ...bad(
      'invalid_format',
      '',
      'yesterday',
      '2024-05-01',
      '2024-05-01 09:30:00Z',
      '2023-02-29T00:00:00Z',
      '2024-04-31T00:00:00Z',
      '2024-13-01T00:00:00Z',
      '2024-00-01T00:00:00Z',
      '2024-01-00T00:00:00Z',
      '2024-01-01T24:00:00Z',
      '2024-01-01T10:60:00Z',
      '2024-01-01T10:00:61Z',
      '2024-01-01T10:00:00+24:00',
      '10000-01-01T00:00:00Z',
      '2024-01-01T10:00:00Z ',
    ),
  ],
  date: () => [
    ...notText,
    ...bad(
      'invalid_format',
      '',
      '2001-02-29',
      '1900-02-29',
      '2001-13-01',
      '2001-00-01',
      '2001-04-31',
      '2001-2-8',
      '28/02/2001',
      '2001-02-28T00:00:00Z',
      '20010228',
    ),
  ],
  region: () => [...notText, ...bad('invalid_format', '', 'G', 'GBR', 'G1', '  ', 'ÄÖ', 'GB ', 'ＧＢ')],
  text: () => [
    ...notText,
    ...bad('invalid_format', 'a\0b', '\ud800', 'a\udc00b'),
    ...bad('too_long', 'x'.repeat(LONGEST_TEXT_CHARACTERS + 1), '😀'.repeat(LONGEST_TEXT_CHARACTERS + 1)),
  ],
  boolean: () => bad('wrong_type', 'true', 'false', '', 0, 1, [], {}),
  number: () => notNumber,
  'number >= 0': () => [...notNumber, ...bad('out_of_range', -5e-324, -0.01, -1, -Number.MAX_VALUE)],
  'number > 0': () => [...notNumber, ...bad('out_of_range', 0, -5e-324, -0.01, -1, -Number.MAX_VALUE)],
  latitude: () => [...notNumber, ...bad('out_of_range', -90.000001, 90.000001, 180, -1e9)],
  longitude: () => [...notNumber, ...bad('out_of_range', -180.000001, 180.000001, 360, -1e9)],
};

export function goodFormsOf({ holds, required }: SpecField): readonly GoodForm[] {
  const forms = goodForms[holds]();
  return holds === 'text' && !required ? [...forms, ...same('')] : forms;
}

export function badFormsOf({ holds, required }: SpecField): readonly BadForm[] {
  const forms = badForms[holds]();
  return holds === 'text' && required ? [...forms, ...bad('required', '')] : forms;
}

/** By type, the id of a record that exists. */
export type Parents = Readonly<Record<string, string>>;

/** Uploads one record of every type that others refer to. */
export async function uploadParents(api: Api): Promise<Parents> {
  const parents: Record<string, string> = {};
  for (const target of new Set(specReferences.map((reference) => reference.target))) {
    const record = specRecord(target, {});
    const { status, text } = await api.upload(target, [record]);
    if (status !== 200) throw new Error(`uploading a ${target} record answered ${status}: ${text}`);
    parents[target] = record[specKey(target)] as string;
  }
  return parents;
}

/** Returns the smallest record of a type: a new id, its references to the parents, and its required fields. */
export function specRecord(type: string, parents: Parents, given: TestRecord = {}): TestRecord {
  return { ...recordOf(type, parents, (field) => field.required), ...given };
}

/** A record with every field of its type. */
export function fullSpecRecord(type: string, parents: Parents, given: TestRecord = {}): TestRecord {
  return { ...recordOf(type, parents, () => true), ...given };
}

function recordOf(type: string, parents: Parents, isWanted: (field: SpecField) => boolean): TestRecord {
  return Object.fromEntries(
    specFields(type)
      .filter(isWanted)
      .map((field) => [field.name, ordinaryValue(type, field, parents)]),
  );
}

function ordinaryValue(type: string, { name, holds }: SpecField, parents: Parents): unknown {
  const reference = specReferenceOf(type, name);
  if (reference !== undefined) return parents[reference.target];
  switch (holds) {
    case 'uuid':
      return randomUUID();
    case 'date-time':
      return '2024-05-01T09:30:00Z';
    case 'date':
      return '2001-02-28';
    case 'region':
      return 'GB';
    case 'text':
      return `some ${name}`;
    case 'boolean':
      return true;
    default:
      return 12.5;
  }
}

/** Returns the record that is read back, if the values were sent in the form in which they are shown. */
export function shownRecord(type: string, sent: TestRecord): TestRecord {
  const omitted = Object.fromEntries(
    specFields(type).map(({ name }) => [name, name === 'is_deleted' ? false : null]),
  );
  const given = Object.entries(sent).filter(([, value]) => value !== null);
  return { ...omitted, ...Object.fromEntries(given) };
}
