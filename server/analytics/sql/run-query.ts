// Runs a checked query as a stream of rows, or writes its rows to a Parquet file.

import {
  type DuckDBConnection,
  type DuckDBDataChunk,
  type DuckDBPreparedStatement,
  type DuckDBResult,
  type DuckDBType,
  DuckDBTypeId,
  StatementType,
} from '@duckdb/node-api';
import { BEGIN_READING } from '../duckdb.ts';
import { QueryClock } from './query-clock.ts';
import { isStuck, QueryFailed, type QueryFailure } from './query-errors.ts';

/** Reading and writing a column takes time even if there are no rows, and the queries of others wait meanwhile. */
const MOST_COLUMNS = 2000;

/**
 * The length of the names and types of all columns together. A short query can repeat long names thousands of times, and
 * the queries of others wait while they are written.
 */
const MOST_COLUMNS_CHARACTERS = 1_000_000;

/** A value for a parameter of a query. */
export type QueryParameter = string | number | boolean | null;

export interface QueryColumn {
  readonly name: string;
  /** DuckDB's name of the type, for example `DECIMAL(18,2)` or `VARCHAR[]`. */
  readonly type: string;
}

export interface QueryLimits {
  /** Limits the time that DuckDB spends, not the time that the reader of the rows spends between two chunks. */
  readonly withinMs: number;
  /** After this many rows, the result ends and is truncated. */
  readonly maxRows?: number;
  /** Stops the query, for example when the client has left. */
  readonly signal?: AbortSignal;
}

/** Some rows of a result. */
export interface QueryRows {
  readonly chunk: DuckDBDataChunk;
  /** The number of the chunk's first rows that belong to the result. */
  readonly count: number;
}

export interface RunningQuery {
  readonly kind: 'running';
  readonly columns: readonly QueryColumn[];
  readonly types: readonly DuckDBType[];
  /** Yields the rows. Can be read once, and throws a QueryFailed if the query fails. */
  readonly rows: AsyncIterable<QueryRows>;
  /** The number of rows that have been yielded. */
  rowCount(): number;
  /** Whether the row limit has ended the result. */
  isTruncated(): boolean;
}

/**
 * Starts a query that `checkQuery` has allowed, and resolves when its first rows are there. The connection must be in a
 * transaction that can only read, which ends with the query. It must not be used for anything else until then.
 */
export async function runQuery(
  connection: DuckDBConnection,
  sql: string,
  parameters: readonly QueryParameter[],
  limits: QueryLimits,
): Promise<RunningQuery | QueryFailure> {
  const clock = new QueryClock(connection, sql, limits);
  try {
    const started = await startQuery(connection, sql, parameters, clock);
    return new ResultStream(connection, clock, started, limits.maxRows ?? Number.POSITIVE_INFINITY);
  } catch (error) {
    return await failureOf(error, connection);
  }
}

/** Returns the failure of a query that did not start, and ends its transaction. Throws any other error. */
async function failureOf(error: unknown, connection: DuckDBConnection): Promise<QueryFailure> {
  const failure = error instanceof QueryFailed ? error.failure : null;
  // A stuck query would delay the end of its transaction too.
  if (!isStuck(failure)) await connection.run('ROLLBACK');
  if (failure === null) throw error;
  return failure;
}

/**
 * Writes the rows of a checked query to a Parquet file, which must be in the export folder. The connection must be in a
 * transaction that can only read, which ends with the query.
 */
export async function writeParquet(
  connection: DuckDBConnection,
  sql: string,
  parameters: readonly QueryParameter[],
  path: string,
  limits: Omit<QueryLimits, 'maxRows'>,
): Promise<{ readonly kind: 'written'; readonly rowCount: number } | QueryFailure> {
  const prefix = 'COPY (';
  const hasSemicolon = sql.includes(';');
  const inner = hasSemicolon ? await withoutSemicolons(connection, sql) : sql;
  const options = `FORMAT parquet, COMPRESSION zstd${mayHaveOrder(sql) ? '' : ', PRESERVE_ORDER false'}`;
  // The line feed ends a comment at the end of the query.
  const copy = `${prefix}${inner}\n) TO '${path.replaceAll("'", "''")}' (${options})`;
  const clock = new QueryClock(connection, copy, limits);
  try {
    const statement = await clock.wait(() => connection.prepare(copy));
    try {
      bind(statement, StatementType.COPY, parameters);
      const result = await clock.wait(() => statement.run());
      await connection.run('ROLLBACK');
      return { kind: 'written', rowCount: result.rowsChanged };
    } finally {
      if (!clock.isStuck) statement.destroySync();
    }
  } catch (error) {
    const failure = await failureOf(error, connection);
    if (failure.kind !== 'invalid' || failure.position === null) return failure;
    const position = failure.position - prefix.length;
    return { ...failure, position: hasSemicolon || position < 0 || position > sql.length ? null : position };
  }
}

