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

const MOST_CAUSES = 30;
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

/** Returns the causes, the most frequent first. */
export function causesOf(problems: readonly Problem[]): readonly Cause[] {
  const causes = new Map<string, Cause & { count: number; examples: Cause['examples'][number][] }>();
  for (const { code, field, index, id, message } of problems) {
    const shown = field?.slice(0, LONGEST_FIELD_CHARACTERS) ?? null;
    const isKnown = causes.has(`${code} ${shown}`);
    const ownField = isKnown || causes.size < MOST_CAUSES ? shown : null;
    const cause = causes.get(`${code} ${ownField}`) ?? { code, field: ownField, count: 0, examples: [] };
    causes.set(`${code} ${ownField}`, cause);
    cause.count++;
    if (cause.examples.length < MOST_EXAMPLES) cause.examples.push({ index, id, message });
  }
  return [...causes.values()].sort((a, b) => b.count - a.count);
}
