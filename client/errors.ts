// The errors that the client throws. All are subclasses of HeadgateError; `cause` is the underlying error, if any.

import type { ProblemCode } from './records.ts';
import type { UploadResult } from './result.ts';

export class HeadgateError extends Error {
  override readonly name: string = 'HeadgateError';
}

/** One reason why an interaction was not recorded. */
export interface FieldProblem {
  readonly field: string | null;
  readonly code: ProblemCode;
  readonly message: string;
}

export interface Refusal {
  readonly status: number;
  readonly error: string | null;
  readonly message: string;
  readonly requestId: string | null;
  readonly details: readonly FieldProblem[];
  /** The number of the last entry of the ledger, or of the last change of a segment, if the response has it. */
  readonly latest?: number;
  /** The place of the error in the text of an SQL query, if the response has it. */
  readonly position?: number;
  /** The path of the part of a condition that is not valid, if the response has it. */
  readonly path?: string;
}

/** The server refused the request. Sending the same request again would not help. */
export class RefusedError extends HeadgateError {
  override readonly name: string = 'RefusedError';
  readonly status: number;
  /** The server's name for the refusal, such as "Bad Request"; null if the response was not from Headgate. */
  readonly error: string | null;
  /** The id to quote to the operator; null if the response had none. */
  readonly requestId: string | null;
  /** The reasons why an interaction was not recorded, by field. Empty for other refusals. */
  readonly details: readonly FieldProblem[];
  /** The number of characters before the error in the text of an SQL query. Null for other refusals. */
  readonly position: number | null;
  /**
   * The path of the part of a segment's condition that is not valid, such as `all[1].customer`; empty for the whole
   * condition. Null for other refusals.
   */
  readonly path: string | null;
  /** Whether this is the stored response of an earlier request with the same Idempotency-Key. */
  readonly replayed: boolean;

  constructor(refusal: Refusal, replayed: boolean) {
    const { status, error, message, requestId, details, position = null, path = null } = refusal;
    super(message);
    this.status = status;
    this.error = error;
    this.requestId = requestId;
    this.details = details;
    this.position = position;
    this.path = path;
    this.replayed = replayed;
  }
}

/** 401: the API key is missing, unknown, expired or revoked. */
export class UnauthorizedError extends RefusedError {
  override readonly name = 'UnauthorizedError';
}

/** 403: the API key lacks the scope that `message` names. */
export class ForbiddenError extends RefusedError {
  override readonly name = 'ForbiddenError';
}

/**
 * 410: the changes after the position are not available, because they are too old or the position is beyond the last
 * entry. To start over, read everything, then follow the changes after `latest`.
 */
export class GoneError extends RefusedError {
  override readonly name = 'GoneError';
  /** The number of the last entry of the ledger, or of the last change of the segment, when the request was refused. */
  readonly latest: number;

  constructor(refusal: Refusal & { readonly latest: number }, replayed: boolean) {
    super(refusal, replayed);
    this.latest = refusal.latest;
  }
}

/** There was no usable response after all retries; `cause` is the error of the last attempt. */
export class UnreachableError extends HeadgateError {
  override readonly name = 'UnreachableError';
  readonly attempts: number;

  constructor(message: string, attempts: number, cause: unknown) {
    super(message, { cause });
    this.attempts = attempts;
  }
}

/** A response ended before it was complete. If it was the result of a query, the query may have failed. */
export class BrokenOffError extends HeadgateError {
  override readonly name = 'BrokenOffError';

  constructor(cause: unknown) {
    super('the response broke off before it was complete', { cause });
  }
}

/**
 * A response was longer than the client keeps in memory, and was not read to its end. The request is not repeated,
 * because the next response would be as long.
 */
export class ResponseTooLargeError extends HeadgateError {
  override readonly name = 'ResponseTooLargeError';

  constructor(url: string, mostBytes: number) {
    super(
      `${url} responded with more than ${mostBytes / 1024 / 1024} MiB, which the client does not keep in memory; ` +
        'check that this is the address of Headgate, or request less at once',
    );
  }
}

/** The caller's AbortSignal was aborted; `cause` is the reason of the signal. */
export class AbortedError extends HeadgateError {
  override readonly name = 'AbortedError';

  constructor(reason: unknown) {
    super('aborted by the caller', { cause: reason });
  }
}

/**
 * The upload could not continue. All records before `nextIndex` were accepted or rejected, and are included in
 * `result`. Later records may or may not be stored. To complete the upload, upload the input again from `nextIndex`:
 * records that were already stored count as unchanged.
 */
export class UploadInterruptedError extends HeadgateError {
  override readonly name = 'UploadInterruptedError';
  readonly result: UploadResult;
  readonly nextIndex: number;

  constructor(cause: unknown, result: UploadResult, nextIndex: number) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`the upload of ${result.type} stopped at record ${nextIndex}: ${why}`, { cause });
    this.result = result;
    this.nextIndex = nextIndex;
  }
}
