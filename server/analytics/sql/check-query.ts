// Decides whether a query may run: one SELECT statement that reads only the organisation's own tables. It checks the
// syntax tree before DuckDB looks up anything that the query names.

import { nearName } from '../../near-name.ts';
import { refusedFunctions, scalarFunctions, sizedFunctions, tableFunctions } from './functions.ts';
import { positionOfByte, positionOfError, readQueryError } from './query-errors.ts';
import type { QueryParser } from './query-parser.ts';
import { declarationOf, nodeFieldsOf, type TreeNode } from './syntax-tree.ts';

/** The longest text of a query, in UTF-16 code units. */
export const QUERY_CHARACTERS = 100_000;
/** The longest syntax tree, as JSON. The queries of others wait while it is read, which takes about 10 ms per million. */
const TREE_CHARACTERS = 2_000_000;
/** How deep a query may be nested. DuckDB needs seconds to plan an expression that is nested 500 deep. */
const QUERY_DEPTH = 200;
/** The longest list or text that one call of a function may produce from nothing. */
const CALL_SIZE = 1000;

/** Why a query may not run. It is returned, never thrown. */
export class QueryRefusal {
  readonly kind = 'invalid';
  readonly message: string;
  /** The offset in the text of the query, in UTF-16 code units. */
  readonly position: number | null;

  constructor(message: string, position: number | null) {
    this.message = message;
    this.position = position;
  }
}

/** Returns null if the query may run, or else the first reason why not. */
export async function checkQuery(
  parser: QueryParser,
  sql: string,
  tables: readonly string[],
): Promise<QueryRefusal | null> {
  if (sql.length > QUERY_CHARACTERS) {
    return new QueryRefusal(`A query can have at most ${QUERY_CHARACTERS} characters.`, QUERY_CHARACTERS);
  }
  // DuckDB would read the text only up to such a character in one place, and all of it in another.
  const nul = sql.indexOf('\0');
  if (nul !== -1) return new QueryRefusal('A query cannot contain the character U+0000.', nul);
  if (!sql.isWellFormed()) return new QueryRefusal('The query is not valid Unicode.', null);

  const tree = await parse(parser, sql);
  if (tree instanceof QueryRefusal) return tree;
  const problem = checkNode({ tables }, tree, 'statements', new Set(), 0);
  return problem && new QueryRefusal(problem.message, problemPosition(sql, problem));
}

async function parse(parser: QueryParser, sql: string): Promise<TreeNode | QueryRefusal> {
  let parsed: {
    readonly error: boolean;
    readonly error_type?: string;
    readonly error_message?: string;
    readonly error_subtype?: string;
    readonly position?: string;
    readonly statements?: readonly TreeNode[];
  };
  let tree: string;
  try {
    tree = await parser.syntaxTree(sql);
  } catch (error) {
    return new QueryRefusal(readQueryError(error, sql).message, null);
  }
  if (tree.length > TREE_CHARACTERS) {
    return new QueryRefusal(
      'The query has too many names, constants and operators; about 5000 are possible. Use a condition or a join instead of a long list.',
      null,
    );
  }
  try {
    parsed = JSON.parse(tree);
  } catch {
    // DuckDB writes Infinity for such a number, which is not JSON.
    return new QueryRefusal('The query has a number that is too large.', null);
  }
  if (parsed.error) {
    if (parsed.error_type === 'not implemented') return new QueryRefusal(onlySelect(sql), null);
    return new QueryRefusal(parsed.error_message!, positionOfError(sql, parsed));
  }
  const [statement, second] = parsed.statements!;
  if (statement === undefined) return new QueryRefusal('The query is empty.', null);
  if (second !== undefined) return new QueryRefusal('Send one statement at a time.', null);
  return statement;
}

/** Returns why DuckDB does not return a syntax tree. It does so only if every statement is a SELECT. */
function onlySelect(sql: string): string {
  // A PIVOT without values becomes two statements, of which the first creates a type.
  return /^\W*pivot\b(?!.*\bin\b)/is.test(sql)
    ? "Name the values of a PIVOT with IN, for example: ON region IN ('DE', 'AT')."
    : 'Only one SELECT statement can run. A query can only read.';
}

interface Problem {
  readonly message: string;
  readonly node: TreeNode;
}

