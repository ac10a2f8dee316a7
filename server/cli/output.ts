// Writes what a command exports: to standard output, or to a file that appears only when it is complete.

import { createWriteStream, lstatSync, realpathSync, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { AbortedError, HeadgateError } from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import { printableLines } from '../printable.ts';
import { companionOf, isDatabase } from '../store/sqlite/database-files.ts';
import { whyFailed } from './connect.ts';

/**
 * Paths that mean standard output. They are not opened, because standard output may be a socket, which cannot be opened
 * a second time. The export writes to the stream that is already open.
 */
const namesOfOutput: readonly string[] = ['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'];

/** Returns the path that --out was given, or null for standard output. */
export function outOption(given: string | undefined): string | null {
  return given === undefined || namesOfOutput.includes(given) ? null : given;
}

type Pieces = AsyncIterable<string | Uint8Array> | Iterable<string>;

/** Writes only as fast as the output is read, and leaves standard output open. */
export async function writeToOutput(pieces: AsyncIterable<string | Uint8Array>): Promise<void> {
  // A program gets the records unchanged. For a terminal, control characters are escaped, because it would run them.
  const shownPieces = process.stdout.isTTY === true ? printablePieces(pieces) : pieces;
  await pipeline(shownPieces, process.stdout, { end: false });
}

async function* printablePieces(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let last = '\n';
  let held = '';
  for await (const piece of pieces) {
    const text = held + (typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true }));
    // Held back until the next piece shows whether it belongs to a line break.
    held = text.endsWith('\r') ? '\r' : '';
    const whole = text.slice(0, text.length - held.length).replaceAll('\r\n', '\n');
    last = whole.at(-1) ?? last;
    yield printableLines(whole);
  }
  const rest = printableLines(held + decoder.decode());
  if (rest !== '' || last !== '\n') yield `${rest}\n`;
}

export interface Destination {
  readonly out: string;
  /** The path to write to. If `out` is a symbolic link, this is the link's target, so that the link is kept. */
  readonly path: string;
  /** Whether `out` is a pipe or a device. Then no temporary file is used. */
  readonly isStream: boolean;
  /** What the user can choose instead. */
  readonly another: 'file' | 'folder';
}

/** Returns where the export is written, or a Failure if it cannot be written there. */
export function destinationOf(
  out: string,
  mayReplace: boolean,
  another: 'file' | 'folder' = 'file',
): Destination | Failure {
  try {
    const found = statSync(out, { throwIfNoEntry: false });
    // Only regular files are resolved, because a pipe such as /dev/fd/3 has no real path.
    const path = found?.isFile() ? realpathSync(out) : out;
    const isOfDatabase = isDatabase(path) ? 'is' : companionOf(path) === null ? null : 'belongs to';
    if (isOfDatabase !== null) {
      return new Failure(
        `${out} ${isOfDatabase} a database, which an export never replaces; name another ${another}`,
      );
    }
    if (found?.isFIFO() || found?.isCharacterDevice() || /^\/(dev|proc)\//.test(resolve(out))) {
      return { out, path: out, isStream: true, another };
    }
    if (found !== undefined && !found.isFile())
      return new Failure(`${out} cannot be written: it is not a file`);
    // lstat does not follow links, so a link whose target is missing also counts as an existing file.
    if (!mayReplace && lstatSync(out, { throwIfNoEntry: false }) !== undefined) {
      return new Failure(`${out} exists already; name another ${another}, or give --force to replace it`);
    }
    return { out, path, isStream: false, another };
  } catch (error) {
    return new Failure(`${out} cannot be written: ${(error as Error).message}`);
  }
}

/**
 * Writes a temporary file, and renames it when it is complete. Resolves to a sentence if the final name was taken in
 * the meantime, otherwise to null.
 */
export async function writeToFile(
  pieces: Pieces,
  destination: Destination,
  { isPacked, mayReplace }: { readonly isPacked: boolean; readonly mayReplace: boolean },
): Promise<string | null> {
  const part = `${destination.path}.${process.pid}.part`;
  try {
    await writeTo(part, 'wx', pieces, isPacked);
    return await moveIntoPlace(part, destination, mayReplace);
  } finally {
    await rm(part, { force: true });
  }
}

/** Renames a complete file. Resolves to a sentence if the final name was taken in the meantime, otherwise to null. */
export async function moveIntoPlace(
  part: string,
  { out, path, another }: Destination,
  mayReplace: boolean,
): Promise<string | null> {
  const destination = destinationOf(out, mayReplace, another);
  if (destination instanceof Failure) return destination.reason;
  await rename(part, path);
  return null;
}

export async function writeTo(path: string, flags: string, pieces: Pieces, isPacked: boolean): Promise<void> {
  const file = createWriteStream(path, { flags });
  if (isPacked) await pipeline(pieces, createGzip(), file);
  else await pipeline(pieces, file);
}

export function whyNotWritten(error: unknown, url: string, out: string | null): string {
  if (error instanceof AbortedError) return 'the export was interrupted';
  if (error instanceof HeadgateError) return whyFailed(error, url);
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  if (code === 'EPIPE') return 'the reader of the output has closed it';
  return `${out ?? 'the output'} cannot be written: ${message}`;
}
