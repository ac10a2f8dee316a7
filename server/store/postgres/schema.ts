// How the tables of records and interactions are made in PostgreSQL, and how their values are written and read.

import type { ColumnValue, KindName } from '@headgate/catalogue/kinds/kind.ts';
import type { OrganisationNumber, Row } from '../store.ts';
import { type Column, isNotNull, quoted, type Table } from '../tables.ts';
import type { TextRow } from './connections.ts';

/** As `format_type` writes them, so that they can be compared with what a database has. */
type ColumnType = 'uuid' | 'timestamp with time zone' | 'date' | 'double precision' | 'boolean' | 'text';

export const ORGANISATION_TYPE = 'integer';

export const columnTypes: Readonly<Record<KindName, ColumnType>> = {
  uuid: 'uuid',
  'date-time': 'timestamp with time zone',
  date: 'date',
  region: 'text',
  text: 'text',
  choice: 'text',
  'event-timestamp': 'text',
  number: 'double precision',
  boolean: 'boolean',
};

export function createTableSql(table: Table): string {
  const definitions = [
    `"organisation" ${ORGANISATION_TYPE} NOT NULL`,
    ...table.columns.map(
      ({ name, kind }) => `${quoted(name)} ${columnTypes[kind]}${isNotNull(table, name) ? ' NOT NULL' : ''}`,
    ),
    `PRIMARY KEY ("organisation", ${quoted(table.key)})`,
  ];
  return `CREATE TABLE ${quoted(table.name)} (\n  ${definitions.join(',\n  ')}\n)`;
}

/** A field that was declared later. Older rows get what omitting it means. */
export function addColumnSql(table: Table, { name, kind, omitted }: Column): string {
  const whenOmitted = omitted === null ? '' : ` DEFAULT ${omitted}`;
  return `ALTER TABLE ${quoted(table.name)} ADD COLUMN ${quoted(name)} ${columnTypes[kind]}${whenOmitted}`;
}

/** Changes only the catalog of the database; no row is read or written. */
export function dropNotNullSql(table: Table, columns: readonly string[]): string {
  const drops = columns.map((name) => `ALTER COLUMN ${quoted(name)} DROP NOT NULL`);
  return `ALTER TABLE ${quoted(table.name)} ${drops.join(', ')}`;
}

/** The column in its kept form, whatever DateStyle and TimeZone the server has. */
export function selectedColumn({ name, kind }: Column): string {
  if (kind === 'date-time') {
    return `to_char(${quoted(name)} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
  }
  return kind === 'date' ? `to_char(${quoted(name)}, 'YYYY-MM-DD')` : quoted(name);
}

export function rowOf({ columns }: Table, values: TextRow): Row {
  return columns.map(({ kind }, position): ColumnValue => {
    const text = values[position]!;
    if (text === null) return null;
    if (kind === 'number') return Number(text);
    return kind === 'boolean' ? text === 't' : text;
  });
}

type Encode = (value: ColumnValue) => string;

/** What no value of these kinds can hold is not looked for: a comma, a quote, a brace, a tab. */
const bareEncoders = {
  uuid: bareText(36),
  'date-time': bareText(27),
  date: bareText(10),
  number(value: ColumnValue): string {
    if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error(`${value} is no finite number`);
    return String(value);
  },
  boolean: (value: ColumnValue): string => (value ? 't' : 'f'),
};

function bareText(length: number): Encode {
  return (value) => {
    if (typeof value !== 'string' || value.length !== length)
      throw new Error(`${value} is not in its kept form`);
    return value;
  };
}

function encodersWith(text: Encode): Readonly<Record<KindName, Encode>> {
  return { ...bareEncoders, region: text, text, choice: text, 'event-timestamp': text };
}

const special = /["\\]/;
const everySpecial = /["\\]/g;
const inArray = encodersWith((value) => {
  const text = String(value);
  return `"${special.test(text) ? text.replace(everySpecial, '\\$&') : text}"`;
});

/**
 * One column of the rows as the text of a PostgreSQL array. Written here because node-postgres takes three
 * times as long: it has to look at each value to find out what it is.
 */
export function arrayOf(rows: readonly Row[], position: number, kind: KindName): string {
  const encode = inArray[kind];
  let array = '{';
  let separator = '';
  for (const row of rows) {
    const value = row[position]!;
    array += separator + (value === null ? 'NULL' : encode(value));
    separator = ',';
  }
  return `${array}}`;
}

const specialToCopy = /[\\\t\n\r]/;
const everySpecialToCopy = /[\\\t\n\r]/g;
const copyEscapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
const inCopy = encodersWith((value) => {
  const text = String(value);
  return specialToCopy.test(text)
    ? text.replace(everySpecialToCopy, (character) => copyEscapes[character]!)
    : text;
});

/** The rows in the text format of COPY, the organisation before each. */
export function copyTextOf(
  { columns }: Table,
  organisation: OrganisationNumber,
  rows: readonly Row[],
): string {
  const encoders = columns.map(({ kind }) => inCopy[kind]);
  let text = '';
  for (const row of rows) {
    text += organisation;
    for (let position = 0; position < encoders.length; position++) {
      const value = row[position]!;
      text += value === null ? '\t\\N' : `\t${encoders[position]!(value)}`;
    }
    text += '\n';
  }
  return text;
}
