import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldPaths } from './field-paths.ts';

test('customers have their own fields and those of their institute and course', () => {
  const paths = fieldPaths.customers;
  for (const path of ['region', 'birthdate', 'institute.name', 'institute.region', 'course.name']) {
    assert.ok(paths.has(path), path);
  }
  assert.ok(![...paths.values()].some(({ isMany }) => isMany));
});

test('events lead to what they refer to, and from there to what that refers to', () => {
  const expected = {
    transactions: ['amount', 'shop.name', 'shop.region', 'offer.type', 'branch.name', 'offer.shop.tag'],
    interactions: ['shop.tag', 'tag.name', 'keyword.name', 'offer.type', 'offer.shop.region', 'occurred_at'],
    'student-favourites': ['shop.tag', 'shop.category', 'shop.keyword'],
  };
  for (const [type, paths] of Object.entries(expected)) {
    for (const path of paths)
      assert.ok(fieldPaths[type as keyof typeof expected].has(path), `${type} ${path}`);
  }
});

test('a linked record means its name, and a row can have several', () => {
  for (const link of ['shop.tag', 'shop.category', 'shop.keyword']) {
    const path = fieldPaths.transactions.get(link);
    assert.deepEqual({ ...path, text: '' }, { ...fieldPaths.transactions.get(`${link}.name`), text: '' });
    assert.equal(path?.field, 'name');
    assert.equal(path?.isMany, true);
  }
  assert.equal(fieldPaths.transactions.get('shop.name')?.isMany, false);
});

test('an item of an interaction is a shop only if the type of the item says so', () => {
  const [step] = fieldPaths.interactions.get('shop.name')!.steps;
  assert.deepEqual(step!.onlyIf, { field: 'item_type', value: 'SHOP' });
});

test('the customer of an event is not a path, because conditions on customers exist', () => {
  assert.ok(!fieldPaths.transactions.has('student.region'));
  assert.ok(!fieldPaths['student-favourites'].has('student.region'));
});

test('fields that cannot be compared and the marks of deleted records are left out', () => {
  for (const paths of Object.values(fieldPaths)) {
    for (const path of paths.keys()) assert.doesNotMatch(path, /is_deleted|event_timestamp/);
  }
});
