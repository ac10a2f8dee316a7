// Turns the columns of a DuckDB result into text, a column of a chunk at a time.

import {
  DuckDBArrayValue,
  DuckDBBitValue,
  DuckDBBlobValue,
  type DuckDBDataChunk,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBGeometryValue,
  DuckDBIntervalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimeNSValue,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeTZValue,
  DuckDBTimeValue,
  type DuckDBType,
  DuckDBTypeId,
  DuckDBUnionValue,
  DuckDBUUIDValue,
  type DuckDBValue,
  DuckDBVariantValue,
} from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import { validityOf } from './row-sizes.ts';
import { dateText, intervalText, timestampText, timeText, zoneText } from './time-texts.ts';

/**
 * The values of a column as text, or null. `form` says what JSON does with the text:
 * - `text` is escaped and quoted,
 * - `plain` is quoted; it contains nothing that must be escaped,
 * - `json` is JSON already.
 */
export interface ColumnTexts {
  readonly form: 'text' | 'plain' | 'json';
  readonly texts: readonly (string | null)[];
}

/** Some rows of a chunk, from `first` up to, but not including, `end`. */
export interface RowRange {
  readonly first: number;
  readonly end: number;
}

/** Reads the values of a column in some rows. */
export type ColumnReader = (rows: RowRange) => ColumnTexts;

/** Returns a reader of a column, for the first `count` rows of a chunk. */
export function openColumn(
  chunk: DuckDBDataChunk,
  column: number,
  type: DuckDBType,
  count: number,
): ColumnReader {
  switch (type.typeId) {
    case DuckDBTypeId.UUID:
      return reader('plain', uuidTexts(chunk, column, count));
    case DuckDBTypeId.VARCHAR:
      return reader('text', varcharTexts(chunk, column, count));
    case DuckDBTypeId.ENUM:
      return reader('text', eachText(chunk, column, String));
    case DuckDBTypeId.TIMESTAMP_TZ:
      return reader(
        'plain',
        eachText(chunk, column, (value) => timestampText((value as DuckDBTimestampTZValue).micros, 'Z')),
      );
    case DuckDBTypeId.TIMESTAMP:
    case DuckDBTypeId.DATE:
      return reader('plain', eachText(chunk, column, scalarText));
    case DuckDBTypeId.FLOAT:
      return reader(
        'json',
        eachText(chunk, column, (value) => valueJson(shortest(value as number))),
      );
    default:
      return reader('json', eachText(chunk, column, valueJson));
  }
}

/** Returns the texts of some rows. */
type TextsOf = (rows: RowRange) => readonly (string | null)[];

function reader(form: ColumnTexts['form'], textsOf: TextsOf): ColumnReader {
  return (rows) => ({ form, texts: textsOf(rows) });
}

function eachText(chunk: DuckDBDataChunk, column: number, textOf: (value: DuckDBValue) => string): TextsOf {
  const vector = chunk.getColumnVector(column);
  return ({ first, end }) => {
    const texts = new Array<string | null>(end - first);
    for (let row = first; row < end; row++) {
      const value = vector.getItem(row);
      texts[row - first] = value === null ? null : textOf(value);
    }
    return texts;
  };
}

/** DuckDB stores a UUID and the header of a text in this many bytes. */
const WIDE_BYTES = 16;

const hexOfByte: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, '0'),
);

/** Reads the bytes directly, because this is ten times as fast as reading the values one by one. */
function uuidTexts(chunk: DuckDBDataChunk, column: number, count: number): TextsOf {
  const vector = duckdb.data_chunk_get_vector(chunk.chunk, column);
  const bytes = duckdb.vector_get_data(vector, count * WIDE_BYTES);
  const isValid = validityOf(vector, count);
  // The bytes are in reverse order.
  const hex = (at: number) => hexOfByte[bytes[at]!]!;
  return ({ first, end }) => {
    const texts = new Array<string | null>(end - first);
    for (let row = first; row < end; row++) {
      const at = row * WIDE_BYTES;
      texts[row - first] = isValid(row)
        ? `${
            // The highest bit is inverted, so that UUIDs are sorted as numbers are.
            hexOfByte[bytes[at + 15]! ^ 0x80]!
          }${hex(at + 14)}${hex(at + 13)}${hex(at + 12)}-${hex(at + 11)}${hex(at + 10)}-${hex(at + 9)}${hex(at + 8)}-${hex(at + 7)}${hex(at + 6)}-${hex(at + 5)}${hex(at + 4)}${hex(at + 3)}${hex(at + 2)}${hex(at + 1)}${hex(at)}`
        : null;
    }
    return texts;
  };
}

/** A text of up to this many bytes is in its header; a longer one is elsewhere, and the header points to it. */
const SHORT_TEXT_BYTES = 12;
/** Texts that are next to each other are copied together, but not more than this at once. */
const RUN_BYTES = 1024 * 1024;
/** Texts that are next to each other can be this far apart, because they begin at multiples of 8. */
const GAP_BYTES = 7;

