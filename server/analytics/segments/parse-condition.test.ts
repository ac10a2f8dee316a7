import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Condition } from '@headgate/client/condition.ts';
import fc from 'fast-check';
import { MOST_LIST_VALUES, MOST_NODES, nodeCount, nodesOf, segmentsUsedIn } from './condition-node.ts';
import { ConditionProblem } from './condition-problem.ts';
import { parseCondition } from './parse-condition.ts';
import { asOfs, conditions } from './testing/generators.ts';

function problemOf(condition: unknown, segments: readonly string[] = []): ConditionProblem {
  const problem = parseCondition(condition, segments);
  assert.ok(problem instanceof ConditionProblem, JSON.stringify(condition));
  return problem;
}

const example: Condition = {
  all: [
    { customer: 'region', in: ['DE', 'AT'] },
    {
      did: 'transactions',
      where: { 'shop.tag': { is: 'coffee' } },
      within: '30d',
      times: { at_least: 3 },
    },
    { did: 'transactions', within: '90d', sum: { amount: { at_least: 100 } } },
    {
      not: { did: 'interactions', where: { interaction_type: { is: 'DISCOUNT_CODE' } }, within: '60d' },
    },
    { segment: 'newsletter' },
    { sample: { percent: 10, salt: 'a' } },
  ],
};

suite('a valid condition', () => {
  test('has nodes with their paths, parents first', () => {
    const node = parseCondition(example, ['newsletter']);
    assert.ok(!(node instanceof ConditionProblem));
    assert.deepEqual(
      Array.from(nodesOf(node), ({ at, kind }) => [at, kind]),
      [
        ['', 'all'],
        ['all[0]', 'customer'],
        ['all[1]', 'did'],
        ['all[2]', 'did'],
        ['all[3]', 'not'],
        ['all[3].not', 'did'],
        ['all[4]', 'segment'],
        ['all[5]', 'sample'],
      ],
    );
    assert.deepEqual(segmentsUsedIn(node), ['newsletter']);
  });

  test('gets its values in their stored form', () => {
    const testsOf = (condition: Condition): unknown => {
      const node = parseCondition(condition);
      assert.ok(!(node instanceof ConditionProblem) && node.kind === 'customer');
      return node.tests;
    };
    assert.deepEqual(testsOf({ customer: 'region', in: ['de', 'At'] }), [
      { kind: 'in', values: ['DE', 'AT'] },
    ]);
    assert.deepEqual(testsOf({ customer: 'user_id', is: 'ABCDEF00-0000-4000-8000-000000000000' }), [
      { kind: 'in', values: ['abcdef00-0000-4000-8000-000000000000'] },
    ]);
    assert.deepEqual(testsOf({ customer: 'created', above: '2026-03-01T01:00:00+01:00' }), [
      { kind: 'above', value: '2026-03-01T00:00:00.000000Z' },
    ]);
    assert.deepEqual(testsOf({ customer: 'created', above: '2026-03-01', below: '2w ago' }), [
      { kind: 'above', value: '2026-03-01T00:00:00.000000Z' },
      { kind: 'below', value: { agoMs: 14 * 86_400_000 } },
    ]);
  });

  test('counts at least one row if it has no measure', () => {
    const node = parseCondition({ did: 'student-favourites' });
    assert.ok(!(node instanceof ConditionProblem) && node.kind === 'did');
    assert.deepEqual(node.measure, { kind: 'times', tests: [{ kind: 'at_least', value: 1 }] });
    assert.deepEqual(node.window, { kind: 'always' });
  });

  test('can compare a number with a value that the field itself cannot have', () => {
    const node = parseCondition({ did: 'transactions', where: { amount: { above: 0, at_least: -1 } } });
    assert.ok(!(node instanceof ConditionProblem));
  });
});

