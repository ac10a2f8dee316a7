// Sums up why records of an upload were rejected, for the ledger. The summary is bounded, whatever the upload contains.

import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import type { CheckedUpload, Problem } from './outcome.ts';

/** A reason why records were rejected. */
export interface Cause {
  readonly code: ProblemCode;
  /** Null if the problem is not about one field, or in the cause that covers all further fields. */
  readonly field: string | null;
  readonly count: number;
  readonly examples: readonly Pick<Problem, 'index' | 'id' | 'message'>[];
}

/** The client chooses the names of unknown fields, so their number is limited. All other causes are few. */
const MOST_UNKNOWN_FIELDS = 20;
const MOST_CAUSES = 50;
const MOST_EXAMPLES = 3;
const LONGEST_FIELD_CHARACTERS = 100;

export function rejectionsOf({ batches }: CheckedUpload): {
  readonly received: number;
  readonly rejected: number;
  readonly causesJson: string | null;
} {
  const problems = batches.flatMap((batch) => batch.problems);
  return {
    received: batches.reduce((sum, batch) => sum + batch.received, 0),
    rejected: batches.reduce((sum, batch) => sum + batch.rejected, 0),
    causesJson: problems.length === 0 ? null : JSON.stringify(causesOf(problems)),
  };
}

/** Returns the causes of the listed problems, the most frequent first. */
export function causesOf(problems: readonly Problem[]): readonly Cause[] {
  const causes = new Map<string, Cause & { count: number; examples: Cause['examples'][number][] }>();
  let unknownFields = 0;
  for (const { code, field, index, id, message } of problems) {
    let shown = field?.slice(0, LONGEST_FIELD_CHARACTERS) ?? null;
    if (code === 'unknown_field' && !causes.has(keyOf(code, shown))) {
      if (unknownFields === MOST_UNKNOWN_FIELDS) shown = null;
      else unknownFields++;
    }
    const cause = causes.get(keyOf(code, shown)) ?? { code, field: shown, count: 0, examples: [] };
    causes.set(keyOf(code, shown), cause);
    cause.count++;
    if (cause.examples.length < MOST_EXAMPLES) cause.examples.push({ index, id, message });
  }
  return [...causes.values()].sort((a, b) => b.count - a.count).slice(0, MOST_CAUSES);
}

function keyOf(code: ProblemCode, field: string | null): string {
  return JSON.stringify([code, field]);
}
