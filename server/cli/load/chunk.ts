// The common interface of the file readers. A reader returns records in chunks, with the position of each record in the
// file.

import type { Unreadable } from './source.ts';

export interface Chunk {
  readonly records: readonly unknown[];
  /** The line in which each record begins, counted from 1. */
  readonly lines: readonly number[];
  /** The offset in the uncompressed file at which each record ends. */
  readonly ends: readonly number[];
  /** The uncompressed bytes that contain all records of the chunk. They begin at the offset `start`. */
  readonly bytes: Buffer;
  readonly start: number;
  /** Why the file cannot be read after this chunk, or null if it can be read or has ended. */
  readonly broken: Unreadable | null;
}

/** The maximum length of a record. If one is longer, most likely a closing quote or all line breaks are missing. */
export const LONGEST_RECORD_BYTES = 8 * 1024 * 1024;

/**
 * The maximum length of a line with a rejected record. The line also contains the errors, and the record can be six
 * times as long in JSON as it was in CSV.
 */
export const LONGEST_REJECTED_BYTES = 7 * LONGEST_RECORD_BYTES;

export function mebibytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}

/** A position in a file at which reading resumes. */
export interface FilePosition {
  readonly offset: number;
  /** The line at that offset, counted from 1. */
  readonly line: number;
}

export interface ChunkReader {
  /** Resolves to null after the last chunk. */
  next(): Promise<Chunk | null>;
}
