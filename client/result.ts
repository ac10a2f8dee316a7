// The result of an upload.

import type { ProblemCode, RecordTypeName } from './records.ts';

export interface Counts {
  readonly received: number;
  readonly created: number;
  readonly updated: number;
  /** Records that are identical to the stored one, older, or replaced by a later record of the same request. */
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
  /** Null for the fields that are not listed one by one, because a request had very many unknown names. */
  readonly field: string | null;
  readonly count: number;
  readonly message: string;
}

export interface UploadResult {
  readonly type: RecordTypeName;
  readonly dryRun: boolean;
  readonly counts: Counts;
  /** In the order of the input. If a request has thousands of problems, not all problems of each record are listed. */
  readonly errors: readonly UploadError[];
  readonly warnings: readonly UploadWarning[];
  readonly requestIds: readonly string[];
}
