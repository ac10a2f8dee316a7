// Reads DuckDB's errors, which are JSON in a replica, and translates their positions.

/** An error of DuckDB. */
export interface QueryError {
  /** For example `Binder` or `Out of Memory`. */
  readonly type: string;
  readonly message: string;
  /** The offset in the text of the query, in UTF-16 code units. */
  readonly position: number | null;
}

/** What DuckDB says about the place of an error. */
interface ErrorPlace {
  readonly error_subtype?: string;
  readonly position?: string;
}

/** Reads an error that DuckDB threw for the given query. */
export function readQueryError(error: unknown, sql: string): QueryError {
  const text = error instanceof Error ? error.message : String(error);
  const start = text.indexOf('{"exception_type"');
  if (start === -1) return { type: '', message: text, position: null };
  const parsed = JSON.parse(text.slice(start)) as ErrorPlace & {
    readonly exception_type: string;
    readonly exception_message: string;
  };
  return {
    type: parsed.exception_type,
    message: parsed.exception_message.trim(),
    position: positionOfError(sql, parsed),
  };
}

/** Translates the position of an error. DuckDB counts code points in syntax errors, and bytes in all others. */
export function positionOfError(sql: string, { error_subtype, position }: ErrorPlace): number | null {
  if (position === undefined) return null;
  if (error_subtype !== 'SYNTAX_ERROR') return positionOfByte(sql, Number(position));
  return [...sql].slice(0, Number(position)).join('').length;
}

/** Translates an offset in bytes of UTF-8, or returns null if it is outside the text. */
export function positionOfByte(sql: string, byte: number): number | null {
  const bytes = Buffer.from(sql);
  return byte <= bytes.length ? bytes.toString('utf8', 0, byte).length : null;
}
