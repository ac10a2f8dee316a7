// Compiles a condition to SQL for a replica. A common table expression computes one boolean column per leaf of the
// condition for every customer, and combinations of the leaves are expressions on those columns.

import { Failure } from '../../failure.ts';
import {
  type ConditionNode,
  type CustomerNode,
  type DidNode,
  isLeaf,
  type LeafNode,
  nodeCount,
  nodesOf,
  type Test,
} from './condition-node.ts';
import { didSql } from './did-sql.ts';
import { columnTypeOf, somePassesSql, valueJoins } from './path-sql.ts';
import { samplePositionSql } from './sample.ts';
import { testSql } from './sql-of-tests.ts';
import { SqlParams, type Statement } from './sql-params.ts';

/** The limit for a condition together with the conditions of all segments that it uses. */
export const MOST_NODES_WITH_SEGMENTS = 256;

export interface Evaluation {
  /** The time from which all relative times are computed. */
  readonly asOf: Date;
  /** Returns the condition of a segment, or null if there is no such segment. */
  readonly conditionOf: (segment: string) => ConditionNode | null;
}

/** Returns a statement that selects the `customer_id` of every member. */
export function membersSql(condition: ConditionNode, evaluation: Evaluation): Statement | Failure {
  const compiled = compileCondition(condition, evaluation, null);
  if (compiled instanceof Failure) return compiled;
  const { tables, customers, root, params } = compiled;
  return { sql: `${withTables(tables)} SELECT customer_id FROM ${customers} WHERE ${root.holds}`, params };
}

export interface CompiledNode {
  /** The path of the node. */
  readonly at: string;
  /** SQL for whether the node holds, which is never null. */
  readonly holds: string;
  /** SQL for the value that the node saw. Only if the condition is compiled for one customer. */
  readonly saw: string;
}

export interface CompiledCondition {
  /** Common table expressions. The later ones use the earlier ones. */
  readonly tables: readonly string[];
  /** The name of the table with one row per customer, on which the nodes are evaluated. */
  readonly customers: string;
  /** All nodes of the condition, parents first. */
  readonly nodes: readonly CompiledNode[];
  readonly root: CompiledNode;
  readonly params: Statement['params'];
}

/** Compiles a condition for all customers that are not deleted, or for one of them. */
export function compileCondition(
  condition: ConditionNode,
  evaluation: Evaluation,
  customerId: string | null,
): CompiledCondition | Failure {
  const compiler = new Compiler(evaluation, customerId);
  const compiled = compiler.compile(condition);
  if (compiled instanceof Failure) return compiled;
  const { customers, nodes } = compiled;
  const { tables, params } = compiler;
  return { tables, customers, nodes, root: nodes[0]!, params: params.values };
}

export function withTables(tables: readonly string[]): string {
  return `WITH ${tables.join(',\n')}\n`;
}

/** A leaf as columns of the customers `c`, with the joins that they need. */
interface Leaf {
  readonly joins: string;
  readonly holds: string;
  readonly saw: string;
}

const NOTHING = 'NULL';

class Compiler {
  readonly tables: string[] = [];
  readonly params = new SqlParams();
  readonly #evaluation: Evaluation;
  /** The placeholder of the only customer, or null for all customers. */
  readonly #customer: string | null;
  /** The tables with the members of the segments that have been compiled. */
  readonly #segments = new Map<string, string>();
  /** The segments that are being compiled, each used by the one before. */
  readonly #underway: string[] = [];
  #nodes = 0;

  constructor(evaluation: Evaluation, customerId: string | null) {
    this.#evaluation = evaluation;
    this.#customer = customerId === null ? null : `${this.params.add(customerId)}::UUID`;
  }

  compile(
    condition: ConditionNode,
  ): { readonly customers: string; readonly nodes: readonly CompiledNode[] } | Failure {
    const all = [...nodesOf(condition)];
    this.#nodes += nodeCount(condition);
    if (this.#nodes > MOST_NODES_WITH_SEGMENTS) {
      return new Failure(
        `the condition and the segments it uses have more than ${MOST_NODES_WITH_SEGMENTS} nodes together`,
      );
    }
    const leaves = new Map<ConditionNode, { readonly name: string; readonly leaf: Leaf }>();
    for (const node of all) {
      if (!isLeaf(node)) continue;
      const leaf = this.#leaf(node);
      if (leaf instanceof Failure) return leaf;
      leaves.set(node, { name: `leaf_${leaves.size}`, leaf });
    }
    const customers = this.#addTable(customersSql([...leaves.values()], this.#customer));
    const nodes = all.map((node) => {
      const saw = leaves.get(node)?.name;
      return {
        at: node.at,
        holds: combinedSql(node, (leaf) => leaves.get(leaf)!.name),
        saw: saw === undefined ? NOTHING : `${saw}_saw`,
      };
    });
    return { customers, nodes };
  }

