// The form in which rejected records are written, and taken back once they are mended:
// {"record": {…}, "errors": […], "file": "shops.csv", "line": 7}

import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';

export interface RejectedProblem {
  readonly field: string | null;
  readonly code: ProblemCode;
  readonly message: string;
}

export interface Rejected {
  readonly record: unknown;
  readonly errors: readonly RejectedProblem[];
  /** Null where it is not known. */
  readonly line: number | null;
  /** Where it was when it was rejected for the first time, if that is not here. */
  readonly origin: Origin | null;
}

export interface Origin {
  readonly file: string;
  readonly line: number;
}

/** The ending of files that are still being written. */
export const PART_ENDING = '.part';

const OPENING = Buffer.from('{"record":');

/** Whether a line begins as those that are written here do. */
export function beginsAsRejected(line: Buffer): boolean {
  return line.subarray(0, OPENING.length).equals(OPENING);
}

export function rejectedLine({ record, errors, line, origin }: Rejected, file: string): string {
  const shown = errors.map(({ field, code, message }) => ({ field, code, message }));
  return `${JSON.stringify({ record, errors: shown, ...(origin ?? { file, line }) })}\n`;
}

/** The record in it where the value is a rejected one, otherwise the value itself: no type has such fields. */
export function unwrapped(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { record, errors } = value as { record?: unknown; errors?: unknown };
  return record !== undefined && Array.isArray(errors) ? record : value;
}

/** Where a rejected record was at first; null for any other value. */
export function originOf(value: unknown): Origin | null {
  if (unwrapped(value) === value) return null;
  const { file, line } = value as { file?: unknown; line?: unknown };
  return typeof file === 'string' && typeof line === 'number' ? { file, line } : null;
}
