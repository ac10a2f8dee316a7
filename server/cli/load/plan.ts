// Finds the files of a load, and puts them in dependency order. Checks the beginning of each file before any record is
// sent.

import { existsSync, realpathSync } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { uploadTypes } from '@headgate/catalogue/record-types.ts';
import { type Column, CsvReader, columnsOf, readHeader } from './csv.ts';
import {
  type Format,
  fieldsOf,
  INTERACTIONS,
  isParquetName,
  knownEndings,
  type LoadType,
  loadOrder,
  type NamedFile,
  nearType,
  POSITION_FILE,
  readFileName,
  typeNamed,
  uploadTypeOf,
} from './file-types.ts';
import { firstRecordProblem, headerProblems } from './header.ts';
import { jsonAsLines } from './json-lines.ts';
import type { FilePosition, LineReader } from './line-reader.ts';
import { NdjsonReader } from './ndjson.ts';
import { PART_ENDING, unwrapped } from './rejected-form.ts';
import {
  type Compression,
  notText,
  openSource,
  type Source,
  Unreadable,
  whyUnreadable,
  withFirst,
} from './source.ts';

export interface PlannedFile {
  /** The path as the user would write it, for messages. */
  readonly path: string;
  readonly realPath: string;
  readonly type: LoadType;
  readonly format: Format;
  readonly compression: Compression | null;
  readonly sizeBytes: number;
  /** The columns of a CSV file. For other formats the list is empty. */
  readonly columns: readonly Column[];
  /** Where the records begin. */
  readonly start: FilePosition;
  /** Whether the file contains rejected records of an earlier load, judged by its first record. */
  readonly isOfRejected: boolean;
}

export interface FileProblem {
  readonly path: string;
  readonly line: number | null;
  readonly reason: string;
}

export interface LoadPlan {
  readonly files: readonly PlannedFile[];
  /** Files and folders that were skipped, because they are not data files named after a type. */
  readonly leftAlone: readonly string[];
  readonly problems: readonly FileProblem[];
}

interface Found {
  readonly path: string;
  readonly type: LoadType;
  readonly name: NamedFile;
}

export async function planLoad(
  paths: readonly string[],
  given: { readonly type: LoadType | null; readonly isLenient: boolean; readonly folder: string },
): Promise<LoadPlan> {
  const found: Found[] = [];
  const leftAlone: string[] = [];
  const problems: FileProblem[] = [];
  const rejectedFolder = realPathOrOwn(given.folder);
  for (const path of paths) {
    const some = await findFiles(path, given.type, rejectedFolder);
    if ('reason' in some) problems.push(some);
    else {
      found.push(...some.found);
      leftAlone.push(...some.leftAlone);
    }
  }
  const files = new Map<string, PlannedFile>();
  for (const file of found) {
    const planned = await lookAt(file, given.isLenient);
    if ('reason' in planned) problems.push(planned);
    else files.set(planned.realPath, planned);
  }
  const ordered = [...files.values()].sort((a, b) => loadOrder.indexOf(a.type) - loadOrder.indexOf(b.type));
  return { files: ordered, leftAlone, problems };
}

export const noParquet =
  'load does not read Parquet; export the records as NDJSON or CSV, or convert the file';

type FoundSome = { readonly found: readonly Found[]; readonly leftAlone: readonly string[] };

