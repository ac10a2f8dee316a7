// The form of rejected records in files. The user corrects the records and loads the files again. Example:
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
  /** The line of the record in the loaded file, or null if it is not known. */
  readonly line: number | null;
  /** Where the record was when it was rejected for the first time, or null if this is the first time. */
  readonly origin: Origin | null;
}

export interface Origin {
  readonly file: string;
  readonly line: number;
}

/** The extension of files that are still being written. */
export const PART_ENDING = '.part';

const OPENING = Buffer.from('{"record":');

/** Returns whether a line begins like a rejected record. */
export function beginsAsRejected(line: Buffer): boolean {
  return line.subarray(0, OPENING.length).equals(OPENING);
}

export function rejectedLine({ record, errors, line, origin }: Rejected, file: string): string {
  const shown = errors.map(({ field, code, message }) => ({ field, code, message }));
  return `${JSON.stringify({ record, errors: shown, ...(origin ?? { file, line }) })}\n`;
}

/**
 * Returns the record that a rejected record contains, and any other value unchanged. No type has fields named `record`
 * and `errors`, so a normal record is never unwrapped.
 */
export function unwrapped(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { record, errors } = value as { record?: unknown; errors?: unknown };
  return record !== undefined && Array.isArray(errors) ? record : value;
}

/** Returns where a rejected record was when it was rejected for the first time. Returns null for any other value. */
export function originOf(value: unknown): Origin | null {
  if (unwrapped(value) === value) return null;
  const { file, line } = value as { file?: unknown; line?: unknown };
  return typeof file === 'string' && isLine(line) ? { file, line } : null;
}

/** The user may have changed the line. It becomes the first 48 bits of the id of an interaction. */
function isLine(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) < 2 ** 48;
}