/** Reads texts that are next to each other together, because this is seven times as fast as reading them one by one. */
function varcharTexts(chunk: DuckDBDataChunk, column: number, count: number): TextsOf {
  const vector = duckdb.data_chunk_get_vector(chunk.chunk, column);
  const data = duckdb.vector_get_data(vector, count * WIDE_BYTES);
  const headers = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const isValid = validityOf(vector, count);
  const lengthOf = (row: number) => headers.readUInt32LE(row * WIDE_BYTES);
  const addressOf = (row: number) => headers.readBigUInt64LE(row * WIDE_BYTES + 8);
  return (rows) => {
    const texts = new Array<string | null>(rows.end - rows.first).fill(null);
    const longRows: number[] = [];
    for (let row = rows.first; row < rows.end; row++) {
      if (!isValid(row)) continue;
      const at = row * WIDE_BYTES;
      const length = lengthOf(row);
      if (length > SHORT_TEXT_BYTES) longRows.push(row);
      else texts[row - rows.first] = headers.toString('utf8', at + 4, at + 4 + length);
    }
    for (let first = 0; first < longRows.length; ) {
      const firstRow = longRows[first]!;
      const start = addressOf(firstRow);
      const offsets = [0];
      let endOffset = lengthOf(firstRow);
      let next = first + 1;
      for (; next < longRows.length; next++) {
        const row = longRows[next]!;
        const offset = Number(addressOf(row) - start);
        const end = offset + lengthOf(row);
        if (offset < endOffset || offset - endOffset > GAP_BYTES || end > RUN_BYTES) break;
        offsets.push(offset);
        endOffset = end;
      }
      const bytes = duckdb.get_data_from_pointer(
        headers.buffer as ArrayBuffer,
        headers.byteOffset + firstRow * WIDE_BYTES + 8,
        endOffset,
      );
      const run = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      offsets.forEach((offset, index) => {
        const row = longRows[first + index]!;
        texts[row - rows.first] = run.toString('utf8', offset, offset + lengthOf(row));
      });
      first = next;
    }
    return texts;
  };
}

/** Returns the number with the fewest digits that is the same FLOAT. */
function shortest(float: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const rounded = Number(float.toPrecision(digits));
    if (Math.fround(rounded) === float) return rounded;
  }
  return Number(float.toPrecision(9));
}

/** The largest integer up to which every integer is exact in JSON. */
const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);
/** A number with up to 15 digits is the same after it was read from JSON and written again. */
const MAX_EXACT_DECIMAL = 10n ** 15n;

/** Returns a value as JSON. */
function valueJson(value: DuckDBValue): string {
  if (value === null) return 'null';
  switch (typeof value) {
    case 'boolean':
      return String(value);
    case 'number':
      // JSON has no such numbers, so they are texts.
      if (!Number.isFinite(value)) return `"${value}"`;
      return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
      return value >= -MAX_EXACT && value <= MAX_EXACT ? String(value) : `"${value}"`;
    case 'string':
      return JSON.stringify(value);
  }
  if (value instanceof DuckDBDecimalValue) {
    const isExact = value.value > -MAX_EXACT_DECIMAL && value.value < MAX_EXACT_DECIMAL;
    return isExact ? value.toString() : `"${value}"`;
  }
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    return `[${value.items.map(valueJson).join(',')}]`;
  }
  if (value instanceof DuckDBStructValue) {
    return objectJson(Object.entries(value.entries));
  }
  if (value instanceof DuckDBMapValue) {
    return objectJson(value.entries.map((entry) => [keyText(entry.key), entry.value]));
  }
  if (value instanceof DuckDBUnionValue || value instanceof DuckDBVariantValue) return valueJson(value.value);
  return JSON.stringify(scalarText(value));
}

function objectJson(entries: readonly (readonly [string, DuckDBValue])[]): string {
  return `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${valueJson(value)}`).join(',')}}`;
}

/** Returns the key of a map as text. A key in JSON is always text. */
function keyText(value: DuckDBValue): string {
  if (typeof value === 'string') return value;
  const json = valueJson(value);
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** Returns a value that JSON represents as text. */
function scalarText(value: DuckDBValue): string {
  if (value instanceof DuckDBTimestampTZValue) return timestampText(value.micros, 'Z');
  if (value instanceof DuckDBTimestampValue) return timestampText(value.micros, '');
  if (value instanceof DuckDBTimestampSecondsValue) return timestampText(value.seconds, '', 0);
  if (value instanceof DuckDBTimestampMillisecondsValue) return timestampText(value.millis, '', 3);
  if (value instanceof DuckDBTimestampNanosecondsValue) return timestampText(value.nanos, '', 9);
  if (value instanceof DuckDBDateValue) return dateText(value.days);
  if (value instanceof DuckDBTimeValue) return timeText(value.micros);
  if (value instanceof DuckDBTimeNSValue) return timeText(value.nanos, 9);
  if (value instanceof DuckDBTimeTZValue) return timeText(value.micros) + zoneText(value.offset);
  if (value instanceof DuckDBIntervalValue) return intervalText(value);
  if (value instanceof DuckDBBlobValue || value instanceof DuckDBGeometryValue) {
    return Buffer.from(value.bytes).toString('base64');
  }
  if (value instanceof DuckDBBitValue) return bitText(value);
  if (value instanceof DuckDBUUIDValue) return value.toString();
  throw new Error(`DuckDB returned a value of an unknown kind: ${value}`);
}

const bitsOfByte: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(2).padStart(8, '0'),
);

/** Does the same as DuckDB's library, which takes a second for ten million bits. */
function bitText(value: DuckDBBitValue): string {
  let text = '';
  // The first byte says how many bits of the second are unused.
  for (let at = 1; at < value.data.length; at++) text += bitsOfByte[value.data[at]!]!;
  return text.slice(value.padding());
}
