// Reads the conditions of segments from the store.

import { setImmediate } from 'node:timers/promises';
import type { OrganisationNumber } from '../../store/rows.ts';
import type { Segment, SegmentStore } from '../../store/segments.ts';
import type { ConditionNode } from './condition-node.ts';
import { ConditionProblem } from './condition-problem.ts';
import { parseCondition } from './parse-condition.ts';
import { withUsed } from './segment-graph.ts';

export type ConditionStore = Pick<SegmentStore, 'segmentConditions'>;

/**
 * Resolves to the conditions of the named segments and of all that they use, by name. A condition is left out if it is
 * no longer valid, because this version of Headgate does not know one of its fields.
 */
export async function readConditions(
  store: ConditionStore,
  organisation: OrganisationNumber,
  segments: readonly Segment[],
  names: readonly string[],
): Promise<ReadonlyMap<string, ConditionNode>> {
  const known = segments.map(({ name }) => name);
  const found = await store.segmentConditions(organisation, withUsed(names, segments));
  const conditions = new Map<string, ConditionNode>();
  for (const [name, json] of found) {
    // Lets other work go on, because dozens of conditions with a thousand values each take tens of milliseconds.
    await setImmediate();
    const condition = parseCondition(JSON.parse(json), known);
    if (!(condition instanceof ConditionProblem)) conditions.set(name, condition);
  }
  return conditions;
}
