// The rules for saving and deleting a segment.

import { Flaw, quote } from '@headgate/catalogue/kinds/kind.ts';
import { text } from '@headgate/catalogue/kinds/text.ts';
import { Failure } from '../../failure.ts';
import type { OrganisationNumber } from '../../store/rows.ts';
import type { Segment } from '../../store/segments.ts';
import { membersSql } from './compile-condition.ts';
import { type ConditionNode, segmentsUsedIn } from './condition-node.ts';
import { ConditionProblem } from './condition-problem.ts';
import { parseCondition } from './parse-condition.ts';
import { type ConditionStore, readConditions } from './segment-conditions.ts';
import { circleFrom, type Uses, usersOf } from './segment-graph.ts';

export const MOST_SEGMENTS = 200;
const MOST_CONDITION_CHARACTERS = 64 * 1024;
const MOST_NOTE_CHARACTERS = 1000;

/** Names are part of paths. */
const namePattern = /^[a-z0-9][a-z0-9_-]{0,63}$/;
export const NAME_RULE =
  'up to 64 lower-case letters, digits, hyphens and underscores, beginning with a letter or digit';

/** `POST /v1/segments/preview` would look like a request about a segment of this name. */
const PREVIEW = 'preview';

/** Returns the note, or why it is not valid. */
export function checkNote(note: unknown): string | null | Failure {
  if (note === undefined || note === null) return null;
  const flaw = text.check(note, false);
  if (flaw instanceof Flaw) return new Failure(`note ${flaw.message}`);
  if ((note as string).length <= MOST_NOTE_CHARACTERS) return note as string;
  return new Failure(`note must have at most ${MOST_NOTE_CHARACTERS} characters`);
}

/** A condition that can be saved or evaluated. */
export interface ValidCondition {
  readonly condition: ConditionNode;
  /** The names of the segments that it uses itself. */
  readonly uses: readonly string[];
}

/** Checks a condition that is to be saved under a name. */
export async function checkSegment(
  store: ConditionStore,
  organisation: OrganisationNumber,
  segments: readonly Segment[],
  name: string,
  given: unknown,
): Promise<ValidCondition | ConditionProblem | Failure> {
  if (!namePattern.test(name)) return new Failure(`the name of a segment must be ${NAME_RULE}`);
  if (name === PREVIEW) {
    return new Failure(`the name of a segment must not be ${PREVIEW}, which is the path of previews`);
  }
  const others = segments.filter((segment) => segment.name !== name);
  if (others.length >= MOST_SEGMENTS) {
    return new Failure(
      `your organisation has ${MOST_SEGMENTS} segments, which is the limit; delete one first`,
    );
  }
  const otherNames = others.map((segment) => segment.name);
  const condition = parseCondition(given, otherNames, name);
  if (condition instanceof ConditionProblem) return condition;
  const uses = segmentsUsedIn(condition);
  const circle = circleFrom(name, [...others, { name, uses }]);
  if (circle !== null) {
    return new Failure(`the segments would use each other in a circle: ${circle.join(' → ')}`);
  }
  return checkSize(store, organisation, segments, given, condition);
}

/** Checks a condition that is not to be saved. */
export async function checkCondition(
  store: ConditionStore,
  organisation: OrganisationNumber,
  segments: readonly Segment[],
  given: unknown,
): Promise<ValidCondition | ConditionProblem | Failure> {
  const condition = parseCondition(
    given,
    segments.map(({ name }) => name),
  );
  if (condition instanceof ConditionProblem) return condition;
  return checkSize(store, organisation, segments, given, condition);
}

async function checkSize(
  store: ConditionStore,
  organisation: OrganisationNumber,
  segments: readonly Segment[],
  given: unknown,
  condition: ConditionNode,
): Promise<ValidCondition | Failure> {
  if (JSON.stringify(given).length > MOST_CONDITION_CHARACTERS) {
    return new Failure(`a condition must have at most ${MOST_CONDITION_CHARACTERS} characters as JSON`);
  }
  const uses = segmentsUsedIn(condition);
  const used = await readConditions(store, organisation, segments, uses);
  const compiled = membersSql(condition, {
    asOf: new Date(0),
    conditionOf: (name) => used.get(name) ?? null,
  });
  return compiled instanceof Failure ? compiled : { condition, uses };
}

/** Returns why a segment cannot be deleted, or null if it can. */
export function whyNotDeleted(name: string, segments: Uses): Failure | null {
  const users = usersOf(name, segments);
  if (users.length === 0) return null;
  const [which, use] = users.length === 1 ? ['segment', 'uses'] : ['segments', 'use'];
  const them = users.map(quote).join(', ');
  return new Failure(`the segment ${quote(name)} cannot be deleted, because the ${which} ${them} ${use} it`);
}