suite('an invalid condition', () => {
  const did = (rest: object): unknown => ({ any: [{ did: 'transactions', ...rest }] });
  const cases: readonly (readonly [unknown, string, RegExp])[] = [
    [null, '', /must be an object, not null/],
    [[], '', /must be an object, not an array/],
    [{}, '', /all, any, not, customer, did, segment, or sample/],
    [{ al: [] }, '', /did you mean "all"\?/],
    [{ and: [] }, '', /not "and"; did you mean "all"\?/],
    [{ or: [] }, '', /not "or"; did you mean "any"\?/],
    [{ all: [], any: [] }, '', /either "all" or "any"/],
    [{ all: [] }, 'all', /at least one/],
    [{ all: {} }, 'all', /must be a list of conditions, not an object/],
    [{ all: [{ sample: { percent: 1, salt: '' } }], note: 1 }, 'note', /no property "note"/],
    [{ all: [{ not: 5 }] }, 'all[0].not', /must be an object, not a number/],
    [
      { customer: 'regoin', is: 'DE' },
      'customer',
      /customers have no field "regoin"; did you mean "region"\?/,
    ],
    [{ customer: 'institute.nam', is: 'x' }, 'customer', /did you mean "institute.name"\?/],
    [
      { customer: 'shoe_size', is: 1 },
      'customer',
      /it can be customer_id, .* or a path such as "institute.name"/,
    ],
    [{ customer: 'is_deleted', is: true }, 'customer', /no field "is_deleted"/],
    [{ customer: 5 }, 'customer', /must be the name of a field, not a number/],
    [{ customer: 'region' }, '', /must have a test: is, in, not_in, or exists/],
    [{ customer: 'region', iz: 'DE' }, 'iz', /no test "iz"; did you mean "is"\?/],
    [
      { customer: 'region', at_least: 'DE' },
      'at_least',
      /"region", a region field, cannot be tested with "at_least"/,
    ],
    [{ customer: 'region', in: ['DE', 'XXX'] }, 'in[1]', /two-letter country code, not "XXX"/],
    [{ customer: 'region', in: [] }, 'in', /at least one value/],
    [{ customer: 'region', in: 'DE' }, 'in', /must be a list of values, not a string/],
    [{ customer: 'region', is: null }, 'is', /two-letter country code, not null/],
    [{ customer: 'birthdate', below: '2000-02-30' }, 'below', /calendar date/],
    [{ customer: 'birthdate', below: '2000-02-01T00:00:00Z' }, 'below', /calendar date/],
    [{ customer: 'created', below: 'yesterday' }, 'below', /a date, a date-time, or a time before now/],
    [{ customer: 'created', is: '2000-01-01' }, 'is', /only with at_least, at_most, above, below, or exists/],
    [{ customer: 'age', at_least: '18' }, 'at_least', /must be a number, not a string/],
    [{ customer: 'age', at_least: Number.NaN }, 'at_least', /finite/],
    [{ customer: 'gender', contains: '' }, 'contains', /must not be empty/],
    [{ customer: 'gender', exists: 1 }, 'exists', /true or false, not a number/],
    [{ customer: 'gender', is: 'a\0b' }, 'is', /NUL/],
    [{ did: 'transaction' }, 'did', /did you mean "transactions"\?/],
    [{ did: 'toString' }, 'did', /it can be transactions, interactions, or student-favourites/],
    [{ did: 7 }, 'did', /a number is nothing that a customer does/],
    [did({ wher: {} }), 'any[0].wher', /did you mean "where"\?/],
    [did({ where: [] }), 'any[0].where', /must be an object, not an array/],
    [did({ where: { 'shop.tags': { is: 'x' } } }), 'any[0].where.shop.tags', /did you mean "shop.tag"\?/],
    [did({ where: { 'shop.tag': 'x' } }), 'any[0].where.shop.tag', /\{"is": …\}, not a string/],
    [did({ where: { 'shop.tag': { is: 5 } } }), 'any[0].where.shop.tag.is', /must be text, not a number/],
    [did({ where: { 'shop.is_public': { is: 'yes' } } }), 'any[0].where.shop.is_public.is', /true or false/],
    [did({ where: { constructor: { is: 5 } } }), 'any[0].where.constructor', /no field "constructor"/],
    [did({ within: '30x' }), 'any[0].within', /such as "12h", "30d" or "4w", not "30x"/],
    [did({ within: 30 }), 'any[0].within', /not a number/],
    [did({ within: '0d' }), 'any[0].within', /not "0d"/],
    [did({ within: '9999999w' }), 'any[0].within', /at most 100 years/],
    [did({ within: '30d', since: '2026-01-01' }), 'any[0].since', /cannot be combined/],
    [did({ within: '30d', until: '2026-01-01' }), 'any[0].until', /cannot be combined/],
    [did({ since: '2026-02-01', until: '2026-01-31' }), 'any[0].since', /^must not be after "until"$/],
    [did({ since: '7d ago', until: '2w ago' }), 'any[0].since', /^must not be after "until"$/],
    [did({ since: '2026-13-01' }), 'any[0].since', /must be a date/],
    [did({ until: 5 }), 'any[0].until', /not a number/],
    [did({ until: '5x ago' }), 'any[0].until', /not "5x ago"/],
    [did({ times: { at_least: 1 }, sum: { amount: { above: 1 } } }), 'any[0].sum', /cannot be combined/],
    [did({ times: 3 }), 'any[0].times', /must be an object with tests/],
    [did({ times: {} }), 'any[0].times', /must have a test/],
    [did({ times: { exists: true } }), 'any[0].times.exists', /cannot be tested with "exists"/],
    [did({ last: { above: '1' } }), 'any[0].last.above', /a date, a date-time/],
    [did({ sum: { amount: { above: 1 }, savings: { above: 1 } } }), 'any[0].sum', /one field/],
    [did({ sum: { amout: { above: 1 } } }), 'any[0].sum.amout', /did you mean "amount"\?/],
    [
      did({ sum: { source: { above: 1 } } }),
      'any[0].sum.source',
      /"source" is not a number, so it has no sum/,
    ],
    [did({ average: { created: { above: 1 } } }), 'any[0].average.created', /not a number/],
    [did({ distinct: { shop_id: { above: 'x' } } }), 'any[0].distinct.shop_id.above', /must be a number/],
    [
      { did: 'interactions', where: { platform: { is: 'web' } } },
      'where.platform.is',
      /one of ANDROID, IOS, WEB/,
    ],
    [
      { did: 'interactions', where: { event_timestamp: { exists: true } } },
      'where.event_timestamp',
      /occurred_at/,
    ],
    [{ segment: 'newslettr' }, 'segment', /no segment "newslettr"; did you mean "newsletter"\?/],
    [{ segment: ['newsletter'] }, 'segment', /must be the name of a segment, not an array/],
    [{ sample: 10 }, 'sample', /must be an object/],
    [{ sample: { percent: 101, salt: 'a' } }, 'sample.percent', /from 0 to 100/],
    [{ sample: { percent: Number.NaN, salt: 'a' } }, 'sample.percent', /from 0 to 100/],
    [{ sample: { percent: 10 } }, 'sample.salt', /must be text/],
    [{ sample: { percent: 10, salt: 'a', seed: 1 } }, 'sample.seed', /no property "seed"/],
  ];
  for (const [condition, path, message] of cases) {
    test(`${JSON.stringify(condition)} is a problem of "${path}"`, () => {
      const problem = problemOf(condition, ['newsletter']);
      assert.equal(problem.path, path);
      assert.match(problem.message, message);
    });
  }
});

