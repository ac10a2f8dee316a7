// `headgate export`: writes the records of a type, or of all types, in a format that `load` accepts.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import type { HeadgateClient } from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import type { Call } from './call.ts';
import { connect, type Server } from './connect.ts';
import { type CsvValue, csvLine, spreadsheetSafe } from './csv-lines.ts';
import { type ExitCode, exitCodes, failed, type Io, misused } from './io.ts';
import { shown } from './load/display.ts';
import {
  fieldsOf,
  INTERACTIONS,
  type LoadType,
  loadOrder,
  mustBeType,
  POSITION_FILE,
  readFileName,
  typeNamed,
  uploadTypeOf,
} from './load/file-types.ts';
import { makeFolder } from './make-folder.ts';
import {
  type Destination,
  destinationOf,
  outOption,
  whyNotWritten,
  writeTo,
  writeToFile,
  writeToOutput,
} from './output.ts';
import { readPosition, showPosition } from './position.ts';
import { type ProgressLine, progressLine } from './progress.ts';
import { untilSignal } from './stop-signal.ts';

type Format = 'csv' | 'ndjson';

/** Which records are exported, and how they are written. */
interface Content {
  readonly type: LoadType;
  readonly format: Format;
  /** Only what has changed after this position, including what is marked as deleted. Null for everything. */
  readonly since: string | null;
  readonly includeDeleted: boolean;
  readonly isForSpreadsheet: boolean;
}

interface Choices extends Content {
  readonly out: string | null;
  readonly isPacked: boolean;
  readonly mayReplace: boolean;
}

/** Text is collected up to this length before it is written. */
const PIECE_CHARACTERS = 64 * 1024;

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
    let count = 0;
    let position = choices.since;
    const pieces = piecesOf(server.client, choices, signal, {
      onWritten(total) {
        count = total;
        progress?.show(`${choices.type}: ${shown(total)} written`);
      },
      onPosition(next) {
        position = next;
      },
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
    }
    if (choices.out !== null) io.err(`${shown(count)} ${choices.type} are in ${choices.out}`);
    if (position !== null) showPosition(io, 'since', position);
    return exitCodes.done;
  });
}

/** `headgate export all`: writes the records of all types to a folder, and the position of the ledger. */
export async function exportAll(call: Call): Promise<ExitCode> {
  const { io, args, option, isOn } = call;
  const folder = args[0]!;
  const mayReplace = isOn('force');
  const given = option('since');
  const since = given === undefined ? null : readPosition('since', given);
  if (since instanceof Failure) return misused(io, since);
  const server = await connect(call, 'export all');
  if (server instanceof Failure) return misused(io, server);
  const destinations = destinationsIn(folder, mayReplace);
  if (destinations instanceof Failure) return failed(io, destinations);
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(io, reason);
  return untilSignal(async (signal) => {
    const progress = progressOf(io, false);
    try {
      makeFolder(folder);
      // Noted before anything is read, so that changes that are made meanwhile come after the position.
      const position = String(await server.client.latest({ signal }));
      const count = await writeAll(server, destinations, { since, mayReplace }, position, signal, progress);
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
function destinationsIn(folder: string, mayReplace: boolean): ReadonlyMap<string, Destination> | Failure {
  const destinations = new Map<string, Destination>();
  for (const name of [...loadOrder.map((type) => `${type}.ndjson`), POSITION_FILE]) {
    const destination = destinationOf(join(folder, name), mayReplace);
    if (destination instanceof Failure) return destination;
    destinations.set(name, destination);
  }
  return destinations;
}

/** Writes all types, then the position. Resolves to the number of records, or to a Failure if a file's name is taken. */
async function writeAll(
  { client }: Server,
  destinations: ReadonlyMap<string, Destination>,
  { since, mayReplace }: { readonly since: string | null; readonly mayReplace: boolean },
  position: string,
  signal: AbortSignal,
  progress: ProgressLine | null,
): Promise<number | Failure> {
  let count = 0;
  const how = { isPacked: false, mayReplace };
  // Until all files are replaced, the folder must not have the position of an earlier export.
  if (mayReplace) await rm(destinations.get(POSITION_FILE)!.path, { force: true });
  for (const type of loadOrder) {
    let written = 0;
    const onWritten = (total: number): void => {
      written = total;
      progress?.show(`${type}: ${shown(total)} written`);
    };
    // Deleted records are included, because other records may refer to them.
    const content = { type, format: 'ndjson', since, includeDeleted: true, isForSpreadsheet: false } as const;
    const pieces = piecesOf(client, content, signal, { onWritten });
    const taken = await writeToFile(pieces, destinations.get(`${type}.ndjson`)!, how);
    if (taken !== null) return new Failure(taken);
    count += written;
  }
  // Written last, so that a folder with a position is complete.
  const taken = await writeToFile([`${position}\n`], destinations.get(POSITION_FILE)!, how);
  return taken === null ? count : new Failure(taken);
}

function readChoices({ args, option, isOn }: Call): Choices | Failure {
  const word = args[0]!;
  const type = typeNamed(word);
  if (type === null) {
    return new Failure(`TYPE ${mustBeType(word)}`);
  }
  const out = outOption(option('out'));
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
  };
}

/** Returns null if there is no terminal, or if the records themselves are written to the terminal. */
function progressOf(io: Io, isToOutput: boolean): ProgressLine | null {
  const isInTheWay = isToOutput && process.stdout.isTTY === true;
  return io.isTerminal && !isInTheWay ? progressLine(io) : null;
}

interface PieceCallbacks {
  onWritten(total: number): void;
  /** Called with the position after the changes that have been written. */
  onPosition?(position: string): void;
}

async function* piecesOf(
  client: HeadgateClient,
  content: Content,
  signal: AbortSignal,
  { onWritten, onPosition }: PieceCallbacks,
): AsyncGenerator<string, void> {
  const { type, format, isForSpreadsheet } = content;
  const names = Object.keys(fieldsOf(type));
  const cellOf = isForSpreadsheet ? spreadsheetSafe : (value: CsvValue) => value;
  let piece = format === 'csv' ? csvLine(names) : '';
  let total = 0;
  for await (const record of recordsOf(client, content, signal, onPosition)) {
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
