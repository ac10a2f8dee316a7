// Lays out a condition as an indented tree, one line for each node, with columns before it.

import { printable } from '../printable.ts';
import { wrap } from './columns.ts';
import { shownWidth } from './shown-width.ts';

type Json = Readonly<Record<string, unknown>>;

export interface TreeNode {
  /** The path of the node, as the server writes it. */
  readonly path: string;
  readonly depth: number;
  readonly label: string;
  /** Whether the node tests a value of its own. */
  readonly isTest: boolean;
}

const GAP = '  ';
const INDENT = '  ';
const LEAST_LABEL_CHARACTERS = 30;

/** Returns the nodes of a condition, parents first. The server has checked the condition. */
export function treeOf(condition: unknown, path = '', depth = 0): readonly TreeNode[] {
  const given = condition as Json;
  const prefix = path === '' ? '' : `${path}.`;
  const combination = (label: string, below: readonly (readonly TreeNode[])[]): readonly TreeNode[] => [
    { path, depth, label, isTest: false },
    ...below.flat(),
  ];
  if (given.not !== undefined) return combination('not', [treeOf(given.not, `${prefix}not`, depth + 1)]);
  for (const name of ['all', 'any'] as const) {
    const list = given[name];
    if (!Array.isArray(list)) continue;
    const below = list.map((each, index) => treeOf(each, `${prefix}${name}[${index}]`, depth + 1));
    return combination(`${name} of`, below);
  }
  return [{ path, depth, label: labelOf(given), isTest: given.segment === undefined }];
}

/**
 * Returns the lines of the tree. `cellsOf` returns the cells before a node, which are as many as there are headings. A
 * label that is too long for the width is wrapped.
 */
export function treeLines(
  nodes: readonly TreeNode[],
  headings: readonly string[],
  cellsOf: (node: TreeNode) => readonly string[],
  widthCharacters: number,
): readonly string[] {
  const rows = nodes.map((node) => ({ node, cells: cellsOf(node) }));
  const widths = headings.map((heading, at) =>
    Math.max(...[heading, ...rows.map(({ cells }) => cells[at]!)].map(shownWidth)),
  );
  const startOf = (cells: readonly string[]): string =>
    cells.map((cell, at) => cell + ' '.repeat(widths[at]! - shownWidth(cell)) + GAP).join('');
  const lines = rows.flatMap(({ node, cells }) => {
    const start = startOf(cells) + INDENT.repeat(node.depth);
    const room = Math.max(LEAST_LABEL_CHARACTERS, widthCharacters - shownWidth(start) - INDENT.length);
    return wrap(node.label, room).map((line, at) =>
      at === 0 ? start + line : ' '.repeat(shownWidth(start)) + INDENT + line,
    );
  });
  return headings.length === 0 ? lines : [`${startOf(headings)}CONDITION`, ...lines];
}

function labelOf(given: Json): string {
  const { customer, did, segment, sample } = given;
  if (typeof segment === 'string') return `segment ${shownValue(segment)}`;
  if (typeof sample === 'object') {
    const { percent, salt } = sample as Json;
    return `sample of ${percent} % with the salt ${JSON.stringify(salt)}`;
  }
  if (typeof customer === 'string') {
    const { customer: _, ...tests } = given;
    return `customer ${customer} ${testsText(tests)}`;
  }
  if (typeof did === 'string') return didText(did, given);
  return printable(JSON.stringify(given));
}

function didText(did: string, { where = {}, within, since, until, ...others }: Json): string {
  const tested = Object.entries(where as Json).map(([field, tests]) => `${field} ${testsText(tests)}`);
  const parts = [
    `did ${did}${tested.length === 0 ? '' : ` where ${tested.join(' and ')}`}`,
    ...Object.entries({ within, since, until }).flatMap(([name, time]) =>
      time === undefined ? [] : [`${name} ${shownValue(time)}`],
    ),
  ];
  for (const name of ['times', 'last', 'first']) {
    if (others[name] !== undefined) parts.push(`${name} ${testsText(others[name])}`);
  }
  for (const name of ['sum', 'average', 'distinct']) {
    for (const [field, tests] of Object.entries((others[name] ?? {}) as Json)) {
      parts.push(`${name} of ${field} ${testsText(tests)}`);
    }
  }
  return parts.join(', ');
}

function testsText(tests: unknown): string {
  return Object.entries(tests as Json)
    .map(([name, value]) => {
      if (name === 'exists') return value === true ? 'exists' : 'does not exist';
      const values = Array.isArray(value) ? value.map(shownValue).join(', ') : shownValue(value);
      return `${name.replaceAll('_', ' ')} ${values}`;
    })
    .join(' and ');
}

/** Returns the value as JSON, without quotes if it is also clear without. */
function shownValue(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:+-]+(?: ago)?$/.test(value)) return value;
  return printable(JSON.stringify(value));
}
