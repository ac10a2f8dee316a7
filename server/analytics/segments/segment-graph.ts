// Which segments use which others, and whether they use each other in a circle.

import { type ConditionNode, segmentsUsedIn } from './condition-node.ts';

/** The conditions of segments, by name. */
export type SegmentConditions = ReadonlyMap<string, ConditionNode>;

/** Returns the names of the segments that use the given one themselves, in alphabetical order. */
export function usersOf(name: string, segments: SegmentConditions): readonly string[] {
  return [...segments]
    .filter(([, condition]) => segmentsUsedIn(condition).includes(name))
    .map(([user]) => user)
    .sort();
}

/**
 * Returns the names of segments that use each other in a circle from the given segment back to it, such as `a`, `b`,
 * `a`. Returns null if there is no such circle.
 */
export function circleFrom(name: string, segments: SegmentConditions): readonly string[] | null {
  const visited = new Set<string>();
  const search = (current: string): readonly string[] | null => {
    const condition = segments.get(current);
    for (const used of condition === undefined ? [] : segmentsUsedIn(condition)) {
      if (used === name) return [current, name];
      if (visited.has(used)) continue;
      visited.add(used);
      const rest = search(used);
      if (rest !== null) return [current, ...rest];
    }
    return null;
  };
  return search(name);
}
