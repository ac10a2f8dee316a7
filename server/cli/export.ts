// `headgate export`: writes all records of a type, or all interactions, in a format that `load` accepts.

import { createWriteStream, lstatSync, realpathSync, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { AbortedError, type HeadgateClient, HeadgateError } from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import { printableLines } from '../printable.ts';
import { companionOf, isDatabase } from '../store/sqlite/database-files.ts';
import type { Call } from './call.ts';
import { connect, whyFailed } from './connect.ts';
import { type CsvValue, csvLine, spreadsheetSafe } from './csv-lines.ts';
import { type ExitCode, exitCodes, failed, type Io, misused } from './io.ts';
import { shown } from './load/display.ts';
import {
  fieldsOf,
  INTERACTIONS,
  type LoadType,
  mustBeType,
  readFileName,
  typeNamed,
} from './load/file-types.ts';
import { type ProgressLine, progressLine } from './progress.ts';

type Format = 'csv' | 'ndjson';

interface Choices {
  readonly type: LoadType;
  readonly format: Format;
  readonly out: string | null;
  readonly isPacked: boolean;
  readonly mayReplace: boolean;
  readonly includeDeleted: boolean;
  readonly isForSpreadsheet: boolean;
}

/** Text is collected up to this length before it is written. */
const PIECE_CHARACTERS = 64 * 1024;

/**
 * Paths that mean standard output. They are not opened, because standard output may be a socket, which cannot be opened
 * a second time. The export writes to the stream that is already open.
 */
const namesOfOutput: readonly string[] = ['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'];

export async function exportRecords(call: Call): Promise<ExitCode> {
  const { io } = call;
  const choices = readChoices(call);
  if (choices instanceof Failure) return misused(io, choices);
  const destination = choices.out === null ? null : destinationOf(choices.out, choices.mayReplace);
  if (destination instanceof Failure) return failed(io, destination);
  const server = await connect(call, 'export');
  if (server instanceof Failure) return misused(io, server);
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(io, reason);

  const interruption = new AbortController();
  const onSignal = (): void => interruption.abort();
  // Only the first signal of each kind is handled. A second one kills the process, even if the export is waiting for a
  // pipe that nobody reads.
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const progress = progressOf(io, choices);
  let count = 0;
  const pieces = piecesOf(server.client, choices, interruption.signal, (total) => {
    count = total;
    progress?.show(`${choices.type}: ${shown(total)} written`);
  });
  try {
    if (destination === null) await writeToOutput(pieces);
    else if (destination.isStream) await writeTo(destination.path, 'a', pieces, choices.isPacked);
    else {
      const taken = await writeToFile(pieces, destination, choices);
      if (taken !== null) return failed(io, taken);
    }
  } catch (error) {
    const sentence = whyNotWritten(error, server.url, choices.out);
    return failed(
      io,
      destination?.isStream === false ? `${sentence}; ${choices.out} was not written` : sentence,
    );
  } finally {
    progress?.end();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
  if (choices.out !== null) io.err(`${shown(count)} ${choices.type} are in ${choices.out}`);
  return exitCodes.done;
}

function readChoices({ args, option, isOn }: Call): Choices | Failure {
  const word = args[0]!;
  const type = typeNamed(word);
  if (type === null) {
    return new Failure(`TYPE ${mustBeType(word)}`);
  }
  const given = option('out') ?? null;
  const out = given !== null && namesOfOutput.includes(given) ? null : given;
  const named = out === null ? null : readFileName(out);
  const formatOfName = named === null || named.format === 'json' ? null : named.format;
  const format = option('format') ?? formatOfName ?? 'ndjson';
  if (format !== 'csv' && format !== 'ndjson')
    return new Failure(`--format must be csv or ndjson, not ${quote(format)}`);
  if (format !== 'csv' && isOn('spreadsheet-safe'))
    return new Failure('--spreadsheet-safe is for CSV; give --format csv');
  if (out === '') return new Failure('--out must be the path of a file');
  if (named !== null && formatOfName !== format) {
    return new Failure(
      `--out ${quote(out)} has the name of a ${named.format} file, and the format is ${format}`,
    );
  }
  if (named?.compression === 'zst' || named?.compression === 'br') {
    return new Failure(
      `--out ${quote(out)} would have to be packed; export packs with gzip only, for names that end in .gz`,
    );
  }
  const isPacked = named?.compression === 'gz';
  return {
    type,
    format,
    out,
    isPacked,
    mayReplace: isOn('force'),
    includeDeleted: isOn('include-deleted'),
    isForSpreadsheet: isOn('spreadsheet-safe'),
  };
}

/** Returns null if there is no terminal, or if the records themselves are written to the terminal. */
function progressOf(io: Io, { out }: Choices): ProgressLine | null {
  const isInTheWay = out === null && process.stdout.isTTY === true;
  return io.isTerminal && !isInTheWay ? progressLine(io) : null;
}

async function* piecesOf(
  client: HeadgateClient,
  { type, format, includeDeleted, isForSpreadsheet }: Choices,
  signal: AbortSignal,
  onWritten: (total: number) => void,
): AsyncGenerator<string, void> {
  const names = Object.keys(fieldsOf(type));
  const records: AsyncIterable<object> =
    type === INTERACTIONS ? client.interactions({ signal }) : client.list(type, { signal, includeDeleted });
  const cellOf = isForSpreadsheet ? spreadsheetSafe : (value: CsvValue) => value;
  let piece = format === 'csv' ? csvLine(names) : '';
  let total = 0;
  for await (const record of records) {
    const values = record as Readonly<Record<string, CsvValue>>;
    // Only the fields that `load` accepts are written. `occurred_at` is not, because it follows from event_timestamp.
    piece +=
      format === 'csv'
        ? csvLine(names.map((name) => cellOf(values[name] ?? null)))
        : `${JSON.stringify(values, names)}\n`;
    total++;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
    onWritten(total);
  }
  yield piece;
  onWritten(total);
}

/** Writes only as fast as the output is read, and leaves standard output open. */
async function writeToOutput(pieces: AsyncGenerator<string, void>): Promise<void> {
  // A program gets the records unchanged. For a terminal, control characters are escaped, because it would run them.
  const shownPieces = process.stdout.isTTY === true ? printablePieces(pieces) : pieces;
  await pipeline(shownPieces, process.stdout, { end: false });
}

async function* printablePieces(pieces: AsyncIterable<string>): AsyncGenerator<string, void> {
  for await (const piece of pieces) yield printableLines(piece);
}

interface Destination {
  readonly out: string;
  /** The path to write to. If `out` is a symbolic link, this is the link's target, so that the link is kept. */
  readonly path: string;
  /** Whether `out` is a pipe or a device. Then no temporary file is used. */
  readonly isStream: boolean;
}

/** Returns where the export is written, or a Failure if it cannot be written there. */
function destinationOf(out: string, mayReplace: boolean): Destination | Failure {
  try {
    const found = statSync(out, { throwIfNoEntry: false });
    // Only regular files are resolved, because a pipe such as /dev/fd/3 has no real path.
    const path = found?.isFile() ? realpathSync(out) : out;
    const isOfDatabase = isDatabase(path) ? 'is' : companionOf(path) === null ? null : 'belongs to';
    if (isOfDatabase !== null) {
      return new Failure(
        `${out} ${isOfDatabase} a database, which an export never replaces; name another file`,
      );
    }
    if (found?.isFIFO() || found?.isCharacterDevice() || /^\/(dev|proc)\//.test(resolve(out))) {
      return { out, path: out, isStream: true };
    }
    if (found !== undefined && !found.isFile())
      return new Failure(`${out} cannot be written: it is not a file`);
    // lstat does not follow links, so a link whose target is missing also counts as an existing file.
    if (!mayReplace && lstatSync(out, { throwIfNoEntry: false }) !== undefined) {
      return new Failure(`${out} exists already; name another file, or give --force to replace it`);
    }
    return { out, path, isStream: false };
  } catch (error) {
    return new Failure(`${out} cannot be written: ${(error as Error).message}`);
  }
}

/**
 * Writes a temporary file, and renames it when it is complete. Resolves to a sentence if the final name was taken in
 * the meantime, otherwise to null.
 */
async function writeToFile(
  pieces: AsyncGenerator<string, void>,
  { out, path }: Destination,
  { isPacked, mayReplace }: Choices,
): Promise<string | null> {
  const part = `${path}.${process.pid}.part`;
  try {
    await writeTo(part, 'wx', pieces, isPacked);
    const destination = destinationOf(out, mayReplace);
    if (destination instanceof Failure) return destination.reason;
    await rename(part, path);
    return null;
  } finally {
    await rm(part, { force: true });
  }
}

async function writeTo(
  path: string,
  flags: string,
  pieces: AsyncGenerator<string, void>,
  isPacked: boolean,
): Promise<void> {
  const file = createWriteStream(path, { flags });
  if (isPacked) await pipeline(pieces, createGzip(), file);
  else await pipeline(pieces, file);
}

function whyNotWritten(error: unknown, url: string, out: string | null): string {
  if (error instanceof AbortedError) return 'the export was interrupted';
  if (error instanceof HeadgateError) return whyFailed(error, url);
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  if (code === 'EPIPE') return 'the reader of the output has closed it';
  return `${out ?? 'the output'} cannot be written: ${message}`;
}
