// `headgate export`: writes the records of a type, or of all types, as CSV, NDJSON or Parquet.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import type { HeadgateClient } from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import type { Call } from './call.ts';
import { connect, type Server } from './connect.ts';
import {
  type Content,
  type ExportFormat,
  exportFormats,
  type PieceCallbacks,
  parquetTable,
  piecesOf,
} from './exported-records.ts';
import { type ExitCode, exitCodes, failed, type Io, misused } from './io.ts';
import { shown } from './load/display.ts';
import {
  isParquetName,
  loadOrder,
  mustBeType,
  POSITION_FILE,
  readFileName,
  typeNamed,
} from './load/file-types.ts';
import { makeFolder } from './make-folder.ts';
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
import { writeParquetOutput } from './parquet-output.ts';
import { readPosition, showPosition } from './position.ts';
import { type ProgressLine, progressLine } from './progress.ts';
import { untilSignal } from './stop-signal.ts';

interface Writing {
  readonly isPacked: boolean;
  readonly mayReplace: boolean;
}

interface Choices extends Content, Writing {
  readonly out: string | null;
}

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

  return untilSignal(async (signal) => {
    const progress = progressOf(io, choices.out === null);
    let position = choices.since;
    const callbacks = {
      onRecords: (total: number) => progress?.show(progressText(choices, total)),
      onPosition(next: string) {
        position = next;
      },
    };
    let count: number | Failure;
    try {
      count = await write(server.client, choices, destination, choices, signal, callbacks);
    } catch (error) {
      const sentence = whyNotWritten(error, server.url, choices.out);
      return failed(
        io,
        destination?.isStream === false ? `${sentence}; ${choices.out} was not written` : sentence,
      );
    } finally {
      progress?.end();
    }
    if (count instanceof Failure) return failed(io, count);
    if (choices.out !== null) io.err(`${shown(count)} ${choices.type} are in ${choices.out}`);
    if (position !== null) showPosition(io, 'since', position);
    return exitCodes.done;
  });
}

/** Writes the records to the destination, or to standard output if it is null. Resolves to the number of records. */
async function write(
  client: HeadgateClient,
  content: Content,
  destination: Destination | null,
  { isPacked, mayReplace }: Writing,
  signal: AbortSignal,
  callbacks: PieceCallbacks,
): Promise<number | Failure> {
  let count = 0;
  const pieces = piecesOf(client, content, signal, {
    ...callbacks,
    onRecords(total) {
      count = total;
      callbacks.onRecords(total);
    },
  });
  if (content.format === 'parquet') {
    const table = parquetTable(content);
    // A record that changes while changes are read comes again.
    const hasVersions = content.since !== null;
    return writeParquetOutput(pieces, { table, hasVersions, destination, mayReplace }, signal);
  }
  if (destination === null) await writeToOutput(pieces);
  else if (destination.isStream) await writeTo(destination.path, 'a', pieces, isPacked);
  else {
    const taken = await writeToFile(pieces, destination, { isPacked, mayReplace });
    if (taken !== null) return new Failure(taken);
  }
  return count;
}

/** A Parquet file is written only when all records have been read. */
function progressText({ type, format }: Content, total: number): string {
  return `${type}: ${shown(total)} ${format === 'parquet' ? 'read' : 'written'}`;
}

/** `headgate export all`: writes the records of all types to a folder, and the position of the ledger. */
export async function exportAll(call: Call): Promise<ExitCode> {
  const { io, args, option, isOn } = call;
  const folder = args[0]!;
  const mayReplace = isOn('force');
  const given = option('since');
  const since = given === undefined ? null : readPosition('since', given);
  if (since instanceof Failure) return misused(io, since);
  const format = formatNamed(option('format') ?? 'ndjson');
  if (format instanceof Failure) return misused(io, format);
  const hasTextIds = isOn('text-ids');
  if (hasTextIds && format !== 'parquet') return misused(io, textIdsMisused);
  const server = await connect(call, 'export all');
  if (server instanceof Failure) return misused(io, server);
  const destinations = destinationsIn(folder, format, mayReplace);
  if (destinations instanceof Failure) return failed(io, destinations);
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(io, reason);
  return untilSignal(async (signal) => {
    const progress = progressOf(io, false);
    try {
      makeFolder(folder);
      // Noted before anything is read, so that changes that are made meanwhile come after the position.
      const position = String(await server.client.latest({ signal }));
      const content = { format, since, hasTextIds };
      const count = await writeAll(server, destinations, content, mayReplace, position, signal, progress);
      if (count instanceof Failure) return failed(io, count);
      io.err(`${shown(count)} records and interactions are in ${folder}`);
      showPosition(io, 'since', position);
      return exitCodes.done;
    } catch (error) {
      return failed(io, `${whyNotWritten(error, server.url, folder)}; ${folder} is not complete`);
    } finally {
      progress?.end();
    }
  });
}

