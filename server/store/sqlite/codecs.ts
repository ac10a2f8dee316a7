// Converts each kind of value to and from a SQLite column. Nothing else in this folder depends on a value's kind.

import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { ColumnValue, KindName } from '@headgate/catalogue/kinds/kind.ts';

export interface Codec {
  readonly type: 'TEXT' | 'REAL' | 'INTEGER';
  /** Null if the column stores the value unchanged. */
  readonly conversion: {
    toColumn(value: ColumnValue): SQLInputValue;
    fromColumn(value: SQLOutputValue): ColumnValue;
  } | null;
  /** Returns SQL for a column's value in the form in which JSON.stringify writes it. */
  jsonSql(column: string): string;
  /** Returns SQL for a column's value in the form in which JSON.stringify writes what the kind's `present` returns. */
  shownJsonSql(column: string): string;
  /** True if values can have thousands of characters. */
  readonly isLong: boolean;
}

const text: Codec = {
  type: 'TEXT',
  conversion: null,
  jsonSql: (column) => column,
  shownJsonSql: (column) => column,
  isLong: false,
};

const integerOrReal = (column: string): string => {
  const whole = `CAST(${column} AS INTEGER)`;
  return `iif(${column} = ${whole}, ${whole}, ${column})`;
};

const trueOrFalse = (column: string): string =>
  `CASE ${column} WHEN 1 THEN json('true') WHEN 0 THEN json('false') ELSE ${column} END`;

export const codecs: Readonly<Record<KindName, Codec>> = {
  uuid: text,
  'date-time': {
    ...text,
    // The stored text has six fraction digits.
    shownJsonSql: (column) => `replace(replace(${column}, '.000000Z', 'Z'), '000Z', 'Z')`,
  },
  date: text,
  region: text,
  text: { ...text, isLong: true },
  choice: text,
  'event-timestamp': {
    ...text,
    shownJsonSql: (column) => `iif(${column} GLOB '*[^0-9]*', ${column}, CAST(${column} AS INTEGER))`,
  },
  number: {
    type: 'REAL',
    conversion: null,
    jsonSql: integerOrReal,
    shownJsonSql: integerOrReal,
    isLong: false,
  },
  boolean: {
    type: 'INTEGER',
    conversion: {
      toColumn: (value) => (typeof value === 'boolean' ? Number(value) : value),
      fromColumn: (value) => (value === null ? null : value === 1),
    },
    jsonSql: trueOrFalse,
    shownJsonSql: trueOrFalse,
    isLong: false,
  },
};

/** Returns the value that the column of a declared field stores. */
export function toColumn(kind: KindName, value: ColumnValue): SQLInputValue {
  return codecs[kind].conversion?.toColumn(value) ?? (value as SQLInputValue);
}
