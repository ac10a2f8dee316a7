// Creates rows for the tests of stores: plain ones, and arbitrary ones with every kind of value.

import { randomUUID } from 'node:crypto';
import type { Fields } from '@headgate/catalogue/declaration.ts';
import type { ChoiceKind } from '@headgate/catalogue/kinds/choice.ts';
import type { ColumnValue, Kind, KindName } from '@headgate/catalogue/kinds/kind.ts';
import { type RecordTypeName, recordTypes, storedInteraction } from '@headgate/catalogue/record-types.ts';
import fc from 'fast-check';
import type { Row } from './rows.ts';

export type Values = Readonly<Record<string, ColumnValue>>;

/** Returns a record with a new id. Required fields are filled, the others are as if they had been omitted. */
export function recordRow(type: RecordTypeName, values: Values = {}): Row {
  return plainRow(recordTypes[type].fields, values);
}

export function interactionRow(values: Values = {}): Row {
  return plainRow(storedInteraction, values);
}

function plainRow(fields: Fields, values: Values): Row {
  for (const name of Object.keys(values)) {
    if (!Object.hasOwn(fields, name)) throw new Error(`there is no field ${name}`);
  }
  return Object.entries(fields).map(([name, { kind, required, omitted }]) => {
    const given = values[name];
    if (given !== undefined) return given;
    return required ? plainValues[kind.name](kind) : omitted;
  });
}

const plainValues: Readonly<Record<KindName, (kind: Kind) => ColumnValue>> = {
  uuid: () => randomUUID(),
  'date-time': () => '2024-05-01T09:30:00.000000Z',
  date: () => '2004-02-29',
  region: () => 'GB',
  text: () => 'text',
  number: () => 12.5,
  boolean: () => true,
  choice: (kind) => (kind as ChoiceKind<string>).values[0]!,
  'event-timestamp': () => '1714555800',
};

/** Generates any row that the fields allow, in stored form. */
export function anyRow(fields: Fields): fc.Arbitrary<Row> {
  return fc.tuple(
    ...Object.values(fields).map(({ kind, required, omitted }): fc.Arbitrary<ColumnValue> => {
      const present = anyValues[kind.name](kind);
      return required ? present : fc.oneof(present, fc.constant(omitted));
    }),
  );
}

const anyMoment: fc.Arbitrary<string> = fc
  .tuple(
    fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59Z'),
      noInvalidDate: true,
    }),
    // Whole seconds and milliseconds are returned in a shorter form.
    fc.oneof(fc.integer({ min: 0, max: 999_999 }), fc.constantFrom(0, 120_000, 123_000, 120)),
  )
  .map(([date, micros]) => `${date.toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`);

const anyLetter = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZ');

const anyValues: Readonly<Record<KindName, (kind: Kind) => fc.Arbitrary<ColumnValue>>> = {
  uuid: () => fc.uuid(),
  'date-time': () => anyMoment,
  date: () => anyMoment.map((moment) => moment.slice(0, 10)),
  region: () => fc.tuple(anyLetter, anyLetter).map((letters) => letters.join('')),
  text: () => fc.string({ unit: 'binary', minLength: 1 }).map((text) => text.replaceAll('\0', '0')),
  // Minus zero equals zero, and a store need not distinguish them.
  number: () => fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  boolean: () => fc.boolean(),
  choice: (kind) => fc.constantFrom(...(kind as ChoiceKind<string>).values),
  'event-timestamp': () => fc.oneof(anyMoment, fc.integer({ min: 1 }).map(String)),
};
