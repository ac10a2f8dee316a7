// Describes the outcome of an upload by batch and record, independent of HTTP.

import { type ProblemCode, problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { INTERACTIONS, type UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { Tally } from '../store/rows.ts';

export interface Problem {
  /** The position in the request's records, counted from 0. */
  readonly index: number;
  readonly id: string | null;
  readonly field: string | null;
  readonly code: ProblemCode;
  readonly message: string;
  readonly retryable: boolean;
}

export interface Warning {
  readonly code: 'unknown_field';
  /** The unknown field. Null in the warning that covers all further fields, if there are too many to list. */
  readonly field: string | null;
  /** How often the field, or the further fields together, occurred in the batch. */
  readonly count: number;
  readonly message: string;
}

export interface Counts extends Tally {
  readonly received: number;
  readonly rejected: number;
}

/**
 * `failed` means that the store did not confirm the batch. Either the whole batch is stored or nothing of it. In both
 * cases it is safe to send the batch again.
 */
export type BatchResult = 'accepted' | 'partly_accepted' | 'refused' | 'failed';

interface Batch {
  readonly batchId: string;
  readonly problems: readonly Problem[];
  /** The number of problems of the rejected records that `problems` does not list. */
  readonly omittedProblems: number;
  readonly warnings: readonly Warning[];
}

export interface BatchOutcome extends Batch {
  readonly result: BatchResult;
  readonly counts: Counts;
}

interface UploadOf<B extends Batch> {
  readonly requestId: string;
  readonly type: UploadTypeName;
  readonly dryRun: boolean;
  readonly batches: readonly B[];
}

export interface Outcome extends UploadOf<BatchOutcome> {
  /** The store's error, for the operator's log. Null if the store did not fail. */
  readonly failure: string | null;
  /** The number of the upload's entry in the ledger. Null if it has none. */
  readonly seq: number | null;
}

/** A batch after validation and before the store has written it. */
export interface CheckedBatch extends Batch {
  readonly received: number;
  readonly rejected: number;
  /** The number of valid records that are replaced by another record of the same request. */
  readonly superseded: number;
}

export type CheckedUpload = UploadOf<CheckedBatch>;

/** Returns what a client should do if the store did not confirm what it sent. */
export function howToSendAgain(type: UploadTypeName): string {
  return type === INTERACTIONS
    ? 'Send it again as it is; with an interaction_id or an Idempotency-Key that is safe'
    : 'Send it again as it is; that is safe';
}

export function problem(
  index: number,
  id: string | null,
  field: string | null,
  code: ProblemCode,
  message: string,
): Problem {
  return { index, id, field, code, message, retryable: problemCodes[code].retryable };
}

export function outcomeOf(upload: CheckedUpload, tallies: readonly Tally[], seq: number | null): Outcome {
  const { requestId, type, dryRun } = upload;
  const batches = upload.batches.map((batch, number): BatchOutcome => {
    // A response that an earlier version of Headgate stored under an idempotency key has no `omittedProblems`.
    const { batchId, received, rejected, superseded, problems, omittedProblems = 0, warnings } = batch;
    const { created, updated, unchanged } = tallies[number]!;
    return {
      batchId,
      result: rejected === 0 ? 'accepted' : rejected < received ? 'partly_accepted' : 'refused',
      counts: { received, created, updated, unchanged: unchanged + superseded, rejected },
      problems,
      omittedProblems,
      warnings,
    };
  });
  return { requestId, type, dryRun, batches, failure: null, seq };
}
