// `headgate sql`: runs a query on the server and prints its result as a table, or passes on the server's response.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  AbortedError,
  type AsOf,
  RefusedError,
  type SqlFormat,
  type SqlParam,
  type SqlResult,
} from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import type { Call } from './call.ts';
import { connect, type Server } from './connect.ts';
import { readInput } from './input-file.ts';
import { type ExitCode, exitCodes, failed, type Io, misused } from './io.ts';
import { shown } from './load/display.ts';
import { missingData } from './missing-data.ts';
import { spreadsheetSafeMisused } from './options.ts';
import {
  type Destination,
  destinationOf,
  outOption,
  whyNotWritten,
  writeTo,
  writeToFile,
  writeToOutput,
} from './output.ts';
import { placeInQuery } from './query-place.ts';
import { resultTable } from './result-table.ts';
import { untilSignal } from './stop-signal.ts';

interface Query {
  readonly sql: string;
  readonly params: readonly SqlParam[];
}

/** How the result is written. A table goes to standard output. */
type Choices =
  | { readonly format: 'table' }
  | {
      readonly format: SqlFormat;
      /** Null for standard output. */
      readonly destination: Destination | null;
      readonly isPacked: boolean;
      readonly mayReplace: boolean;
      readonly spreadsheetSafe: boolean;
    };

const formats: readonly SqlFormat[] = ['csv', 'ndjson', 'parquet', 'json'];

export async function sql(call: Call): Promise<ExitCode> {
  const { io } = call;
  const chosen = readFormat(call);
  if (chosen instanceof Failure) return misused(io, chosen);
  if (chosen.format !== 'csv' && call.isOn('spreadsheet-safe')) return misused(io, spreadsheetSafeMisused);
  const choices = readChoices(call, chosen);
  if (choices instanceof Failure) return failed(io, choices);
  const server = await connect(call, 'sql');
  if (server instanceof Failure) return misused(io, server);
  const statement = await readStatement(call);
  if (statement instanceof Failure) return misused(io, statement);
  if (statement.trim() === '') return misused(io, 'the query is empty');
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(io, reason);
  const query = { sql: statement, params: call.optionAll('param').map(paramOf) };
  return untilSignal(async (signal) => {
    try {
      if (choices.format === 'table') {
        const control = { signal, onRetry: server.onRetry };
        showTable(io, await server.client.sql(query.sql, query.params, control));
        return exitCodes.done;
      }
      return await passOn(io, server, query, choices, signal);
    } catch (error) {
      return reportError(io, error, server, query, call.option('out') ?? null);
    }
  });
}

/** Returns the format and whether the file is compressed, or a Failure if the command line is wrong. */
function readFormat({
  io,
  option,
}: Call): { readonly format: SqlFormat | 'table'; readonly isPacked: boolean } | Failure {
  const given = option('format');
  const known = formats.find((format) => format === given);
  if (given !== undefined && known === undefined) {
    return new Failure(`--format must be one of ${formats.join(', ')}, not ${quote(given)}`);
  }
  const out = outOption(option('out'));
  if (out === '') return new Failure('--out must be the path of a file');
  if (out === null) {
    if (known === 'parquet' && io.outWidthCharacters !== undefined) {
      return new Failure('a terminal cannot show Parquet; give --out FILE.parquet, or another format');
    }
    return { format: known ?? 'table', isPacked: false };
  }
  const [, ending, packing] = /\.(csv|ndjson|jsonl|parquet|json)(\.gz)?$/i.exec(out) ?? [];
  const named = ending?.toLowerCase().replace('jsonl', 'ndjson') as SqlFormat | undefined;
  if (known !== undefined && named !== undefined && known !== named) {
    return new Failure(`--out ${quote(out)} has the name of a ${named} file, and the format is ${known}`);
  }
  const format = known ?? named;
  if (format === undefined) {
    return new Failure(`the format of ${quote(out)} is not clear; give --format ${formats.join('|')}`);
  }
  if (format === 'parquet' && packing !== undefined) {
    return new Failure('Parquet is compressed already; give a name that does not end in .gz');
  }
  return { format, isPacked: /\.gz$/i.test(out) };
}