suite('limits', () => {
  const leaf = { customer: 'age', at_least: 18 };

  test('a condition has at most 64 nodes', () => {
    const all = Array.from({ length: MOST_NODES - 1 }, () => leaf);
    assert.ok(!(parseCondition({ all }) instanceof ConditionProblem));
    const problem = problemOf({ all: [...all, leaf] });
    assert.equal(problem.path, `all[${MOST_NODES - 1}]`);
    assert.match(problem.message, /at most 64 nodes/);
  });

  test('the tests of where count as nodes', () => {
    const node = {
      did: 'transactions',
      where: { amount: { above: 1 }, region: { is: 'DE' }, source: { is: 'x' } },
    };
    const largest = parseCondition({ all: Array.from({ length: 15 }, () => node) });
    assert.ok(!(largest instanceof ConditionProblem));
    assert.equal(nodeCount(largest), 61);
    assert.equal(problemOf({ all: Array.from({ length: 16 }, () => node) }).path, 'all[15].where.source');
  });

  test('a condition is at most 8 deep', () => {
    const nested = (depth: number): unknown => (depth === 1 ? leaf : { not: nested(depth - 1) });
    assert.ok(!(parseCondition(nested(8)) instanceof ConditionProblem));
    const problem = problemOf(nested(9));
    assert.equal(problem.path, 'not.not.not.not.not.not.not.not');
    assert.match(problem.message, /at most 8 deep/);
    assert.ok(parseCondition(nested(5000)) instanceof ConditionProblem);
  });

  test('a list has at most 1000 values', () => {
    const numbers = Array.from({ length: MOST_LIST_VALUES }, (_, index) => index);
    assert.ok(!(parseCondition({ customer: 'age', in: numbers }) instanceof ConditionProblem));
    assert.match(
      problemOf({ customer: 'age', not_in: [...numbers, 1] }).message,
      /at most 1000 values, not 1001/,
    );
  });
});

