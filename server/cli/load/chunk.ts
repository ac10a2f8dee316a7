// What the readers of all file formats hand over: some records at a time, each with its place in the file.

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
  /** Why nothing comes after this chunk, where that is not the end of the file. */
  readonly broken: Unreadable | null;
}

/** A record may not be longer: what is longer is a file without line breaks, or one with an open quote. */
export const LONGEST_RECORD_BYTES = 8 * 1024 * 1024;

/** A rejected record has its errors beside it, and as JSON it takes up to six times the bytes that it had as CSV. */
export const LONGEST_REJECTED_BYTES = 7 * LONGEST_RECORD_BYTES;

export function mebibytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}

/** Where to go on in a file of which a part is done. */
export interface Place {
  readonly offset: number;
  /** The line at that offset. */
  readonly line: number;
}

export interface Reader {
  /** Null after the last chunk. */
  next(): Promise<Chunk | null>;
}
