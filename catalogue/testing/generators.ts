// Generators for property tests, derived from the declarations: valid values with their returned form, and invalid
// values with the expected problem code.

import fc, { type Arbitrary } from 'fast-check';
import type { Field, Fields } from '../declaration.ts';
import type { ChoiceKind } from '../kinds/choice.ts';
import type { Kind, KindName } from '../kinds/kind.ts';
import type { NumberKind } from '../kinds/number.ts';
import { LONGEST_TEXT_CHARACTERS } from '../kinds/text.ts';
import type { ProblemCode } from '../problem-codes.ts';

/** A value as a client sends it, and as it is returned. */
export interface Sample {
  readonly sent: unknown;
  readonly shown: unknown;
}

export interface SampleObject {
  readonly sent: Record<string, unknown>;
  readonly shown: Record<string, unknown>;
}

export interface Corruption {
  readonly field: string | null;
  readonly code: ProblemCode;
  /** The valid object with one error. */
  readonly sent: unknown;
}

interface BadValue {
  readonly sent: unknown;
  readonly code: ProblemCode;
}

const hex = '0123456789abcdefABCDEF';

const uuidText = fc
  .array(fc.constantFrom(...hex), { minLength: 32, maxLength: 32 })
  .map((digits) => digits.join('').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'));

const earliestMs = Date.parse('0001-01-03T00:00:00Z');
const latestMs = Date.parse('9999-12-29T00:00:00Z');

const dateTimeSample: Arbitrary<Sample> = fc
  .record({
    atMs: fc.integer({ min: earliestMs / 1000, max: latestMs / 1000 }).map((seconds) => seconds * 1000),
    fraction: fc.option(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 9 }), {
      nil: [],
    }),
    offsetMinutes: fc.option(fc.integer({ min: -(23 * 60 + 59), max: 23 * 60 + 59 })),
    form: fc.constantFrom('+hh:mm', '+hhmm', 'Z', 'none'),
  })
  .map(({ atMs, fraction, offsetMinutes, form }) => {
    const offset = form.startsWith('+') ? (offsetMinutes ?? 0) : 0;
    const local = new Date(atMs + offset * 60_000).toISOString().slice(0, 19);
    const digits = fraction.join('');
    const sent = `${local}${digits === '' ? '' : `.${digits}`}${offsetText(offset, form)}`;
    const micros = digits.slice(0, 6).padEnd(6, '0');
    const shownDigits = micros === '000000' ? '' : micros.endsWith('000') ? micros.slice(0, 3) : micros;
    const utc = new Date(atMs).toISOString().slice(0, 19);
    return { sent, shown: `${utc}${shownDigits === '' ? '' : `.${shownDigits}`}Z` };
  });

function offsetText(offsetMinutes: number, form: string): string {
  if (form === 'none') return '';
  if (form === 'Z') return 'Z';
  const minutes = Math.abs(offsetMinutes);
  const hh = String(Math.floor(minutes / 60)).padStart(2, '0');
  const mm = String(minutes % 60).padStart(2, '0');
  return `${offsetMinutes < 0 ? '-' : '+'}${hh}${form === '+hh:mm' ? ':' : ''}${mm}`;
}

const badDateTime = fc.constantFrom(
  '2023-02-29T00:00:00Z',
  '2024-02-30T10:00:00Z',
  '2024-13-01T00:00:00Z',
  '2024-00-10T00:00:00Z',
  '2024-04-31T00:00:00Z',
  '2024-01-01T24:00:00Z',
  '2024-01-01T10:60:00Z',
  '2024-01-01T10:00:61Z',
  '2024-01-01T10:00:00+24:00',
  '2024-01-01T10:00:00+10:60',
  '2024-01-01 10:00:00Z',
  '2024-01-01',
  '10000-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-00:01',
  '0001-01-01T00:00:00+00:01',
  '24-01-01T00:00:00Z',
  'yesterday',
  '',
);

const notText = fc.constantFrom<unknown>(0, 1.5, true, false, [], {}, ['text'], { text: 'text' });