test('a long name is cut in the path and in the message', () => {
  const long = 'x'.repeat(100_000);
  for (const condition of [
    { [long]: 1 },
    { customer: 'age', [long]: 1 },
    { did: 'transactions', [long]: 1 },
    { did: 'transactions', where: { [long]: { is: 1 } } },
    { did: 'transactions', where: { region: { [long]: 1 } } },
    { did: 'transactions', sum: { [long]: { is: 1 } } },
    { did: long },
    { segment: long },
    { sample: { [long]: 1 } },
  ]) {
    const { path, message } = problemOf(condition);
    assert.ok(path.length < 200, path.slice(0, 50));
    assert.ok(message.length < 500, message.slice(0, 50));
  }
});

test('a message lists all known names only if they are few', () => {
  const few = ['one', 'two', 'three'];
  assert.match(problemOf({ segment: 'newsletter' }, few).message, /; it can be one, two, or three$/);
  const many = Array.from({ length: 200 }, (_, index) => `segment-${index}`);
  assert.equal(problemOf({ segment: 'newsletter' }, many).message, 'there is no segment "newsletter"');
  assert.equal(problemOf({ segment: 'newsletter' }).message, 'there is no segment "newsletter"');
});

test('no JSON value makes the parser throw', () => {
  const words = [
    'all',
    'any',
    'not',
    'customer',
    'did',
    'where',
    'sum',
    'last',
    'is',
    'in',
    'age',
    '__proto__',
  ];
  const vocabulary = fc.constantFrom<unknown>(...words, 'transactions', 'shop.tag', '30d', 1, null, true);
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      vocabulary,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...words), tie('value'), { maxKeys: 3 }),
    ),
  }));
  fc.assert(
    fc.property(value, (given) => {
      const result = parseCondition(given);
      assert.ok(result instanceof ConditionProblem ? result.message !== '' : result.at === '');
    }),
    { numRuns: 1000 },
  );
});

test('every path of a problem leads to the part that was spoiled', () => {
  const scenario = asOfs.chain((asOf) => fc.tuple(conditions(asOf, []), fc.nat()));
  fc.assert(
    fc.property(scenario, ([condition, chosen]) => {
      const node = parseCondition(condition);
      assert.ok(!(node instanceof ConditionProblem));
      const nodes = [...nodesOf(node)];
      const { at } = nodes[chosen % nodes.length]!;
      const problem = problemOf(spoiled(condition, at));
      assert.equal(problem.path, at);
    }),
  );
});

/** Returns the condition with null in place of the node with this path. */
function spoiled(condition: unknown, at: string): unknown {
  if (at === '') return null;
  const copy = structuredClone(condition);
  const names = at.split(/[.[\]]+/).filter((name) => name !== '');
  let current = copy as Record<string, unknown>;
  for (const name of names.slice(0, -1)) current = current[name] as Record<string, unknown>;
  current[names.at(-1)!] = null;
  return copy;
}
