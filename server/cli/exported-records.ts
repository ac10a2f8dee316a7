// Reads the records of an export through the API, and writes them as lines of CSV or JSON.

import type { HeadgateClient } from '@headgate/client/client.ts';
import { type ReplicaTable, recordTables } from '../analytics/replica-tables.ts';
import { spreadsheetSafe } from '../csv-cell.ts';
import { type CsvValue, csvLine } from './csv-lines.ts';
import { fieldsOf, INTERACTIONS, type LoadType, uploadTypeOf } from './load/file-types.ts';

export const exportFormats = ['csv', 'ndjson', 'parquet'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Which records are exported, and how they are written. */
export interface Content {
  readonly type: LoadType;
  readonly format: ExportFormat;
  /** Only what has changed after this position, including what is marked as deleted. Null for everything. */
  readonly since: string | null;
  readonly includeDeleted: boolean;
  /** In CSV: whether texts that a spreadsheet would run as formulas are marked. */
  readonly isForSpreadsheet: boolean;
  /** In Parquet: whether ids are texts. */
  readonly hasTextIds: boolean;
}

export interface PieceCallbacks {
  /** Called with the number of records so far. */
  onRecords(total: number): void;
  /** Called with the position after the changes that have been written. */
  onPosition?(position: string): void;
}

/** Text is collected up to this length before it is passed on. */
const PIECE_CHARACTERS = 64 * 1024;
/** Fewer and longer pieces are faster for DuckDB. */
const PARQUET_PIECE_CHARACTERS = 1024 * 1024;

/** Returns the columns of a Parquet file: those of the table on which queries run. */
export function parquetTable({ type, hasTextIds }: Content): ReplicaTable {
  const table = recordTables.get(uploadTypeOf(type))!;
  if (!hasTextIds) return table;
  const columns = table.columns.map(({ name, type: ofColumn }) => ({
    name,
    type: ofColumn === 'UUID' ? 'VARCHAR' : ofColumn,
  }));
  return { ...table, columns };
}

/** Yields pieces of whole lines: CSV with a header, or otherwise NDJSON. */
export async function* piecesOf(
  client: HeadgateClient,
  content: Content,
  signal: AbortSignal,
  { onRecords, onPosition }: PieceCallbacks,
): AsyncGenerator<string, void> {
  const { format, isForSpreadsheet } = content;
  const names = namesOf(content);
  const longest = format === 'parquet' ? PARQUET_PIECE_CHARACTERS : PIECE_CHARACTERS;
  const cellOf = (value: CsvValue): CsvValue =>
    isForSpreadsheet && typeof value === 'string' ? spreadsheetSafe(value) : value;
  let piece = format === 'csv' ? csvLine(names) : '';
  let total = 0;
  for await (const record of recordsOf(client, content, signal, onPosition)) {
    const values = record as Readonly<Record<string, CsvValue>>;
    piece +=
      format === 'csv'
        ? csvLine(names.map((name) => cellOf(values[name] ?? null)))
        : `${JSON.stringify(values, names)}\n`;
    total++;
    if (piece.length < longest) continue;
    yield piece;
    piece = '';
    onRecords(total);
  }
  yield piece;
  onRecords(total);
}

/** In formats that `load` reads, `occurred_at` of an interaction is left out: the server computes it. */
function namesOf(content: Content): string[] {
  if (content.format === 'parquet') return parquetTable(content).columns.map(({ name }) => name);
  return Object.keys(fieldsOf(content.type));
}

async function* recordsOf(
  client: HeadgateClient,
  { type, since, includeDeleted }: Content,
  signal: AbortSignal,
  onPosition?: (position: string) => void,
): AsyncIterable<object> {
  if (since === null) {
    yield* type === INTERACTIONS
      ? client.interactions({ signal })
      : client.list(type, { signal, includeDeleted });
    return;
  }
  const options = { after: since, type: uploadTypeOf(type), follow: false, signal };
  for await (const { changes, next } of client.changes(options)) {
    for (const { record } of changes) if (record !== null) yield record;
    onPosition?.(next);
  }
}
