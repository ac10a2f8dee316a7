// Which segments use which others, and whether they use each other in a circle.

import type { Segment } from '../../store/segments.ts';

/** Segments, of which only these parts matter here. */
export type Uses = readonly Pick<Segment, 'name' | 'uses'>[];

/** Returns the names of the segments that use the given one themselves, in alphabetical order. */
export function usersOf(name: string, segments: Uses): readonly string[] {
  return segments
    .filter(({ uses }) => uses.includes(name))
    .map((user) => user.name)
    .sort();
}

/** Returns the names of the given segments and of all that they use, themselves or through others. */
export function withUsed(names: readonly string[], segments: Uses): readonly string[] {
  const usesOf = new Map(segments.map(({ name, uses }) => [name, uses]));
  const all = new Set(names);
  for (const name of all) for (const used of usesOf.get(name) ?? []) all.add(used);
  return [...all];
}

/**
 * Returns the names of segments that use each other in a circle from the given segment back to it, such as `a`, `b`,
 * `a`. Returns null if there is no such circle.
 */
export function circleFrom(name: string, segments: Uses): readonly string[] | null {
  const usesOf = new Map(segments.map((segment) => [segment.name, segment.uses]));
  const visited = new Set<string>();
  const search = (current: string): readonly string[] | null => {
    for (const used of usesOf.get(current) ?? []) {
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
