// Says in which ways a query can fail, and reads DuckDB's errors, which are JSON in a replica.

export type QueryFailure =
  | { readonly kind: 'invalid'; readonly message: string; readonly position: number | null }
  /** If the query is stuck, DuckDB did not stop it, and only the end of the process will. */
  | { readonly kind: 'too_slow'; readonly message: string; readonly isStuck: boolean }
  | { readonly kind: 'too_large'; readonly message: string }
  | { readonly kind: 'cancelled'; readonly message: string; readonly isStuck: boolean };

/** Returns whether DuckDB did not stop the query. Anything else than such a failure is not stuck. */
export function isStuck(result: object | null): boolean {
  return result !== null && 'isStuck' in result && result.isStuck === true;
}

/** Thrown while the rows are read, when it is too late to return the failure. */
export class QueryFailed extends Error {
  readonly failure: QueryFailure;

  constructor(failure: QueryFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

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
  const position = positionOfError(sql, parsed);
  const message = withHint(parsed.exception_message.trim(), sql, position);
  return { type: parsed.exception_type, message, position };
}

/** Many people write a text in double quotes, in which SQL has the names of columns. */
function withHint(message: string, sql: string, position: number | null): string {
  if (!message.startsWith('Referenced column') || position === null) return message;
  const [, name] = /^"([^"]+)"/.exec(sql.slice(position)) ?? [];
  if (name === undefined) return message;
  return `${message}\nTexts are in single quotes: '${name.replaceAll("'", "''")}'`;
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
