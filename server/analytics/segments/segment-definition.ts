// The rules for saving and deleting a segment.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../../failure.ts';
import type { Segment } from '../../store/segments.ts';
import { membersSql } from './compile-condition.ts';
import { ConditionProblem } from './condition-problem.ts';
import { parseCondition } from './parse-condition.ts';
import { validConditionsOf } from './segment-conditions.ts';
import { circleFrom, usersOf } from './segment-graph.ts';

export const MOST_SEGMENTS = 200;
const MOST_CONDITION_CHARACTERS = 64 * 1024;
const MOST_NOTE_CHARACTERS = 1000;

/** Names are part of paths. */
const namePattern = /^[a-z0-9][a-z0-9_-]{0,63}$/;
export const NAME_RULE =
  'up to 64 lower-case letters, digits, hyphens and underscores, beginning with a letter or digit';

export function isSegmentName(name: string): boolean {
  return namePattern.test(name);
}

/** Returns the note, or why it is not valid. */
export function checkNote(note: unknown): string | null | Failure {
  if (note === undefined || note === null) return null;
  if (typeof note === 'string' && note.length <= MOST_NOTE_CHARACTERS && note.isWellFormed()) return note;
  return new Failure(`note must be a text of at most ${MOST_NOTE_CHARACTERS} characters, or null`);
}

/** Returns the problem of a condition that is to be saved under a name, or null if there is none. */
export function problemOfSegment(
  name: string,
  given: unknown,
  segments: readonly Segment[],
): ConditionProblem | Failure | null {
  if (!isSegmentName(name)) return new Failure(`the name of a segment must be ${NAME_RULE}`);
  const isNew = !segments.some((segment) => segment.name === name);
  if (isNew && segments.length >= MOST_SEGMENTS) {
    return new Failure(
      `your organisation has ${MOST_SEGMENTS} segments, which is the limit; delete one first`,
    );
  }
  return problemOfCondition(name, given, segments);
}

/** Returns the problem of a condition, or null if there is none. `name` is null if the condition is not to be saved. */
export function problemOfCondition(
  name: string | null,
  given: unknown,
  segments: readonly Segment[],
): ConditionProblem | Failure | null {
  const names = segments.map((segment) => segment.name);
  const condition = parseCondition(given, name === null ? names : [...names, name]);
  if (condition instanceof ConditionProblem) return condition;
  if (JSON.stringify(given).length > MOST_CONDITION_CHARACTERS) {
    return new Failure(`a condition must have at most ${MOST_CONDITION_CHARACTERS} characters as JSON`);
  }
  const conditions = new Map(validConditionsOf(segments));
  if (name !== null) {
    conditions.set(name, condition);
    const circle = circleFrom(name, conditions);
    if (circle !== null) {
      return new Failure(`the segments would use each other in a circle: ${circle.join(' → ')}`);
    }
  }
  const conditionOf = (used: string) => conditions.get(used) ?? null;
  const compiled = membersSql(condition, { asOf: new Date(0), conditionOf });
  return compiled instanceof Failure ? compiled : null;
}

/** Returns why a segment cannot be deleted, or null if it can. */
export function whyNotDeleted(name: string, segments: readonly Segment[]): Failure | null {
  const users = usersOf(name, validConditionsOf(segments));
  if (users.length === 0) return null;
  const which = users.length === 1 ? 'the segment' : 'the segments';
  return new Failure(`the segment ${quote(name)} is used by ${which} ${users.map(quote).join(', ')}`);
}
