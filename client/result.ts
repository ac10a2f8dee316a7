// The result of an upload.

import type { ProblemCode, UploadTypeName } from './records.ts';

export interface Counts {
  readonly received: number;
  readonly created: number;
  readonly updated: number;
  /** Records that are identical to the stored record or older, or that a later record of the same request replaces. */
  readonly unchanged: number;
  readonly rejected: number;
}

/** One reason why a record was rejected. */
export interface UploadError {
  /** The record's position in the input, from 0. */
  readonly index: number;
  /** The record's id, or null if it could not be read. */
  readonly id: string | null;
  readonly field: string | null;
  readonly code: ProblemCode;
  readonly message: string;
  readonly retryable: boolean;
}

/** A field that was dropped from records in a lenient upload. */
export interface UploadWarning {
  readonly code: string;
  /** If a request has very many unknown fields, null stands for all fields that are not listed one by one. */
  readonly field: string | null;
  readonly count: number;
  readonly message: string;
}

export interface UploadResult {
  readonly type: UploadTypeName;
  readonly dryRun: boolean;
  readonly counts: Counts;
  /** The errors in the order of the input. If a request has thousands, not all errors of each record are listed. */
  readonly errors: readonly UploadError[];
  readonly warnings: readonly UploadWarning[];
  readonly requestIds: readonly string[];
  /**
   * The number of the last entry that the upload added to the ledger. Whoever has followed the changes up to this number
   * has seen the whole upload. Null in a dry run, or if nothing was sent.
   */
  readonly lastSeq: number | null;
}