/**
 * Returns whether a query may contain ORDER BY. If not, its file has any order: to keep the order of a table, DuckDB would
 * collect the rows in memory. PRESERVE_ORDER false would ignore ORDER BY too. A digit may stand directly before the word.
 */
function mayHaveOrder(sql: string): boolean {
  return /(?<![a-z_])order(?!\w)/i.test(sql);
}

/** A semicolon ends a statement, so a query in parentheses cannot contain one. DuckDB writes the query without it. */
async function withoutSemicolons(connection: DuckDBConnection, sql: string): Promise<string> {
  const rewrite = 'SELECT json_deserialize_sql(json_serialize_sql(?::VARCHAR))';
  const reader = await connection.runAndReadAll(rewrite, [sql]);
  return String(reader.getRowsJS()[0]![0]);
}

interface StartedQuery {
  readonly statement: DuckDBPreparedStatement;
  readonly result: DuckDBResult;
  readonly columns: readonly QueryColumn[];
  readonly types: readonly DuckDBType[];
  readonly first: DuckDBDataChunk | null;
}

async function startQuery(
  connection: DuckDBConnection,
  sql: string,
  parameters: readonly QueryParameter[],
  clock: QueryClock,
): Promise<StartedQuery> {
  const statement = await clock.wait(() => connection.prepare(sql));
  try {
    bind(statement, StatementType.SELECT, parameters);
    const result = await clock.wait(() => statement.stream());
    const described = columnsOf(result);
    // Most errors in the data come to light here, when the failure can still be returned.
    const first = await clock.wait(() => result.fetchChunk());
    return { statement, result, ...described, first };
  } catch (error) {
    // DuckDB still uses the statement of a stuck query.
    if (!clock.isStuck) statement.destroySync();
    throw error;
  }
}

/** Returns the columns of a result. Throws if they cannot be sent. */
function columnsOf(result: DuckDBResult): Pick<StartedQuery, 'columns' | 'types'> {
  const columns: QueryColumn[] = [];
  const types: DuckDBType[] = [];
  let characters = 0;
  const { columnCount } = result;
  if (columnCount > MOST_COLUMNS) {
    throw tooLarge(`The query has ${columnCount} columns. A result may have at most ${MOST_COLUMNS}.`);
  }
  for (let index = 0; index < columnCount; index++) {
    const name = result.columnName(index);
    const type = result.columnType(index);
    if (hasUnnamedFields(type)) {
      throw invalid(`The values of the column "${name}" have fields without names. Use {'name': value}.`);
    }
    const column = { name, type: typeName(type) };
    characters += column.name.length + column.type.length;
    if (characters > MOST_COLUMNS_CHARACTERS) {
      throw tooLarge(
        `The names and types of the columns have more than ${MOST_COLUMNS_CHARACTERS} characters.`,
      );
    }
    columns.push(column);
    types.push(type);
  }
  return { columns, types };
}

