// Counts the members of a condition and of each of its nodes, and explains why a customer is a member or not.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import { Failure } from '../../failure.ts';
import { compileCondition, type Evaluation, withTables } from './compile-condition.ts';
import { type ConditionNode, nodesOf } from './condition-node.ts';
import type { Statement } from './sql-params.ts';

/** How many members a preview shows. */
export const SAMPLE_MEMBERS = 10;

export interface Preview {
  /** The exact number of members. */
  readonly count: number;
  /** For how many customers each node holds, parents first. */
  readonly nodes: readonly { readonly path: string; readonly count: number }[];
  /** The members with the lowest ids. */
  readonly sample: readonly string[];
}

/** Returns a statement with one row, which `readPreview` reads. */
export function previewSql(condition: ConditionNode, evaluation: Evaluation): Statement | Failure {
  const compiled = compileCondition(condition, evaluation, null);
  if (compiled instanceof Failure) return compiled;
  const { tables, customers, nodes, root, params } = compiled;
  const counts = nodes.map(({ holds }) => `(count(*) FILTER (WHERE ${holds}))::DOUBLE`);
  const sample = `(min(customer_id, ${SAMPLE_MEMBERS}) FILTER (WHERE ${root.holds}))::VARCHAR[]`;
  return {
    sql: `${withTables(tables)} SELECT ${sample}, ${counts.join(', ')} FROM ${customers}`,
    params,
  };
}

/** Reads the row of `previewSql`. Lists must be arrays. */
export function readPreview(condition: ConditionNode, row: readonly unknown[]): Preview {
  const [sample, ...counts] = row;
  const nodes = Array.from(nodesOf(condition), ({ at }, index) => ({
    path: at,
    count: counts[index] as number,
  }));
  return { count: nodes[0]!.count, nodes, sample: (sample as readonly string[] | null) ?? [] };
}

export interface Explanation {
  readonly member: boolean;
  /** Parents first. */
  readonly nodes: readonly ExplainedNode[];
}

export interface ExplainedNode {
  readonly path: string;
  readonly holds: boolean;
  /**
   * The value that the node tested: the value of a field, a number of rows, a sum, a time, or the position in a sample.
   * Null if there is none, and for combinations and segments.
   */
  readonly saw: string | number | boolean | null;
}

/**
 * Returns a statement with one row, which `readExplanation` reads, or no row if there is no such customer. `customerId`
 * must be a UUID.
 */
export function explanationSql(
  condition: ConditionNode,
  customerId: string,
  evaluation: Evaluation,
): Statement | Failure {
  const compiled = compileCondition(condition, evaluation, customerId);
  if (compiled instanceof Failure) return compiled;
  const { tables, customers, nodes, params } = compiled;
  const columns = nodes.flatMap(({ holds, saw }) => [holds, saw]);
  return { sql: `${withTables(tables)} SELECT ${columns.join(', ')} FROM ${customers}`, params };
}

/** Reads the row of `explanationSql`. */
export function readExplanation(condition: ConditionNode, row: readonly unknown[]): Explanation {
  const nodes = Array.from(nodesOf(condition), (node, index) => {
    const saw = row[2 * index + 1] as ExplainedNode['saw'];
    return {
      path: node.at,
      holds: row[2 * index] as boolean,
      saw: saw !== null && seesTime(node) ? dateTime.present(saw) : saw,
    };
  });
  return { member: nodes[0]!.holds, nodes };
}

function seesTime(node: ConditionNode): boolean {
  if (node.kind === 'did') return node.measure.kind === 'last' || node.measure.kind === 'first';
  return node.kind === 'customer' && node.value !== 'age' && node.value.kind.name === 'date-time';
}