const samples: Record<KindName, (kind: Kind, required: boolean) => Arbitrary<Sample>> = {
  uuid: () => uuidText.map((sent) => ({ sent, shown: sent.toLowerCase() })),
  'date-time': () => dateTimeSample,
  date: () =>
    fc
      .integer({ min: earliestMs / 86_400_000, max: latestMs / 86_400_000 })
      .map((days) => new Date(days * 86_400_000).toISOString().slice(0, 10))
      .map(same),
  region: () =>
    fc
      .tuple(letter(), letter())
      .map((letters) => letters.join(''))
      .map((sent) => ({ sent, shown: sent.toUpperCase() })),
  text: (_, required) =>
    fc
      .oneof(
        { weight: 20, arbitrary: fc.string({ unit: 'binary', minLength: required ? 1 : 0, maxLength: 40 }) },
        {
          weight: 1,
          arbitrary: fc.constantFrom('x', '😀').map((unit) => unit.repeat(LONGEST_TEXT_CHARACTERS)),
        },
      )
      .map((text) => text.replaceAll('\0', '0'))
      .map(same),
  number: (kind) => {
    const { min, max, above } = (kind as NumberKind).bounds;
    return fc
      .oneof(
        fc.double({
          noNaN: true,
          noDefaultInfinity: true,
          min: above ?? min ?? -Number.MAX_VALUE,
          max: max ?? Number.MAX_VALUE,
          minExcluded: above !== undefined,
        }),
        fc.integer({ min: above === undefined ? (min ?? -1000) : above + 1, max: max ?? 1000 }),
      )
      .map((value) => same(value + 0));
  },
  boolean: () => fc.boolean().map(same),
  choice: (kind) => fc.constantFrom(...(kind as ChoiceKind<string>).values).map(same),
  'event-timestamp': () =>
    fc.oneof(
      fc.integer({ min: 1, max: latestMs }).map(same),
      dateTimeSample.map(({ sent }) => same(sent)),
    ),
};

const spoiled: Record<KindName, (kind: Kind, required: boolean) => Arbitrary<BadValue>> = {
  uuid: () =>
    fc.oneof(
      bad('wrong_type', notText),
      bad(
        'invalid_format',
        uuidText.chain((id) =>
          fc.constantFrom(
            `{${id}}`,
            id.replaceAll('-', ''),
            `urn:uuid:${id}`,
            id.slice(1),
            `${id}0`,
            `g${id.slice(1)}`,
            ` ${id}`,
            `${id}\n`,
            '',
          ),
        ),
      ),
    ),
  'date-time': () => fc.oneof(bad('wrong_type', notText), bad('invalid_format', badDateTime)),
  date: () =>
    fc.oneof(
      bad('wrong_type', notText),
      bad(
        'invalid_format',
        fc.constantFrom(
          '2023-02-29',
          '2024-02-30',
          '2024-13-01',
          '2024-1-1',
          '10000-01-01',
          '0000-01-01',
          '2024-01-01T00:00:00Z',
          '01/02/2024',
          '',
        ),
      ),
    ),
  region: () =>
    fc.oneof(
      bad('wrong_type', notText),
      bad('invalid_format', fc.constantFrom('', 'G', 'GBR', 'G1', '  ', 'ÄÖ', 'GB ', 'ＧＢ')),
    ),
  text: (_, required) =>
    fc.oneof(
      bad('wrong_type', notText),
      bad(
        'too_long',
        fc.constantFrom('x', '😀', '中').map((unit) => unit.repeat(LONGEST_TEXT_CHARACTERS + 1)),
      ),
      bad('invalid_format', fc.constantFrom('a\0b', '\0', '\ud800', 'a\udc00b', '\udc00\ud800')),
      ...(required ? [bad('required', fc.constant(''))] : []),
    ),
  number: (kind) => {
    const { min, max, above } = (kind as NumberKind).bounds;
    const outside = [
      ...(min === undefined ? [] : [min - 0.001, -Number.MAX_VALUE]),
      ...(max === undefined ? [] : [max + 0.001, Number.MAX_VALUE]),
      ...(above === undefined ? [] : [above, above - 1]),
    ];
    return fc.oneof(
      bad('wrong_type', fc.constantFrom<unknown>('1', '', true, false, [], {}, [1])),
      ...(outside.length === 0 ? [] : [bad('out_of_range', fc.constantFrom(...outside))]),
    );
  },
  boolean: () => bad('wrong_type', fc.constantFrom<unknown>('true', 'false', 0, 1, '', [], {})),
  choice: (kind) =>
    fc.oneof(
      bad('wrong_type', notText),
      bad(
        'not_allowed',
        fc.constantFrom('', 'NEITHER', (kind as ChoiceKind<string>).values[0]!.toLowerCase()),
      ),
    ),
  'event-timestamp': () =>
    fc.oneof(
      bad('wrong_type', fc.constantFrom<unknown>(true, [], {}, 1.5)),
      bad('out_of_range', fc.constantFrom(0, -1, 253_402_300_800_000, Number.MAX_VALUE)),
      bad('invalid_format', badDateTime),
    ),
};