function readChoices(
  { option, isOn }: Call,
  { format, isPacked }: { readonly format: SqlFormat | 'table'; readonly isPacked: boolean },
): Choices | Failure {
  if (format === 'table') return { format };
  const out = outOption(option('out'));
  const mayReplace = isOn('force');
  const destination = out === null ? null : destinationOf(out, mayReplace);
  if (destination instanceof Failure) return destination;
  return { format, destination, isPacked, mayReplace, spreadsheetSafe: isOn('spreadsheet-safe') };
}

async function readStatement({ args, option }: Call): Promise<string | Failure> {
  const [given] = args;
  const file = option('file');
  if (given !== undefined && file !== undefined)
    return new Failure('sql takes QUERY or --file FILE, not both');
  if (given !== undefined) return given;
  if (file === undefined) return new Failure('sql needs QUERY, or --file FILE');
  return readInput(file);
}

/** Returns a number, boolean or null if the text is one in JSON, otherwise the text. */
function paramOf(text: string): SqlParam {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  // A number that would lose digits stays a text, which DuckDB converts exactly.
  if (typeof value === 'number')
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? text : value;
  return typeof value === 'boolean' || value === null ? value : text;
}

function showTable(io: Io, result: SqlResult): void {
  const { lines, leftOut, isCut } = resultTable(result, io.outWidthCharacters);
  for (const line of lines) io.out(line);
  const { row_count: count, truncated, as_of } = result;
  io.err(`${shown(count)} ${count === 1 ? 'row' : 'rows'}, as of entry ${as_of.seq}`);
  warnIfIncomplete(io, as_of);
  if (truncated) {
    io.err('there are more rows than the server sends as a table; --format csv has all of them');
  }
  if (leftOut.length > 0) io.err(`there is no room for ${leftOut.join(', ')}; select fewer columns`);
  else if (isCut) io.err('values that end in … are cut; --format csv has them in full');
}

function warnIfIncomplete(io: Io, asOf: AsOf | null): void {
  const missing = asOf === null ? null : missingData(asOf);
  if (missing !== null) io.err(missing);
}

async function passOn(
  io: Io,
  { client, onRetry }: Server,
  { sql, params }: Query,
  { format, destination, isPacked, mayReplace, spreadsheetSafe }: Exclude<Choices, { format: 'table' }>,
  signal: AbortSignal,
): Promise<ExitCode> {
  const options = { spreadsheetSafe, signal, onRetry };
  const { stream: result, as_of } = await client.sqlStream(sql, params, format, options);
  if (destination === null) await writeToOutput(result);
  else if (destination.isStream) await writeTo(destination.path, 'a', result, isPacked);
  else {
    const taken = await writeToFile(result, destination, { isPacked, mayReplace });
    if (taken !== null) return failed(io, taken);
    io.err(`the result is in ${destination.out}`);
  }
  warnIfIncomplete(io, as_of);
  return exitCodes.done;
}

function reportError(io: Io, error: unknown, { url }: Server, { sql }: Query, out: string | null): ExitCode {
  if (error instanceof AbortedError) return failed(io, 'the query was interrupted');
  const isOfQuery = error instanceof RefusedError && error.status === 400 && error.error !== null;
  if (!isOfQuery) return failed(io, whyNotWritten(error, url, out));
  const [first, ...others] = error.message.split('\n').filter((line) => line.trim() !== '');
  failed(io, first!);
  for (const line of others) io.err(line);
  if (error.position !== null) {
    for (const line of placeInQuery(sql, error.position, io.widthCharacters || undefined)) io.err(line);
  }
  return exitCodes.failed;
}
