import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Condition } from '@headgate/client/condition.ts';
import { ConditionProblem } from './condition-problem.ts';
import { parseCondition } from './parse-condition.ts';

test('what the types allow is valid', () => {
  const valid: readonly Condition[] = [
    { customer: 'region', in: ['DE', 'AT'] },
    { customer: 'age', at_least: 18, below: 30 },
    { customer: 'institute.name', contains: 'Wien' },
    { customer: 'created', above: '30d ago' },
    { did: 'transactions' },
    { did: 'transactions', where: { 'shop.is_public': { is: true }, 'offer.value': { above: 3 } } },
    { did: 'transactions', since: '2026-01-01', until: '1w ago', average: { 'offer.value': { is: 2 } } },
    { did: 'interactions', where: { platform: { in: ['WEB', 'IOS'] } }, distinct: { item_id: { above: 1 } } },
    { did: 'student-favourites', within: '4w', first: { at_most: '2w ago' } },
    { not: { any: [{ sample: { percent: 5, salt: '' } }, { did: 'interactions', times: { is: 0 } }] } },
  ];
  for (const condition of valid) {
    assert.ok(!(parseCondition(condition) instanceof ConditionProblem), JSON.stringify(condition));
  }
});

test('what the types forbid is not valid', () => {
  const invalid: readonly Condition[] = [
    // @ts-expect-error a field that customers do not have
    { customer: 'regoin', is: 'DE' },
    // @ts-expect-error text for a number
    { customer: 'age', at_least: '18' },
    // @ts-expect-error a test that the kind does not allow
    { customer: 'region', above: 'DE' },
    // @ts-expect-error a value that is not among the choices
    { did: 'interactions', where: { platform: { is: 'web' } } },
    // @ts-expect-error a path that transactions do not have
    { did: 'transactions', where: { 'shop.tags': { is: 'x' } } },
    // @ts-expect-error a time for a number of times
    { did: 'transactions', times: { at_least: '2026-01-01' } },
    // @ts-expect-error two measures
    { did: 'transactions', times: { at_least: 1 }, sum: { amount: { above: 1 } } },
    // @ts-expect-error a sum of text
    { did: 'transactions', sum: { source: { above: 1 } } },
    // @ts-expect-error two sums
    { did: 'transactions', sum: { amount: { above: 1 }, savings: { above: 1 } } },
    // @ts-expect-error two windows
    { did: 'transactions', within: '30d', since: '2026-01-01' },
    // @ts-expect-error an unknown unit
    { did: 'transactions', within: '30y' },
    // @ts-expect-error a sample without salt
    { sample: { percent: 5 } },
  ];
  for (const condition of invalid) {
    assert.ok(parseCondition(condition) instanceof ConditionProblem, JSON.stringify(condition));
  }
});
