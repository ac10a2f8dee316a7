// Estimates how long the text of a row becomes, before it is made. So rows are rendered in small steps, between which
// other queries have their turn, and a row that is too large is refused.

import {
  BLOB,
  type DuckDBDataChunk,
  type DuckDBType,
  DuckDBTypeId,
  LIST,
  STRUCT,
  UINTEGER,
  UTINYINT,
  VARCHAR,
} from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import { QueryFailed } from './query-errors.ts';

/** The size of a row, in bytes. A row becomes text in one step, during which the queries of others wait. */
const MOST_ROW_BYTES = 4 * 1024 * 1024;
/** The rows of a step have about this size together. */
const STEP_BYTES = 64 * 1024;
/** What a number, a time, a null or the delimiters of a value count as. */
const SMALL_BYTES = 24;
/** DuckDB stores the header of a text or list in this many bytes. */
const HEADER_BYTES = 16;
/** In the text of a BIT, every bit is a digit. */
const BITS_PER_BYTE = 8;

/** The size of a value in a row, or one number if all values have the same size. */
type Sizes = number | ((row: number) => number);

const tooLarge = new QueryFailed({
  kind: 'too_large',
  message: 'The query returns a row of more than 4 MiB.',
});

/** How DuckDB stores a VARIANT. */
const variantType = STRUCT({
  keys: LIST(VARCHAR),
  children: LIST(STRUCT({ key: UINTEGER, value: UINTEGER })),
  values: LIST(STRUCT({ type: UTINYINT, offset: UINTEGER })),
  data: BLOB,
});

/** Returns a function that returns the row before which a step from the given row ends. It throws if a row is too large. */
export function stepsOf(
  { chunk }: DuckDBDataChunk,
  types: readonly DuckDBType[],
  count: number,
): (first: number) => number {
  const columns = types.map((type, column) =>
    sizesIn(duckdb.data_chunk_get_vector(chunk, column), type, count),
  );
  const sizes = sum(columns);
  return (first) => {
    let bytes = 0;
    for (let row = first; row < count; row++) {
      const size = sizeAt(sizes, row);
      if (size > MOST_ROW_BYTES) throw tooLarge;
      bytes += size;
      if (bytes > STEP_BYTES) return Math.max(row, first + 1);
    }
    return count;
  };
}

function sizesIn(vector: duckdb.Vector, type: DuckDBType, count: number): Sizes {
  switch (type.typeId) {
    case DuckDBTypeId.VARCHAR:
    case DuckDBTypeId.BLOB:
    case DuckDBTypeId.BIT:
    case DuckDBTypeId.BIGNUM:
    case DuckDBTypeId.GEOMETRY: {
      const headers = headersIn(vector, count);
      const perByte = type.typeId === DuckDBTypeId.BIT ? BITS_PER_BYTE : 1;
      return ifValid(
        vector,
        count,
        (row) => SMALL_BYTES + perByte * headers.getUint32(row * HEADER_BYTES, true),
      );
    }
    case DuckDBTypeId.ENUM:
      return SMALL_BYTES + Math.max(...type.values.map((value) => value.length));
    case DuckDBTypeId.LIST:
      return listSizes(vector, type.valueType, count);
    case DuckDBTypeId.MAP:
      return listSizes(vector, STRUCT({ key: type.keyType, value: type.valueType }), count);
    case DuckDBTypeId.ARRAY: {
      const { length, valueType } = type;
      const items = sizesIn(duckdb.array_vector_get_child(vector), valueType, count * length);
      return ifValid(vector, count, (row) => rangeSize(items, row * length, length));
    }
    case DuckDBTypeId.STRUCT:
      return sum([structSizes(vector, type.entryTypes, count), type.entryNames.join('').length]);
    case DuckDBTypeId.UNION:
      return structSizes(vector, [UTINYINT, ...type.memberTypes], count);
    case DuckDBTypeId.VARIANT:
      return structSizes(vector, variantType.entryTypes, count);
    default:
      return SMALL_BYTES;
  }
}

function listSizes(vector: duckdb.Vector, itemType: DuckDBType, count: number): Sizes {
  const items = sizesIn(duckdb.list_vector_get_child(vector), itemType, duckdb.list_vector_get_size(vector));
  const headers = headersIn(vector, count);
  return ifValid(vector, count, (row) => {
    const offset = Number(headers.getBigUint64(row * HEADER_BYTES, true));
    const length = Number(headers.getBigUint64(row * HEADER_BYTES + 8, true));
    return rangeSize(items, offset, length);
  });
}

function structSizes(vector: duckdb.Vector, types: readonly DuckDBType[], count: number): Sizes {
  const fields = types.map((type, index) =>
    sizesIn(duckdb.struct_vector_get_child(vector, index), type, count),
  );
  const sizes = sum(fields);
  return typeof sizes === 'number' ? sizes : ifValid(vector, count, sizes);
}

function sum(parts: readonly Sizes[]): Sizes {
  const fixed = parts.filter((part) => typeof part === 'number').reduce((total, part) => total + part, 0);
  const varying = parts.filter((part) => typeof part !== 'number');
  if (varying.length === 0) return fixed;
  return (row) => varying.reduce((total, sizeOf) => total + sizeOf(row), fixed);
}

/** Returns the size of some items. Does not go on if they are too large. */
function rangeSize(items: Sizes, offset: number, length: number): number {
  if (typeof items === 'number') return SMALL_BYTES + length * items;
  let bytes = SMALL_BYTES;
  for (let item = offset; item < offset + length && bytes <= MOST_ROW_BYTES; item++) bytes += items(item);
  return bytes;
}

function sizeAt(sizes: Sizes, row: number): number {
  return typeof sizes === 'number' ? sizes : sizes(row);
}

/** The bytes of a null are not defined. */
function ifValid(vector: duckdb.Vector, count: number, sizeOf: (row: number) => number): Sizes {
  const isValid = validityOf(vector, count);
  return (row) => (isValid(row) ? sizeOf(row) : SMALL_BYTES);
}

function headersIn(vector: duckdb.Vector, count: number): DataView {
  const { buffer, byteOffset, byteLength } = duckdb.vector_get_data(vector, count * HEADER_BYTES);
  return new DataView(buffer, byteOffset, byteLength);
}

/** Returns a function that says whether a value is not null. */
export function validityOf(vector: duckdb.Vector, count: number): (row: number) => boolean {
  // There are no bytes if no value is null.
  const bits = duckdb.vector_get_validity(vector, Math.ceil(count / 64) * 8) as Uint8Array | null;
  return bits === null ? () => true : (row) => (bits[row >> 3]! & (1 << (row & 7))) !== 0;
}
