// Renders the rows of a query as JSON, NDJSON or CSV, piece by piece, so that a result of any size needs little memory.
//
// JSON and NDJSON: whole numbers and decimals are numbers if they are exact in JSON, otherwise texts; NaN and infinity
// are texts. Timestamps, dates, times and intervals are ISO 8601, blobs are base64, lists are arrays, structs and maps
// are objects, and values of the type JSON are texts. CSV is RFC 4180: null is empty, an empty text is "", and lists,
// structs and maps are JSON.

import { DuckDBDataChunk } from '@duckdb/node-api';
import { csvCell, spreadsheetSafe } from '../../csv-cell.ts';
import { type ColumnReader, type ColumnTexts, openColumn } from './column-texts.ts';
import { RENDERING_TURN_MS, renderingTurn } from './rendering-turns.ts';
import { stepsOf } from './row-sizes.ts';
import type { QueryRows, RunningQuery } from './run-query.ts';

/** A piece is passed on when it has about this many characters. */
const PIECE_CHARACTERS = 64 * 1024;
/** DuckDB's library keeps the values that were read from a chunk, so the chunk is opened again after this many characters. */
const KEPT_CHARACTERS = 16 * 1024 * 1024;

/** Yields the object with columns and rows. The fields of `last` come at the end. */
export async function* renderJson(
  query: RunningQuery,
  last: () => Readonly<Record<string, unknown>>,
): AsyncGenerator<string> {
  let isFirst = true;
  yield `{"columns":${JSON.stringify(query.columns)},"rows":[`;
  yield* renderRows(query, jsonColumn, (columns, row) => {
    let text = isFirst ? '[' : ',[';
    isFirst = false;
    for (let column = 0; column < columns.length; column++) {
      text += column === 0 ? columns[column]![row]! : `,${columns[column]![row]!}`;
    }
    return `${text}]`;
  });
  const summary = { row_count: query.rowCount(), truncated: query.isTruncated(), ...last() };
  yield `],${JSON.stringify(summary).slice(1)}`;
}

/** Yields one object per line. If several columns have the same name, the later ones get a number. */
export async function* renderNdjson(query: RunningQuery): AsyncGenerator<string> {
  const starts = distinctNames(query.columns.map(({ name }) => name)).map(
    (name, column) => `${column === 0 ? '{' : ','}${JSON.stringify(name)}:`,
  );
  yield* renderRows(query, jsonColumn, (columns, row) => {
    let text = '';
    for (let column = 0; column < columns.length; column++) text += starts[column]! + columns[column]![row]!;
    return `${text}}\n`;
  });
}

/**
 * Yields a line with the names of the columns, and one line per row. For a spreadsheet, names and texts that it would
 * run as formulas are marked.
 */
export async function* renderCsv(query: RunningQuery, isForSpreadsheet = false): AsyncGenerator<string> {
  const names = query.columns.map(({ name }) => (isForSpreadsheet ? spreadsheetSafe(name) : name));
  yield `${names.map(csvCell).join(',')}\n`;
  const renderColumn = isForSpreadsheet ? safeCsvColumn : csvColumn;
  yield* renderRows(query, renderColumn, (columns, row) => {
    let text = '';
    for (let column = 0; column < columns.length; column++) {
      text += column === 0 ? columns[column]![row]! : `,${columns[column]![row]!}`;
    }
    return `${text}\n`;
  });
}

async function* renderRows(
  query: RunningQuery,
  renderColumn: (values: ColumnTexts) => readonly string[],
  renderRow: (columns: readonly (readonly string[])[], row: number) => string,
): AsyncGenerator<string> {
  for await (const rows of query.rows) {
    await renderingTurn();
    let turnBeganAtMs = performance.now();
    for (const piece of renderChunk(query, rows, renderColumn, renderRow)) {
      yield piece;
      if (performance.now() - turnBeganAtMs < RENDERING_TURN_MS) continue;
      await renderingTurn();
      turnBeganAtMs = performance.now();
    }
  }
}

function* renderChunk(
  { types }: RunningQuery,
  { chunk, count }: QueryRows,
  renderColumn: (values: ColumnTexts) => readonly string[],
  renderRow: (columns: readonly (readonly string[])[], row: number) => string,
): Generator<string> {
  const endOfStep = stepsOf(chunk, types, count);
  const open = (): readonly ColumnReader[] => {
    const fresh = new DuckDBDataChunk(chunk.chunk);
    return types.map((type, column) => openColumn(fresh, column, type, count));
  };
  let readers = open();
  let readCharacters = 0;
  for (let first = 0, end = 0; first < count; first = end) {
    end = endOfStep(first);
    const columns = readers.map((read) => renderColumn(read({ first, end })));
    let piece = '';
    for (let row = 0; row < end - first; row++) {
      piece += renderRow(columns, row);
      if (piece.length < PIECE_CHARACTERS) continue;
      yield piece;
      readCharacters += piece.length;
      piece = '';
    }
    if (piece !== '') yield piece;
    readCharacters += piece.length;
    if (readCharacters < KEPT_CHARACTERS) continue;
    readers = open();
    readCharacters = 0;
  }
}

function jsonColumn({ form, texts }: ColumnTexts): readonly string[] {
  switch (form) {
    case 'json':
      return texts.map((text) => text ?? 'null');
    case 'plain':
      return texts.map((text) => (text === null ? 'null' : `"${text}"`));
    case 'text':
      return texts.map((text) => JSON.stringify(text));
  }
}

function csvColumn({ form, texts }: ColumnTexts): readonly string[] {
  switch (form) {
    case 'json':
      return texts.map((text) => (text === null ? '' : csvCell(withoutQuotes(text))));
    case 'plain':
      return texts.map((text) => text ?? '');
    case 'text':
      return texts.map((text) => (text === null ? '' : csvCell(text)));
  }
}

function safeCsvColumn({ form, texts }: ColumnTexts): readonly string[] {
  return texts.map((given) => {
    if (given === null) return '';
    if (form !== 'json') return csvCell(spreadsheetSafe(given));
    const text = withoutQuotes(given);
    // A number that JSON would not keep exactly has quotes there, like a text.
    const isNumber = !Number.isNaN(Number(text));
    return csvCell(isNumber ? text : spreadsheetSafe(text));
  });
}

/** Returns a JSON text as the text itself, and other JSON as it is. */
function withoutQuotes(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** Returns the names with a number after each one that occurred before. */
function distinctNames(names: readonly string[]): readonly string[] {
  const taken = new Set<string>();
  /** The lowest number that may be free, by name. Thousands of columns can have the same name. */
  const numbers = new Map<string, number>();
  return names.map((name) => {
    let distinct = name;
    let number = numbers.get(name) ?? 2;
    for (; taken.has(distinct); number++) distinct = `${name}_${number}`;
    numbers.set(name, number);
    taken.add(distinct);
    return distinct;
  });
}
