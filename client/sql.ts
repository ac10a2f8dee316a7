// The parameters, formats and results of SQL queries.

import type { ReadOptions } from './connection.ts';

/** A value for a placeholder of a query. */
export type SqlParam = string | number | boolean | null;

/** The formats in which `sqlStream` gets a result. Only JSON has a limit of rows. */
export type SqlFormat = 'json' | 'csv' | 'ndjson' | 'parquet';

export const sqlMediaTypes: Readonly<Record<SqlFormat, string>> = {
  json: 'application/json',
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
  parquet: 'application/vnd.apache.parquet',
};

export interface SqlStreamOptions extends ReadOptions {
  /**
   * In CSV, puts an apostrophe before texts and names of columns that a spreadsheet would run as formulas. Default: false.
   */
  spreadsheetSafe?: boolean | undefined;
}

export interface SqlColumn {
  readonly name: string;
  /** DuckDB's name of the type, such as UUID, DOUBLE or TIMESTAMP WITH TIME ZONE. */
  readonly type: string;
}

/** What a query has seen. */
export interface AsOf {
  /** Everything up to this entry of the ledger. */
  readonly seq: number;
  readonly at: string;
  /** False if the ledger had later entries when the query arrived. */
  readonly complete: boolean;
}

/** A result whose bytes are passed on as they arrive. */
export interface SqlStream {
  /** Null if a proxy has removed the header `Headgate-As-Of`. */
  readonly as_of: AsOf | null;
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
}

export interface SqlResult<Row extends readonly unknown[] = readonly unknown[]> {
  readonly columns: readonly SqlColumn[];
  /** Each row has its values in the order of the columns. */
  readonly rows: readonly Row[];
  readonly row_count: number;
  /** True if there are more rows than the server's limit. */
  readonly truncated: boolean;
  readonly ms: number;
  readonly as_of: AsOf;
}