/** Returns the files of all types and of the position, or a Failure if one of them cannot be written. */
function destinationsIn(
  folder: string,
  format: ExportFormat,
  mayReplace: boolean,
): ReadonlyMap<string, Destination> | Failure {
  const others = exportFormats.filter((other) => other !== format);
  for (const name of loadOrder.flatMap((type) => others.map((other) => `${type}.${other}`))) {
    // The position would not apply to it.
    if (!existsSync(join(folder, name))) continue;
    return new Failure(`${folder} has ${name}, which is in another format; name another folder`);
  }
  const destinations = new Map<string, Destination>();
  for (const name of [...loadOrder.map((type) => `${type}.${format}`), POSITION_FILE]) {
    const destination = destinationOf(join(folder, name), mayReplace, 'folder');
    if (destination instanceof Failure) return destination;
    destinations.set(name, destination);
  }
  return destinations;
}

/** Writes all types, then the position. Resolves to the number of records, or to a Failure if a file's name is taken. */
async function writeAll(
  { client }: Server,
  destinations: ReadonlyMap<string, Destination>,
  given: Pick<Content, 'format' | 'since' | 'hasTextIds'>,
  mayReplace: boolean,
  position: string,
  signal: AbortSignal,
  progress: ProgressLine | null,
): Promise<number | Failure> {
  let count = 0;
  const how = { isPacked: false, mayReplace };
  // Until all files are replaced, the folder must not have the position of an earlier export.
  if (mayReplace) await rm(destinations.get(POSITION_FILE)!.path, { force: true });
  for (const type of loadOrder) {
    // Deleted records are included, because other records may refer to them.
    const content = { ...given, type, includeDeleted: true, isForSpreadsheet: false };
    const onRecords = (total: number): void => progress?.show(progressText(content, total));
    const destination = destinations.get(`${type}.${given.format}`)!;
    const written = await write(client, content, destination, how, signal, { onRecords });
    if (written instanceof Failure) return written;
    count += written;
  }
  // Written last, so that a folder with a position is complete.
  const taken = await writeToFile([`${position}\n`], destinations.get(POSITION_FILE)!, how);
  return taken === null ? count : new Failure(taken);
}

const textIdsMisused = '--text-ids is for Parquet; give --format parquet';

function formatNamed(word: string): ExportFormat | Failure {
  return (
    exportFormats.find((known) => known === word) ??
    new Failure(`--format must be one of ${exportFormats.join(', ')}, not ${quote(word)}`)
  );
}

function readChoices({ io, args, option, isOn }: Call): Choices | Failure {
  const word = args[0]!;
  const type = typeNamed(word);
  if (type === null) {
    return new Failure(`TYPE ${mustBeType(word)}`);
  }
  const out = outOption(option('out'));
  const named = out === null ? null : readFileName(out);
  const formatOfName = out !== null && isParquetName(out) ? 'parquet' : (named?.format ?? null);
  const format = formatNamed(option('format') ?? (formatOfName === 'json' ? null : formatOfName) ?? 'ndjson');
  if (format instanceof Failure) return format;
  if (format !== 'csv' && isOn('spreadsheet-safe')) return new Failure(spreadsheetSafeMisused);
  if (out === '') return new Failure('--out must be the path of a file');
  if (format !== 'parquet' && isOn('text-ids')) return new Failure(textIdsMisused);
  if (formatOfName !== null && formatOfName !== format) {
    return new Failure(
      `--out ${quote(out)} has the name of a ${formatOfName} file, and the format is ${format}`,
    );
  }
  if (format === 'parquet' && out !== null && /\.(?:gz|zst|br)$/i.test(out)) {
    return new Failure(`Parquet is compressed already; give a name that ends in .parquet, not ${quote(out)}`);
  }
  if (format === 'parquet' && out === null && io.outWidthCharacters !== undefined) {
    return new Failure('a terminal cannot show Parquet; give --out FILE.parquet, or another format');
  }
  if (named?.compression === 'zst' || named?.compression === 'br') {
    return new Failure(
      `--out ${quote(out)} would have to be packed; export packs with gzip only, for names that end in .gz`,
    );
  }
  const isPacked = named?.compression === 'gz';
  const position = option('since');
  const since = position === undefined ? null : readPosition('since', position);
  if (since instanceof Failure) return since;
  return {
    type,
    format,
    since,
    out,
    isPacked,
    mayReplace: isOn('force'),
    includeDeleted: isOn('include-deleted'),
    isForSpreadsheet: isOn('spreadsheet-safe'),
    hasTextIds: isOn('text-ids'),
  };
}

/** Returns null if there is no terminal, or if the records themselves are written to the terminal. */
function progressOf(io: Io, isToOutput: boolean): ProgressLine | null {
  const isInTheWay = isToOutput && process.stdout.isTTY === true;
  return io.isTerminal && !isInTheWay ? progressLine(io) : null;
}
