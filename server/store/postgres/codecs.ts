// Converts each kind of value to and from a PostgreSQL column. Nothing else in this folder depends on a value's kind.

import type { ColumnValue, KindName } from '@headgate/catalogue/kinds/kind.ts';

export interface Codec {
  /** The column's type as `format_type` writes it, so that it can be compared with the column types in a database. */
  readonly type: string;
  /**
   * Returns SQL that selects the column's value in its stored form. The result must not depend on the server's DateStyle
   * and TimeZone.
   */
  selectSql(column: string): string;
  fromText(text: string): ColumnValue;
  /** Throws if the value is not in its stored form. */
  toText(value: ColumnValue): string;
  /**
   * True if the text can contain characters with a meaning in arrays or in COPY: a comma, a quote, a brace or a tab.
   */
  readonly needsEscapes: boolean;
  /** True if values can have thousands of characters. */
  readonly isLong: boolean;
}

const text: Codec = {
  type: 'text',
  selectSql: (column) => column,
  fromText: (value) => value,
  toText: String,
  needsEscapes: true,
  isLong: false,
};

const bare = { ...text, needsEscapes: false };

function ofLength(length: number): Codec['toText'] {
  return (value) => {
    if (typeof value !== 'string' || value.length !== length)
      throw new Error(`${value} is not in its stored form`);
    return value;
  };
}

export const codecs: Readonly<Record<KindName, Codec>> = {
  uuid: { ...bare, type: 'uuid', toText: ofLength(36) },
  'date-time': {
    ...bare,
    type: 'timestamp with time zone',
    selectSql: (column) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
    toText: ofLength(27),
  },
  date: {
    ...bare,
    type: 'date',
    selectSql: (column) => `to_char(${column}, 'YYYY-MM-DD')`,
    toText: ofLength(10),
  },
  region: text,
  text: { ...text, isLong: true },
  choice: text,
  'event-timestamp': text,
  number: {
    ...bare,
    type: 'double precision',
    fromText: Number,
    toText(value) {
      if (typeof value !== 'number' || !Number.isFinite(value))
        throw new Error(`${value} is no finite number`);
      return String(value);
    },
  },
  boolean: {
    ...bare,
    type: 'boolean',
    fromText: (value) => value === 't',
    toText: (value) => (value ? 't' : 'f'),
  },
};

/** PostgreSQL outputs `bytea` values as this prefix followed by hexadecimal digits. */
const HEX_PREFIX = '\\x';

export function bytesOfHex(text: string): Buffer<ArrayBuffer> {
  return Buffer.from(text.slice(HEX_PREFIX.length), 'hex');
}
