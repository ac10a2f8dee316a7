// Everything that the client throws. All of it is a HeadgateError; `cause` has what lies behind it.

import type { ProblemCode } from './records.ts';
import type { UploadResult } from './result.ts';

export class HeadgateError extends Error {
  override readonly name: string = 'HeadgateError';
}

/** One reason for which an interaction was not recorded. */
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
}

/** The server looked at the request and will not carry it out; sending the same again would not help. */
export class RefusedError extends HeadgateError {
  override readonly name: string = 'RefusedError';
  readonly status: number;
  /** The server's name for the refusal, such as "Bad Request"; null where the answer was none of Headgate. */
  readonly error: string | null;
  /** To quote to the operator; null where the answer told none. */
  readonly requestId: string | null;
  /** Why an interaction was not recorded, field by field; otherwise empty. */
  readonly details: readonly FieldProblem[];
  /** An earlier request with the same Idempotency-Key had been refused so, and this is its answer again. */
  readonly replayed: boolean;

  constructor({ status, error, message, requestId, details }: Refusal, replayed: boolean) {
    super(message);
    this.status = status;
    this.error = error;
    this.requestId = requestId;
    this.details = details;
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

/** No useful answer came, however often it was tried; `cause` has what the last try met. */
export class UnreachableError extends HeadgateError {
  override readonly name = 'UnreachableError';
  readonly attempts: number;

  constructor(message: string, attempts: number, cause: unknown) {
    super(message, { cause });
    this.attempts = attempts;
  }
}

/** The caller's AbortSignal ended it; `cause` is the signal's reason. */
export class AbortedError extends HeadgateError {
  override readonly name = 'AbortedError';

  constructor(reason: unknown) {
    super('the caller aborted it', { cause: reason });
  }
}

/**
 * An upload that could not go on. Everything before `nextIndex` is settled and is what `result` tells of; from there on
 * nothing is known to have landed in full. Uploading the input again from `nextIndex` completes it: what had landed
 * after all is then unchanged.
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
