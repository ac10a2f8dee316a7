// What an upload tells of its records.

import type { ProblemCode, RecordTypeName } from './records.ts';

export interface Counts {
  readonly received: number;
  readonly created: number;
  readonly updated: number;
  /** Identical to what is stored, older than it, or replaced by a later record of the same request. */
  readonly unchanged: number;
  readonly rejected: number;
}

/** One reason for which a record was not accepted. */
export interface UploadError {
  /** The record's position in the input, from 0. */
  readonly index: number;
  /** The record's own id where it could be read. */
  readonly id: string | null;
  readonly field: string | null;
  readonly code: ProblemCode;
  readonly message: string;
  readonly retryable: boolean;
}

/** What was dropped from records in a lenient upload. */
export interface UploadWarning {
  readonly code: string;
  /** Null for what a request with very many unknown names does not list one by one. */
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
