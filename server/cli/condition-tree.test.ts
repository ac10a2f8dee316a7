import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Condition } from '@headgate/client/condition.ts';
import { treeLines, treeOf } from './condition-tree.ts';

const conditions: readonly (readonly [Condition, string])[] = [
  [{ customer: 'region', in: ['DE', 'AT'] }, 'customer region in DE, AT'],
  [{ customer: 'age', at_least: 18, below: 30 }, 'customer age at least 18 and below 30'],
  [{ customer: 'gender', exists: false }, 'customer gender does not exist'],
  [{ customer: 'course.name', contains: 'a, "b"' }, 'customer course.name contains "a, \\"b\\""'],
  [{ did: 'interactions' }, 'did interactions'],
  [
    {
      did: 'transactions',
      where: { 'shop.tag': { is: 'coffee' }, amount: { above: 3 } },
      within: '30d',
      times: { at_least: 3 },
    },
    'did transactions where shop.tag is coffee and amount above 3, within 30d, times at least 3',
  ],
  [
    { did: 'transactions', since: '2026-01-01', until: '1w ago', sum: { amount: { is: 5 } } },
    'did transactions, since 2026-01-01, until 1w ago, sum of amount is 5',
  ],
  [{ did: 'transactions', last: { below: '30d ago' } }, 'did transactions, last below 30d ago'],
  [{ segment: 'newsletter' }, 'segment newsletter'],
  [{ sample: { percent: 10, salt: 'a' } }, 'sample of 10 % with the salt "a"'],
];

test('every form of a condition has a label', () => {
  for (const [condition, label] of conditions) {
    assert.deepEqual(
      treeOf(condition).map((node) => node.label),
      [label],
    );
  }
});

test('a form that is not known is shown as JSON', () => {
  assert.equal(treeOf({ newer: ['\u001b[31m'] })[0]!.label, '{"newer":["\\u001b[31m"]}');
});

test('nodes have the paths of the server, and are indented below their parents', () => {
  const nodes = treeOf({ all: [{ segment: 'a' }, { not: { any: [{ segment: 'b' }] } }] });
  assert.deepEqual(
    nodes.map(({ path }) => path),
    ['', 'all[0]', 'all[1]', 'all[1].not', 'all[1].not.any[0]'],
  );
  const lines = treeLines(nodes, ['N'], ({ depth }) => [`${depth * 100}`], 80);
  assert.deepEqual(lines, [
    'N    CONDITION',
    '0    all of',
    '100    segment a',
    '100    not',
    '200      any of',
    '300        segment b',
  ]);
});

test('a long label is wrapped, and control characters are escaped', () => {
  const nodes = treeOf({ customer: 'gender', in: ['\u001b[31m', ...Array(9).fill('something')] });
  const lines = treeLines(nodes, [], () => [], 40);
  assert.deepEqual(lines.slice(0, 2), [
    'customer gender in "\\u001b[31m",',
    '  something, something, something,',
  ]);
});