/** Returns the path with symbolic links resolved, or the absolute path if it does not exist. */
function realPathOrOwn(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

/**
 * Returns the file at a path, or the files in the folder at a path. The folder of rejected records is skipped if it is
 * inside that folder, because its records were loaded before.
 */
async function findFiles(
  path: string,
  type: LoadType | null,
  rejectedFolder: string,
): Promise<FoundSome | FileProblem> {
  try {
    if ((await stat(path)).isDirectory()) return await filesInFolder(path, type, rejectedFolder, true);
  } catch (error) {
    const cause = error as NodeJS.ErrnoException;
    return { path: cause.path ?? path, line: null, reason: whyUnreadable(cause, null) };
  }
  const name = readFileName(basename(path));
  if (name === null && isParquetName(path)) return { path, line: null, reason: noParquet };
  if (name === null) return { path, line: null, reason: `its name must end in ${knownEndings}` };
  const fileType = type ?? typeNamed(name.stem);
  if (fileType !== null) return { found: [{ path, type: fileType, name }], leftAlone: [] };
  const near = nearType(name.stem);
  const hint =
    near === null
      ? `give one of ${loadOrder.join(', ')} with --type`
      : `did you mean ${basename(path).replace(name.stem, near)}? Otherwise give --type`;
  return {
    path,
    line: null,
    reason: `a file's name must begin with its type, and there is no type ${quote(name.stem)}; ${hint}`,
  };
}

/**
 * Returns the data files in a folder. The type of a file is `type` if that is given. Otherwise the file or its folder
 * must be named after the type.
 */
async function filesInFolder(
  folder: string,
  type: LoadType | null,
  rejectedFolder: string,
  isOutermost: boolean,
): Promise<FoundSome> {
  const found: Found[] = [];
  const leftAlone: string[] = [];
  const typeOfFolder = typeNamed(basename(await realpath(folder)));
  const entries = await readdir(folder, { withFileTypes: true });
  for (const { name: fileName } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const isIgnored =
      fileName.startsWith('.') || fileName.endsWith(PART_ENDING) || fileName === POSITION_FILE;
    if (isIgnored) continue;
    const path = join(folder, fileName);
    if (realPathOrOwn(path) === rejectedFolder) continue;
    if ((await stat(path)).isDirectory()) {
      const isTyped = typeNamed(fileName) !== null;
      if (!isTyped || !isOutermost) leftAlone.push(path);
      else {
        const inside = await filesInFolder(path, type, rejectedFolder, false);
        found.push(...inside.found);
        leftAlone.push(...inside.leftAlone);
      }
      continue;
    }
    const name = readFileName(fileName);
    const fileType = name && (type ?? typeNamed(name.stem) ?? typeOfFolder);
    if (name === null || fileType === null) leftAlone.push(path);
    else found.push({ path, type: fileType, name });
  }
  return { found, leftAlone };
}

async function lookAt(
  { path, type, name: { format, compression } }: Found,
  isLenient: boolean,
): Promise<PlannedFile | FileProblem> {
  const problem = (reason: string, line: number | null = null): FileProblem => ({ path, line, reason });
  const source = openSource(path, compression);
  try {
    const first = await source.next();
    if (first instanceof Unreadable) return problem(first.reason);
    const odd = first === null ? null : notText(first);
    if (odd !== null) return problem(odd);
    const rest = asLines({ type, format }, withFirst(first, source));
    const file = {
      path,
      realPath: await realpath(path),
      type,
      format,
      compression,
      sizeBytes: (await stat(path)).size,
    };
    if (format === 'csv') {
      const header = await readHeader(rest);
      if (header instanceof Unreadable) return problem(header.reason, header.line);
      const wrong = headerProblems(header.names, type, isLenient);
      if (wrong.length > 0) return problem(wrong.join('; '), 1);
      const columns = columnsOf(header.names, fieldsOf(type));
      return { ...file, columns, start: header.place, isOfRejected: false };
    }
    const start = { offset: 0, line: 1 };
    const planned = { ...file, columns: [], start, isOfRejected: false };
    const chunk = await readerOf(planned, rest, start).next();
    if (chunk === null) return planned;
    if (chunk.records.length === 0 && chunk.broken !== null) {
      return problem(chunk.broken.reason, chunk.broken.line);
    }
    const record = unwrapped(chunk.records[0]);
    const wrong = firstRecordProblem(record, type);
    if (wrong !== null) return problem(wrong, format === 'json' ? null : chunk.lines[0]);
    return {
      ...planned,
      // The first chunk begins after the byte-order mark, if the file has one.
      start: { offset: chunk.start, line: 1 },
      isOfRejected: record !== chunk.records[0],
    };
  } finally {
    source.close();
  }
}

/** Converts the source of a JSON file to NDJSON. Returns other sources unchanged. */
function asLines({ type, format }: Pick<PlannedFile, 'type' | 'format'>, source: Source): Source {
  return format === 'json' ? jsonAsLines(source, type === INTERACTIONS ? 'interactions' : 'records') : source;
}

export function openFile(file: Pick<PlannedFile, 'path' | 'compression' | 'type' | 'format'>): Source {
  return asLines(file, openSource(file.path, file.compression));
}

export function readerOf(
  { format, columns, type }: Pick<PlannedFile, 'format' | 'columns' | 'type'>,
  source: Source,
  place: FilePosition,
): LineReader {
  if (format !== 'csv') return new NdjsonReader(source, place);
  return new CsvReader(source, place, columns, uploadTypes[uploadTypeOf(type)].key);
}