/** Binds the parameters of a statement. Throws a QueryFailed if it is not of the type, or if their number is wrong. */
export function bind(
  statement: DuckDBPreparedStatement,
  type: StatementType,
  parameters: readonly QueryParameter[],
): void {
  if (statement.statementType !== type)
    throw invalid('Only one SELECT statement can run. A query can only read.');
  const expected = statement.parameterCount;
  if (expected !== parameters.length) {
    throw invalid(
      `The query has ${count(expected, 'parameter')}, but params has ${count(parameters.length, 'value')}.`,
    );
  }
  parameters.forEach((value, index) => {
    const parameter = index + 1;
    if (value === null) statement.bindNull(parameter);
    else if (typeof value === 'string') statement.bindVarchar(parameter, value);
    else if (typeof value === 'boolean') statement.bindBoolean(parameter, value);
    else if (!Number.isSafeInteger(value) || Object.is(value, -0)) statement.bindDouble(parameter, value);
    else if (value === (value | 0)) statement.bindInteger(parameter, value);
    else statement.bindBigInt(parameter, BigInt(value));
  });
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function invalid(message: string): QueryFailed {
  return new QueryFailed({ kind: 'invalid', message, position: null });
}

function tooLarge(message: string): QueryFailed {
  return new QueryFailed({ kind: 'too_large', message });
}

/** Returns whether values of the type have fields without names, of which DuckDB's library keeps only the last one. */
function hasUnnamedFields(type: DuckDBType): boolean {
  switch (type.typeId) {
    case DuckDBTypeId.STRUCT:
      return type.entryNames.includes('') || type.entryTypes.some(hasUnnamedFields);
    case DuckDBTypeId.UNION:
      return type.memberTypes.some(hasUnnamedFields);
    case DuckDBTypeId.LIST:
    case DuckDBTypeId.ARRAY:
      return hasUnnamedFields(type.valueType);
    case DuckDBTypeId.MAP:
      return hasUnnamedFields(type.keyType) || hasUnnamedFields(type.valueType);
    default:
      return false;
  }
}

/** The rows of a query that has started. */
class ResultStream implements RunningQuery {
  readonly kind = 'running';
  readonly columns: readonly QueryColumn[];
  readonly types: readonly DuckDBType[];
  readonly rows: AsyncIterable<QueryRows>;
  #rowCount = 0;
  #isTruncated = false;

  constructor(connection: DuckDBConnection, clock: QueryClock, started: StartedQuery, maxRows: number) {
    this.columns = started.columns;
    this.types = started.types;
    this.rows = this.#read(connection, clock, started, maxRows);
  }

  rowCount(): number {
    return this.#rowCount;
  }

  isTruncated(): boolean {
    return this.#isTruncated;
  }

  async *#read(
    connection: DuckDBConnection,
    clock: QueryClock,
    { statement, result, first }: StartedQuery,
    maxRows: number,
  ): AsyncGenerator<QueryRows> {
    let isEnded = false;
    try {
      let chunk = first;
      while (chunk !== null && chunk.rowCount > 0) {
        const left = maxRows - this.#rowCount;
        const count = Math.min(chunk.rowCount, left);
        this.#isTruncated = chunk.rowCount > left;
        this.#rowCount += count;
        if (count > 0) yield { chunk, count };
        if (this.#isTruncated) return;
        chunk = await clock.wait(() => result.fetchChunk());
      }
      isEnded = await endIfComplete(connection);
      if (!isEnded) await this.#failAgain(connection, clock, statement);
    } finally {
      if (!clock.isStuck) {
        // This also ends a query of which not all rows have been read.
        if (!isEnded) await connection.run('ROLLBACK');
        statement.destroySync();
      }
    }
  }

  /** DuckDB's library does not say why the rows ended early, so the query runs again until it throws the error. */
  async #failAgain(
    connection: DuckDBConnection,
    clock: QueryClock,
    statement: DuckDBPreparedStatement,
  ): Promise<never> {
    await connection.run('ROLLBACK');
    await connection.run(BEGIN_READING);
    await clock.wait(() => statement.run());
    throw invalid(`The query failed after ${count(this.#rowCount, 'row')}.`);
  }
}

/**
 * Ends the transaction. Returns false if the query has failed after its first rows: DuckDB's library then ends the rows as
 * if they were complete, but the transaction runs no further query.
 */
async function endIfComplete(connection: DuckDBConnection): Promise<boolean> {
  try {
    await connection.run('SELECT 1; ROLLBACK');
    return true;
  } catch {
    return false;
  }
}

/** Returns DuckDB's name of a type. A type such as JSON is an alias of another. */
function typeName(type: DuckDBType): string {
  return type.alias ?? type.toString();
}