function problemPosition(sql: string, { node }: Problem): number | null {
  return typeof node.query_location === 'number' ? positionOfByte(sql, node.query_location) : null;
}

interface Rules {
  readonly tables: readonly string[];
}

/** The names of the common table expressions that can be used at a place, in lower case. */
type Scope = ReadonlySet<string>;

function checkNode(rules: Rules, node: TreeNode, field: string, scope: Scope, depth: number): Problem | null {
  if (depth > QUERY_DEPTH) return { message: `A query can be nested at most ${QUERY_DEPTH} deep.`, node };
  const declared = declarationOf(node, field);
  const fields = declared && nodeFieldsOf(node, declared);
  if (declared === null || fields === null) {
    return { message: 'The query uses a part of SQL that is not supported here.', node };
  }
  const problem = nodeRules[declared.kind]?.(node, rules, scope) ?? null;
  if (problem !== null) return { message: problem, node };

  // The WITH clause comes first, because the other fields can use its names.
  if (isTreeNode(node.cte_map)) {
    const extended = checkWith(rules, node.cte_map, scope, depth + 1);
    if (!(extended instanceof Set)) return extended;
    return checkFields(rules, node, fields, extended, depth);
  }
  return checkFields(rules, node, fields, scope, depth);
}

/** Checks the WITH clause of a query. Returns the scope of the rest of the query. */
function checkWith(rules: Rules, clause: TreeNode, scope: Scope, depth: number): Set<string> | Problem {
  const extended = new Set(scope);
  for (const entry of clause.map as readonly TreeNode[]) {
    const name = String(entry.key);
    // If DuckDB resolved such a name in another way than this module does, it would name a table of the system.
    if (/^(duckdb|pg|pragma|sqlite)_/i.test(name)) {
      return { message: `The name "${name}" is reserved. Choose another name in WITH.`, node: entry };
    }
    // An expression can use the names before it, but not its own.
    const problem = checkNode(rules, entry, 'map', extended, depth);
    if (problem !== null) return problem;
    extended.add(name.toLowerCase());
  }
  return extended;
}

function checkFields(
  rules: Rules,
  node: TreeNode,
  fields: readonly string[],
  scope: Scope,
  depth: number,
): Problem | null {
  for (const field of fields) {
    if (field === 'cte_map') continue;
    for (const child of nodesIn(node[field])) {
      // Only the second part of a recursive expression can use the expression's own name.
      const isRecursive = node.type === 'RECURSIVE_CTE_NODE' && field === 'right';
      const childScope = isRecursive ? new Set(scope).add(String(node.cte_name).toLowerCase()) : scope;
      const isTableFunction = node.type === 'TABLE_FUNCTION' && field === 'function';
      const problem = isTableFunction
        ? checkTableFunction(rules, child, childScope, depth + 1)
        : checkNode(rules, child, field, childScope, depth + 1);
      if (problem !== null) return problem;
    }
  }
  return null;
}

function nodesIn(value: unknown): readonly TreeNode[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  return isTreeNode(value) ? [value] : [];
}

function isTreeNode(value: unknown): value is TreeNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A function that is used as a table is also a FUNCTION node, but other names are allowed. */
function checkTableFunction(rules: Rules, node: TreeNode, scope: Scope, depth: number): Problem | null {
  const message = functionProblem(node, tableFunctions);
  if (message !== null) return { message, node };
  for (const child of nodesIn(node.children)) {
    const problem = checkNode(rules, child, 'children', scope, depth);
    if (problem !== null) return problem;
  }
  const rest = [...nodesIn(node.filter), ...nodesIn((node.order_bys as TreeNode).orders)];
  return rest.length === 0 ? null : { message: 'A table function takes no FILTER and no ORDER BY.', node };
}

/** What else must be true of a node, by its kind. Each rule returns a sentence, or null if the node is allowed. */
const nodeRules: Readonly<Record<string, (node: TreeNode, rules: Rules, scope: Scope) => string | null>> = {
  'clause BASE_TABLE': tableProblem,
  'clause SHOW_REF': (node, { tables }) =>
    isTreeNode(node.query) && (node.show_type === 'DESCRIBE' || node.show_type === 'SUMMARY')
      ? null
      : `SHOW is not available. Use DESCRIBE with one of the tables: ${tables.join(', ')}.`,
  'expression FUNCTION': (node) => functionProblem(node, scalarFunctions) ?? sizeProblem(node),
  'expression WINDOW': (node) => functionProblem(node, scalarFunctions),
  'expression COLUMN_REF': columnProblem,
  'expression PARAMETER': ({ identifier }) =>
    /^\d+$/.test(String(identifier)) ? null : `Use ? for a parameter instead of the name "${identifier}".`,
};

