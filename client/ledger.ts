// What is read from the ledger: the history of uploads, and the changes.

import type { ReadOptions } from './connection.ts';
import type { ProblemCode, ShownUpload, UploadTypeName } from './records.ts';
import type { Counts } from './result.ts';

/** Matches a position: the number of an entry, or the number and how many of the entry's ids come before. */
export const positionPattern = /^\d{1,15}(?::\d{1,6})?$/;

export type UploadStatus = 'success' | 'partial' | 'error';

/** An upload, or the single interactions of a key that were stored together. */
export interface UploadEntry {
  /** The number of the entry in the ledger. */
  readonly seq: number;
  readonly request_id: string;
  readonly type: UploadTypeName;
  readonly key_id: string;
  readonly key_name: string | null;
  readonly received_at: string;
  /** `success` if no record was rejected, `error` if all were, `partial` otherwise. */
  readonly status: UploadStatus;
  readonly counts: Counts;
  /** The size of the body as it was sent. */
  readonly bytes: number;
  /** The time from the arrival of the request until it was stored. */
  readonly ms: number;
}

export interface UploadEntryWithCauses extends UploadEntry {
  /** The most frequent first. */
  readonly causes: readonly UploadCause[];
}

/** Why records of an upload were rejected. */
export interface UploadCause {
  readonly code: ProblemCode;
  /** Null if the problem is the whole record, or for further fields. */
  readonly field: string | null;
  readonly count: number;
  readonly examples: readonly {
    /** The record's position in the request, from 0. */
    readonly index: number;
    readonly id: string | null;
    readonly message: string;
  }[];
}

export interface UploadFilters {
  type?: UploadTypeName | undefined;
  status?: UploadStatus | undefined;
  key_id?: string | undefined;
  /** Only uploads that were received at this time or later. */
  from?: string | Date | undefined;
  /** Only uploads that were received before this time. */
  to?: string | Date | undefined;
}

export interface ListUploadsOptions extends UploadFilters, ReadOptions {
  /** The maximum number of uploads per request, up to 1000. Default: 1000. */
  pageSize?: number | undefined;
}

/** A record or interaction that has changed. `type` determines the type of `record`. */
export type Change<T extends UploadTypeName = UploadTypeName> = {
  [Type in T]: {
    /** The number of the entry with the last change of the record in this page. */
    readonly seq: number;
    readonly type: Type;
    readonly id: string;
    /** The record as it is now. Null if it no longer exists. */
    readonly record: ShownUpload<Type> | null;
  };
}[T];

export interface ChangesPage<T extends UploadTypeName = UploadTypeName> {
  /** Each record occurs once. */
  readonly changes: readonly Change<T>[];
  /** The position after this page. Store it once all changes of the page are processed. */
  readonly next: string;
  /** The number of the ledger's last entry. */
  readonly latest: number;
}

export interface ChangesOptions<T extends UploadTypeName = UploadTypeName> extends ReadOptions {
  /**
   * The position: `next` of the last page that was processed, the result of `latest()`, or 0 for the beginning.
   * Default: 0.
   */
  after?: string | number | undefined;
  /** Only changes of this type. Default: all types that the key may read. */
  type?: T | undefined;
  /** If false, the iteration ends when it is up to date. Default: true. */
  follow?: boolean | undefined;
  /** The maximum number of changes per page, up to 10,000. Default: 1000. */
  pageSize?: number | undefined;
}
