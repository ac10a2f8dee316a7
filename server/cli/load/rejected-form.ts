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
  readonly line: number;
}

/** The ending of files that are still being written. */
export const PART_ENDING = '.part';

export function rejectedLine({ record, errors, line }: Rejected, file: string): string {
  const shown = errors.map(({ field, code, message }) => ({ field, code, message }));
  return `${JSON.stringify({ record, errors: shown, file, line })}\n`;
}

/** The record in it where the value is a rejected one, otherwise the value itself: no type has such fields. */
export function unwrapped(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { record, errors } = value as { record?: unknown; errors?: unknown };
  return record !== undefined && Array.isArray(errors) ? record : value;
}