function same(value: unknown): Sample {
  return { sent: value, shown: value };
}

function letter(): Arbitrary<string> {
  return fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ');
}

function bad(code: ProblemCode, values: Arbitrary<unknown>): Arbitrary<BadValue> {
  return values.map((sent) => ({ sent, code }));
}

/** Generates a valid value of the field. An optional field may also be null or omitted. */
function sampleOf({ kind, required, omitted }: Field): Arbitrary<Sample> {
  const values = samples[kind.name](kind, required);
  if (required) return values;
  const absent = fc.constantFrom<unknown>(null, undefined).map((sent) => ({ sent, shown: omitted }));
  return fc.oneof({ weight: 3, arbitrary: values }, { weight: 1, arbitrary: absent });
}

/** Generates a valid object. Fields in `fixed` have the given values, which must be in the form that is returned. */
export function sampleObject(
  fields: Fields,
  fixed: Readonly<Record<string, unknown>> = {},
): Arbitrary<SampleObject> {
  const names = Object.keys(fields);
  const values = names.map((name) =>
    Object.hasOwn(fixed, name) ? fc.constant(same(fixed[name])) : sampleOf(fields[name]!),
  );
  return fc.tuple(...values).map((drawn) => {
    const sent: Record<string, unknown> = {};
    const shown: Record<string, unknown> = {};
    for (const [at, name] of names.entries()) {
      const value = drawn[at]!;
      if (value.sent !== undefined) sent[name] = value.sent;
      shown[name] = value.shown;
    }
    return { sent, shown };
  });
}

/** Generates a copy of the valid object with exactly one error, and the field and code that must be reported. */
export function corruptionOf(fields: Fields, good: Record<string, unknown>): Arbitrary<Corruption> {
  const names = Object.keys(fields);
  const spoiledField = fc.constantFrom(...names).chain((field) => {
    const { kind, required } = fields[field]!;
    return spoiled[kind.name](kind, required).map(
      ({ sent, code }): Corruption => ({ field, code, sent: { ...good, [field]: sent } }),
    );
  });
  const missing = fc
    .constantFrom(...names.filter((name) => fields[name]!.required))
    .chain((field) => fc.constantFrom({ field, isNull: true }, { field, isNull: false }))
    .map(({ field, isNull }): Corruption => {
      const { [field]: _, ...rest } = good;
      return { field, code: 'required', sent: isNull ? { ...rest, [field]: null } : rest };
    });
  const unknown = fc
    .constantFrom('colour', 'Region', 'constructor', 'toString', 'x'.repeat(60), 'naïve', 'shop id')
    .filter((field) => !names.includes(field))
    .map((field): Corruption => ({ field, code: 'unknown_field', sent: { ...good, [field]: 1 } }));
  const notAnObject = fc
    .constantFrom<unknown>(null, 'record', 7, true, [], [good])
    .map((sent): Corruption => ({ field: null, code: 'not_an_object', sent }));
  return fc.oneof(
    { weight: 8, arbitrary: spoiledField },
    { weight: 2, arbitrary: missing },
    { weight: 1, arbitrary: unknown },
    { weight: 1, arbitrary: notAnObject },
  );
}
