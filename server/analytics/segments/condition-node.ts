// A condition after it has been checked: fields are resolved, values have their stored form, and every node has its path.

import type { EventType, FieldPath } from './field-paths.ts';

export const MOST_NODES = 64;
export const MOST_DEPTH = 8;
export const MOST_LIST_VALUES = 1000;

export type ConditionNode = CombinationNode | LeafNode;

/** `at` is the path of the node in the condition, such as `all[1].not`. The path of the whole condition is empty. */
export type CombinationNode =
  | { readonly kind: 'all' | 'any'; readonly at: string; readonly of: readonly ConditionNode[] }
  | { readonly kind: 'not'; readonly at: string; readonly of: ConditionNode };

export type LeafNode =
  | CustomerNode
  | DidNode
  | { readonly kind: 'segment'; readonly at: string; readonly name: string }
  | { readonly kind: 'sample'; readonly at: string; readonly percent: number; readonly salt: string };

export interface CustomerNode {
  readonly kind: 'customer';
  readonly at: string;
  readonly value: FieldPath | 'age';
  readonly tests: readonly Test[];
}

export interface DidNode {
  readonly kind: 'did';
  readonly at: string;
  readonly type: EventType;
  readonly where: readonly { readonly path: FieldPath; readonly tests: readonly Test[] }[];
  readonly window: Window;
  readonly measure: Measure;
}

export type Window =
  | { readonly kind: 'always' }
  | { readonly kind: 'within'; readonly ms: number }
  | { readonly kind: 'between'; readonly since: Time | null; readonly until: Time | null };

/** A date-time in its stored form, or a time before the evaluation. */
export type Time = string | { readonly agoMs: number };

export type Measure =
  | { readonly kind: 'times' | 'last' | 'first'; readonly tests: readonly Test[] }
  | {
      readonly kind: 'sum' | 'average' | 'distinct';
      readonly path: FieldPath;
      readonly tests: readonly Test[];
    };

export type TestValue = string | number | boolean | { readonly agoMs: number };

export type OrderTestName = 'at_least' | 'at_most' | 'above' | 'below';

export type Test =
  | { readonly kind: 'in' | 'not_in'; readonly values: readonly TestValue[] }
  | { readonly kind: OrderTestName; readonly value: TestValue }
  | { readonly kind: 'contains'; readonly text: string }
  | { readonly kind: 'exists'; readonly expected: boolean };

export function isLeaf(node: ConditionNode): node is LeafNode {
  return node.kind !== 'all' && node.kind !== 'any' && node.kind !== 'not';
}

/** Yields the node and all nodes below it, parents first. */
export function* nodesOf(node: ConditionNode): Iterable<ConditionNode> {
  yield node;
  if (node.kind === 'not') yield* nodesOf(node.of);
  if (node.kind === 'all' || node.kind === 'any') for (const child of node.of) yield* nodesOf(child);
}

/** Counts the nodes of a condition. The tests of `where` count as nodes, because each can cost as much as one. */
export function nodeCount(condition: ConditionNode): number {
  let count = 0;
  for (const node of nodesOf(condition)) count += node.kind === 'did' ? 1 + node.where.length : 1;
  return count;
}

/** Returns the names of the segments that the condition uses itself, without duplicates. */
export function segmentsUsedIn(node: ConditionNode): readonly string[] {
  const names = new Set<string>();
  for (const each of nodesOf(node)) if (each.kind === 'segment') names.add(each.name);
  return [...names];
}