function tableProblem(node: TreeNode, { tables }: Rules, scope: Scope): string | null {
  const catalog = String(node.catalog_name);
  const schema = String(node.schema_name).toLowerCase();
  const name = String(node.table_name);
  if (node.at_clause !== null) return 'A table has only its current state; AT is not available.';
  if (catalog !== '' || (schema !== '' && schema !== 'main')) {
    const full = [catalog, schema, name].filter((part) => part !== '').join('.');
    return `The table "${full}" is not available. Name a table without a schema, for example: FROM ${tables[0]}.`;
  }
  if (tables.some((table) => table.toLowerCase() === name.toLowerCase())) return null;
  if (schema === '' && scope.has(name.toLowerCase())) return null;
  const near = nearName(name, [...tables, ...scope]);
  return near === null
    ? `The table "${name}" does not exist. The tables are: ${tables.join(', ')}.`
    : `The table "${name}" does not exist. Did you mean "${near}"?`;
}

function functionProblem(node: TreeNode, allowed: ReadonlySet<string>): string | null {
  const name = String(node.function_name).toLowerCase();
  // In an expression, the schema can also be a column, as in name.lower().
  if (allowed === tableFunctions && hasSchema(node)) return `Name the function "${name}" without a schema.`;
  if (allowed.has(name)) return null;
  if (allowed === tableFunctions && scalarFunctions.has(name)) {
    return `The function "${name}" cannot be used as a table.`;
  }
  const refused = refusedFunctions.find(({ pattern }) => pattern.test(name));
  if (refused !== undefined) return `The function "${name}" is not available. ${refused.reason}`;
  const near = nearName(name, allowed);
  return `The function "${name}" does not exist${near === null ? '.' : `. Did you mean "${near}"?`}`;
}

function hasSchema(node: TreeNode): boolean {
  return node.schema !== '' || node.catalog !== '';
}

/**
 * DuckDB's limit on memory does not cover the value that one call of a function produces, and such a call cannot be
 * interrupted. So the size must be in the query, and it must be small.
 */
function sizeProblem(node: TreeNode): string | null {
  const name = String(node.function_name).toLowerCase();
  if (!sizedFunctions.has(name)) return null;
  if (hasSchema(node)) return `Write ${name}(…) with all its arguments in the parentheses.`;
  const children = nodesIn(node.children);
  if (name === 'lpad' || name === 'rpad') {
    return children[1] === undefined || isSmallNumber(children[1])
      ? null
      : `The length in ${name} must be a number of up to ${CALL_SIZE}.`;
  }
  if (name === 'format' || name === 'printf') {
    const pattern = children[0] && constantOf(children[0]);
    return children.length === 0 || (typeof pattern === 'string' && !/\d{4}|\*|\{[^}]*\{/.test(pattern))
      ? null
      : `The first argument of ${name} must be a text in quotes, with widths of up to 999.`;
  }
  return children.every(isSmallNumber)
    ? null
    : `In an expression, ${name} takes only whole numbers from -${CALL_SIZE} to ${CALL_SIZE}. Use it as a table: FROM ${name}(…).`;
}

function isSmallNumber(node: TreeNode): boolean {
  const negated = node.class === 'FUNCTION' && node.function_name === '-' ? nodesIn(node.children) : [];
  const value = constantOf(negated.length === 1 ? negated[0]! : node);
  return Number.isInteger(value) && Math.abs(value as number) <= CALL_SIZE;
}

function constantOf(node: TreeNode): unknown {
  return node.class === 'CONSTANT' ? (node.value as TreeNode).value : undefined;
}

/** DuckDB reads these names as calls of functions if no column has the name. */
function columnProblem(node: TreeNode): string | null {
  const [name, ...rest] = node.column_names as readonly string[];
  return rest.length === 0 && /^current_(catalog|schema|database)$/i.test(name!)
    ? `"${name}" is not available. Settings and details of the connection cannot be read.`
    : null;
}
