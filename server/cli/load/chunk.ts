// The common interface of the file readers. A reader returns records in chunks, each record with its place in the file.

import type { Unreadable } from './source.ts';

export interface Chunk {
  readonly records: readonly unknown[];
  /** The line in which each record begins, counted from 1. */
  readonly lines: readonly number[];
  /** The offset of the byte after each record, in the unpacked file. */
  readonly ends: readonly number[];
  /** The bytes of the chunk, which begin at `start` and hold all of its records. */
  readonly bytes: Buffer;
  readonly start: number;
  /** Why reading stopped after this chunk, or null if it did not stop, or only because the file ended. */
  readonly broken: Unreadable | null;
}

/** The longest record that is accepted. A longer one means a file without line breaks, or a missing closing quote. */
export const LONGEST_RECORD_BYTES = 8 * 1024 * 1024;

/** A rejected record also contains its errors, and as JSON it can be six times as long as it was as CSV. */
export const LONGEST_REJECTED_BYTES = 7 * LONGEST_RECORD_BYTES;

export function mebibytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}

/** A position in a file at which reading resumes. */
export interface FilePosition {
  readonly offset: number;
  /** The line at that offset. */
  readonly line: number;
}

export interface ChunkReader {
  /** Resolves to null after the last chunk. */
  next(): Promise<Chunk | null>;
}
