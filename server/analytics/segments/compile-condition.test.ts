import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { Condition } from '@headgate/client/condition.ts';
import fc from 'fast-check';
import { Failure } from '../../failure.ts';
import { times } from '../../store/test-thoroughness.ts';
import { membersSql } from './compile-condition.ts';
import type { ConditionNode } from './condition-node.ts';
import { ConditionProblem } from './condition-problem.ts';
import { fieldPaths } from './field-paths.ts';
import { parseCondition } from './parse-condition.ts';
import { explanationSql, previewSql, readExplanation, readPreview, SAMPLE_MEMBERS } from './preview-sql.ts';
import { PlainEvaluation, type Records, type Row } from './testing/evaluation.ts';
import { asOfs, conditions, id, type Json, records } from './testing/generators.ts';
import { TestReplica } from './testing/replica.ts';

function parsed(condition: Json | Condition, segmentNames: Iterable<string> = []): ConditionNode {
  const node = parseCondition(condition, segmentNames);
  if (node instanceof ConditionProblem) throw new Error(`${node.path}: ${node.message}`);
  return node;
}

const noSegments = () => null;

suite('conditions on a replica', () => {
  let replica: TestReplica;
  before(async () => {
    replica = await TestReplica.open();
  });
  after(() => replica.close());

  async function membersOf(condition: Condition | Json, asOf: Date): Promise<readonly string[]> {
    const rows = await replica.rows(membersSql(parsed(condition), { asOf, conditionOf: noSegments }));
    return rows.map(([customerId]) => customerId as string).sort();
  }

  test('random conditions have the members, counts and explanations of a plain evaluation', async () => {
    const scenario = asOfs.chain((asOf) =>
      fc.record({
        asOf: fc.constant(asOf),
        organisation: records(asOf),
        one: conditions(asOf, []),
        two: conditions(asOf, ['one']),
        tried: fc.array(conditions(asOf, ['one', 'two']), { minLength: 12, maxLength: 12, size: 'max' }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(scenario, async ({ asOf, organisation, one, two, tried }) => {
        await replica.load(organisation);
        const segments = new Map([
          ['one', one],
          ['two', two],
        ]);
        const plain = new PlainEvaluation(organisation, asOf, segments);
        const evaluation = {
          asOf,
          conditionOf: (name: string) => parsed(segments.get(name)!, segments.keys()),
        };
        for (const condition of tried) {
          const node = parsed(condition, segments.keys());
          const members = (await replica.rows(membersSql(node, evaluation))).map(([each]) => each as string);
          assert.deepEqual(members.sort(), plain.members(condition));
          await assertPreview(condition, node, evaluation, plain, members);
          await assertExplanations(condition, node, evaluation, plain);
        }
      }),
      { numRuns: times(25, 10) },
    );
  });

  type Evaluation = Parameters<typeof membersSql>[1];

  async function assertPreview(
    condition: Json,
    node: ConditionNode,
    evaluation: Evaluation,
    plain: PlainEvaluation,
    members: readonly string[],
  ): Promise<void> {
    const [row] = await replica.rows(previewSql(node, evaluation));
    const preview = readPreview(node, row!);
    const perCustomer = plain.liveCustomers().map((customer) => plain.explain(condition, customer));
    assert.equal(preview.count, members.length);
    assert.deepEqual(preview.sample, members.slice(0, SAMPLE_MEMBERS));
    for (const [index, { count, path }] of preview.nodes.entries()) {
      const expected = perCustomer.filter((nodes) => nodes[index]!.holds).length;
      assert.equal(count, expected, `the count of ${path}`);
      for (const nodes of perCustomer) assert.equal(path, nodes[index]!.path);
    }
  }

  async function assertExplanations(
    condition: Json,
    node: ConditionNode,
    evaluation: Evaluation,
    plain: PlainEvaluation,
  ): Promise<void> {
    for (const customer of plain.liveCustomers().slice(0, 2)) {
      const customerId = customer.customer_id as string;
      const [row] = await replica.rows(explanationSql(node, customerId, evaluation));
      const explained = readExplanation(node, row!);
      const expected = plain.explain(condition, customer);
      assert.equal(explained.member, expected[0]!.holds);
      assert.deepEqual(explained.nodes, expected);
    }
  }

  test('every path leads to the same values as a plain evaluation', async () => {
    const asOf = new Date('2026-03-01T00:00:00Z');
    const [organisation] = fc.sample(records(asOf), { numRuns: 1, seed: 7 });
    await replica.load(organisation!);
    const plain = new PlainEvaluation(organisation!, asOf);
    for (const [type, paths] of Object.entries(fieldPaths)) {
      for (const path of paths.keys()) {
        const tried: readonly Json[] =
          type === 'customers'
            ? [{ customer: path, exists: true }]
            : [
                { did: type, where: { [path]: { exists: true } } },
                { did: type, distinct: { [path]: { at_least: 2 } } },
              ];
        for (const condition of tried) {
          const expected = plain.members(condition);
          assert.deepEqual(await membersOf(condition, asOf), expected, JSON.stringify(condition));
        }
      }
    }
  });

  suite('times', () => {
    const asOf = new Date('2026-03-31T12:00:00.000Z');
    const customer = { customer_id: id(1), is_deleted: false };

    async function didAt(time: string | null, window: Json): Promise<boolean> {
      await replica.load({
        customers: [customer],
        transactions: [
          { transaction_id: id(1), student_id: id(1), created: time, amount: 1, is_deleted: false },
        ],
      });
      return (await membersOf({ did: 'transactions', ...window }, asOf)).length === 1;
    }

    test('within excludes its first moment and includes the time of the evaluation', async () => {
      const within = { within: '30d' };
      assert.equal(await didAt('2026-03-01T12:00:00.000000Z', within), false);
      assert.equal(await didAt('2026-03-01T12:00:00.000001Z', within), true);
      assert.equal(await didAt('2026-03-31T12:00:00.000000Z', within), true);
      assert.equal(await didAt('2026-03-31T12:00:00.000001Z', within), false);
      assert.equal(await didAt('2026-03-31T00:00:00.000000Z', { within: '12h' }), false);
      assert.equal(await didAt('2026-03-31T00:00:00.000001Z', { within: '12h' }), true);
      assert.equal(await didAt('2026-03-24T12:00:00.000001Z', { within: '1w' }), true);
    });

    test('since is included and until is excluded', async () => {
      const window = { since: '2026-03-01', until: '2026-03-02T00:00:00Z' };
      assert.equal(await didAt('2026-02-28T23:59:59.999999Z', window), false);
      assert.equal(await didAt('2026-03-01T00:00:00.000000Z', window), true);
      assert.equal(await didAt('2026-03-01T23:59:59.999999Z', window), true);
      assert.equal(await didAt('2026-03-02T00:00:00.000000Z', window), false);
    });

    test('a row without a time is counted only without a window', async () => {
      assert.equal(await didAt(null, {}), true);
      assert.equal(await didAt(null, { within: '30d' }), false);
      assert.equal(await didAt(null, { since: '2026-03-01' }), false);
      assert.equal(await didAt(null, { until: '9999-01-01' }), false);
      assert.equal(await didAt(null, { last: { at_most: '9999-01-01' } }), false);
    });

    test('a time can be given relative to the evaluation', async () => {
      assert.equal(await didAt('2026-03-01T12:00:00.000000Z', { last: { at_most: '30d ago' } }), true);
      assert.equal(await didAt('2026-03-01T12:00:00.000001Z', { last: { at_most: '30d ago' } }), false);
      assert.equal(await didAt('2026-03-01T12:00:00.000000Z', { since: '30d ago' }), true);
    });

    test('an age is in whole years', async () => {
      const isAdult = async (birthdate: string, at: string): Promise<boolean> => {
        await replica.load({ customers: [{ ...customer, birthdate }] });
        return (await membersOf({ customer: 'age', at_least: 18 }, new Date(at))).length === 1;
      };
      assert.equal(await isAdult('2008-03-31', '2026-03-30T23:59:59.999Z'), false);
      assert.equal(await isAdult('2008-03-31', '2026-03-31T00:00:00Z'), true);
      assert.equal(await isAdult('2008-02-29', '2026-02-28T23:59:59Z'), false);
      assert.equal(await isAdult('2008-02-29', '2026-03-01T00:00:00Z'), true);
    });
  });

  test('nothing that was done counts as zero, but has no average and no time', async () => {
    const asOf = new Date('2026-03-31T12:00:00Z');
    await replica.load({ customers: [{ customer_id: id(1) }] });
    const isMember = async (measure: Json): Promise<boolean> =>
      (await membersOf({ did: 'transactions', ...measure }, asOf)).length === 1;
    assert.equal(await isMember({ times: { is: 0 } }), true);
    assert.equal(await isMember({ sum: { amount: { below: 1 } } }), true);
    assert.equal(await isMember({ distinct: { shop_id: { at_most: 0 } } }), true);
    assert.equal(await isMember({ average: { amount: { below: 1 } } }), false);
    assert.equal(await isMember({ last: { below: '2030-01-01' } }), false);
    assert.equal(await isMember({}), false);
  });

  test('a sum of decimal fractions is as people expect it', async () => {
    const asOf = new Date('2026-03-31T12:00:00Z');
    const transactions = Array.from({ length: 10 }, (_, index) => ({
      transaction_id: id(index),
      student_id: id(1),
      amount: 0.1,
    }));
    await replica.load({ customers: [{ customer_id: id(1) }], transactions });
    const isMember = async (measure: Json): Promise<boolean> =>
      (await membersOf({ did: 'transactions', ...measure }, asOf)).length === 1;
    assert.equal(await isMember({ sum: { amount: { is: 1 } } }), true);
    assert.equal(await isMember({ average: { amount: { is: 0.1 } } }), true);
  });

  test('a condition with lists of a thousand values of every kind is evaluated', async () => {
    const asOf = new Date('2026-03-31T12:00:00Z');
    const numbers = Array.from({ length: 1000 }, (_, index) => index);
    const texts = numbers.map((number) => `"${number}', [\\]{}$1?`);
    const customer: Row = { customer_id: id(1), region: 'DE', gender: texts[999]!, birthdate: '2000-01-31' };
    const organisation = { customers: [customer, { ...customer, customer_id: id(2), gender: 'other' }] };
    await replica.load(organisation as Partial<Records>);
    const condition: Condition = {
      all: [
        { customer: 'customer_id', in: numbers.map(id) },
        { customer: 'gender', in: texts },
        { customer: 'age', in: numbers },
        { customer: 'birthdate', in: ['2000-01-31', '2000-02-01'] },
      ],
    };
    assert.deepEqual(await membersOf(condition, asOf), [id(1)]);
  });

  test('a customer that does not exist or is deleted has no explanation', async () => {
    await replica.load({ customers: [{ customer_id: id(1), is_deleted: true }] });
    const node = parsed({ did: 'transactions', times: { is: 0 } });
    for (const customerId of [id(1), id(2)]) {
      const statement = explanationSql(node, customerId, { asOf: new Date(), conditionOf: noSegments });
      assert.deepEqual(await replica.rows(statement), []);
    }
  });
});

test('the SQL contains no value of the condition', () => {
  const marker = 'MARKER';
  const number = 918273645;
  const markerId = '91827364-5918-4273-8645-918273645918';
  const condition = {
    all: [
      { customer: 'gender', is: marker, contains: marker, in: [marker, 'x'], not_in: [marker] },
      { customer: 'customer_id', in: [markerId] },
      { customer: 'age', above: number },
      { customer: 'created', at_least: '9182-03-06T04:05:00Z' },
      { sample: { percent: 9.182_736_45, salt: marker } },
      {
        did: 'transactions',
        where: { 'shop.tag': { is: marker }, amount: { in: [number, 1] } },
        since: '9182-03-06',
        sum: { amount: { at_least: number } },
      },
      { segment: marker },
    ],
  };
  const node = parsed(condition, [marker]);
  const evaluation = {
    asOf: new Date('9182-01-01'),
    conditionOf: () => parsed({ customer: 'gender', is: marker }),
  };
  for (const statement of [
    membersSql(node, evaluation),
    previewSql(node, evaluation),
    explanationSql(node, markerId, evaluation),
  ]) {
    assert.ok(!(statement instanceof Failure));
    assert.doesNotMatch(statement.sql, /MARKER|9182|91827364/);
    assert.ok(statement.params.includes(marker));
    assert.ok(statement.params.includes(number));
    assert.ok(statement.params.includes(markerId));
  }
});

suite('segments in conditions', () => {
  const asOf = new Date('2026-03-31T12:00:00Z');

  function reasonOf(condition: Json, segments: Readonly<Record<string, Json>>): string {
    const names = Object.keys(segments);
    const known = [...names, 'gone'];
    const statement = membersSql(parsed(condition, known), {
      asOf,
      conditionOf: (name) => (names.includes(name) ? parsed(segments[name]!, known) : null),
    });
    assert.ok(statement instanceof Failure);
    return statement.reason;
  }

  test('a segment that does not exist is a failure', () => {
    assert.match(reasonOf({ segment: 'gone' }, {}), /no segment gone/);
  });

  test('a circle is a failure that names its segments', () => {
    const segments = { a: { segment: 'b' }, b: { not: { segment: 'c' } }, c: { any: [{ segment: 'b' }] } };
    assert.match(reasonOf({ segment: 'a' }, segments), /b → c → b/);
  });

  test('a segment that is used several times is compiled once', () => {
    const twice = (used: string): Json => ({ any: [{ segment: used }, { not: { segment: used } }] });
    const names = Array.from({ length: 40 }, (_, index) => `s${index}`);
    const statement = membersSql(parsed({ segment: 's39' }, names), {
      asOf,
      conditionOf: (name) => {
        const number = Number(name.slice(1));
        return parsed(number === 0 ? { customer: 'age', exists: true } : twice(`s${number - 1}`), names);
      },
    });
    assert.ok(!(statement instanceof Failure));
  });

  test('segments with too many nodes together are a failure', () => {
    const large = (used: string | null): Json => ({
      all: [
        ...Array.from({ length: 60 }, () => ({ did: 'transactions' })),
        ...(used === null ? [] : [{ segment: used }]),
      ],
    });
    const segments = { a: large(null), b: large('a'), c: large('b'), d: large('c'), e: large('d') };
    assert.match(reasonOf({ segment: 'e' }, segments), /more than 256 nodes/);
  });
});
