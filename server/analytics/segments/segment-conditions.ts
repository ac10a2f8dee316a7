// The conditions of an organisation's segments, read from what the store has.

import type { Segment } from '../../store/segments.ts';
import { ConditionProblem } from './condition-problem.ts';
import { parseCondition } from './parse-condition.ts';
import type { SegmentConditions } from './segment-graph.ts';

/**
 * Returns the conditions by name. A condition is left out if it is not valid any more, because this version of Headgate
 * does not know one of its fields.
 */
export function validConditionsOf(segments: readonly Segment[]): SegmentConditions {
  const names = segments.map(({ name }) => name);
  return new Map(
    segments.flatMap(({ name, conditionJson }) => {
      const condition = parseCondition(JSON.parse(conditionJson), names);
      return condition instanceof ConditionProblem ? [] : [[name, condition]];
    }),
  );
}