  #addTable(sql: string, materialized = ''): string {
    const name = `t${this.tables.length}`;
    this.tables.push(`${name} AS ${materialized}(${sql})`);
    return name;
  }

  #leaf(node: LeafNode): Leaf | Failure {
    switch (node.kind) {
      case 'customer':
        return this.#customerLeaf(node);
      case 'did':
        return this.#didLeaf(node);
      case 'sample': {
        const position = samplePositionSql('c.customer_id', node.salt, this.params);
        const holds = `${position} < ${this.params.add(node.percent)}::DOUBLE`;
        return { joins: '', holds, saw: position };
      }
      case 'segment': {
        const members = this.#membersOf(node.name);
        if (members instanceof Failure) return members;
        const holds = `c.customer_id IN (SELECT customer_id FROM ${members})`;
        return { joins: '', holds, saw: NOTHING };
      }
    }
  }

  #customerLeaf({ value, tests }: CustomerNode): Leaf {
    if (value === 'age') {
      const age = this.#ageSql();
      return { joins: '', holds: this.#allPass(tests, 'DOUBLE', (passes) => passes(age)), saw: age };
    }
    const type = columnTypeOf(value);
    const holds = this.#allPass(tests, type, (passes) => somePassesSql(value, 'c', passes));
    if (this.#customer === null) return { joins: '', holds, saw: NOTHING };
    const { joins, column } = valueJoins(value, 'v');
    const saw =
      `(SELECT any_value(${shownSql(column, type)})` +
      ` FROM customers v${joins} WHERE v.customer_id = ${this.#customer})`;
    return { joins: '', holds, saw };
  }

  /** Returns SQL for whether every test passes, which is never null. */
  #allPass(
    tests: readonly Test[],
    type: string,
    some: (passes: (column: string) => string) => string,
  ): string {
    const compared = { type, asOf: this.#evaluation.asOf, params: this.params };
    return tests.map((test) => `coalesce(${testSql(test, some, compared)}, false)`).join(' AND ');
  }

  /** Whole years: somebody born on 29 February becomes a year older on 1 March if the year has no such day. */
  #ageSql(): string {
    const { asOf } = this.#evaluation;
    const year = this.params.add(asOf.getUTCFullYear());
    const day = this.params.add((asOf.getUTCMonth() + 1) * 100 + asOf.getUTCDate());
    const birthday = 'month(c.birthdate) * 100 + day(c.birthdate)';
    return `(${year}::DOUBLE - year(c.birthdate) - (${birthday} > ${day}::DOUBLE)::INTEGER)`;
  }

  #didLeaf(node: DidNode): Leaf {
    const { kind, tests } = node.measure;
    const { asOf } = this.#evaluation;
    const rows = this.#addTable(didSql(node, { asOf, params: this.params, customer: this.#customer }));
    const joins = ` LEFT JOIN ${rows} ON ${rows}.customer_id = c.customer_id`;
    const isTime = kind === 'last' || kind === 'first';
    const type = isTime ? 'TIMESTAMPTZ' : 'DOUBLE';
    const value = isTime || kind === 'average' ? `${rows}.saw` : `coalesce(${rows}.saw, 0)`;
    return {
      joins,
      holds: this.#allPass(tests, type, (passes) => passes(value)),
      saw: shownSql(value, type),
    };
  }

  /** Returns the table with the members of a segment. */
  #membersOf(segment: string): string | Failure {
    const known = this.#segments.get(segment);
    if (known !== undefined) return known;
    if (this.#underway.includes(segment)) {
      const circle = [...this.#underway.slice(this.#underway.indexOf(segment)), segment];
      return new Failure(`the segments use each other in a circle: ${circle.join(' → ')}`);
    }
    const condition = this.#evaluation.conditionOf(segment);
    if (condition === null) return new Failure(`there is no segment ${segment}`);
    this.#underway.push(segment);
    const compiled = this.compile(condition);
    this.#underway.pop();
    if (compiled instanceof Failure) return compiled;
    const { customers, nodes } = compiled;
    // Several nodes can use the segment, but it is evaluated once.
    const name = this.#addTable(
      `SELECT customer_id FROM ${customers} WHERE ${nodes[0]!.holds}`,
      'MATERIALIZED ',
    );
    this.#segments.set(segment, name);
    return name;
  }
}

function customersSql(
  leaves: readonly { readonly name: string; readonly leaf: Leaf }[],
  customer: string | null,
): string {
  const columns = leaves.flatMap(({ name, leaf }) => [
    `${leaf.holds} AS ${name}`,
    ...(customer === null ? [] : [`${leaf.saw} AS ${name}_saw`]),
  ]);
  const joins = leaves.map(({ leaf }) => leaf.joins).join('');
  const only = customer === null ? '' : ` AND c.customer_id = ${customer}`;
  return (
    `SELECT c.customer_id, ${columns.join(', ')} FROM customers c${joins}` +
    ` WHERE c.is_deleted IS NOT TRUE${only}`
  );
}

/** Returns SQL for whether the node holds, on the columns of the leaves. */
function combinedSql(node: ConditionNode, columnOf: (leaf: ConditionNode) => string): string {
  switch (node.kind) {
    case 'all':
      return `(${node.of.map((each) => combinedSql(each, columnOf)).join(' AND ')})`;
    case 'any':
      return `(${node.of.map((each) => combinedSql(each, columnOf)).join(' OR ')})`;
    case 'not':
      return `(NOT ${combinedSql(node.of, columnOf)})`;
    default:
      return columnOf(node);
  }
}

/** Returns SQL for a value that every reader of results can represent: a number, true or false, or text. */
function shownSql(value: string, type: string): string {
  if (type === 'DOUBLE' || type === 'BOOLEAN' || type === 'VARCHAR') return value;
  if (type !== 'TIMESTAMPTZ') return `${value}::VARCHAR`;
  // The text must be in UTC, whatever the time zone of the connection is.
  return `strftime(make_timestamp(epoch_us(${value})), '%Y-%m-%dT%H:%M:%S.%fZ')`;
}
