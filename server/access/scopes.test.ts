import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordTypeNames } from '@headgate/catalogue/record-types.ts';
import { Failure } from '../failure.ts';
import { parseScopes, permits } from './scopes.ts';

function scopesFrom(...texts: string[]): readonly string[] {
  const parsed = parseScopes(texts);
  assert.ok(!(parsed instanceof Failure), JSON.stringify(parsed));
  return parsed;
}

function refusalOf(...texts: string[]): string {
  const parsed = parseScopes(texts);
  assert.ok(parsed instanceof Failure, JSON.stringify(parsed));
  return parsed.reason;
}

test('a key without requested scopes gets all scopes', () => {
  const scopes = scopesFrom();
  assert.deepEqual(scopes, [
    'data:write',
    'data:read',
    'interactions:write',
    'interactions:read',
    'analytics:read',
    'analytics:write',
  ]);
  for (const type of recordTypeNames) {
    assert.ok(permits(scopes, 'data:write', type) && permits(scopes, 'data:read', type));
  }
  assert.ok(permits(scopes, 'interactions:write') && permits(scopes, 'interactions:read'));
});

test('a scope permits only the operation and type that it names', () => {
  const writesShops = scopesFrom('data:write:shops');
  assert.equal(permits(writesShops, 'data:write', 'shops'), true);
  assert.equal(permits(writesShops, 'data:write', 'shop-tags'), false);
  assert.equal(permits(writesShops, 'data:read', 'shops'), false);
  assert.equal(permits(writesShops, 'interactions:write'), false);

  const reads = scopesFrom('data:read');
  assert.equal(permits(reads, 'data:read', 'student-favourites'), true);
  assert.equal(permits(reads, 'data:write', 'shops'), false);
  assert.equal(permits(reads, 'interactions:read'), false);
});

test('several scopes add up, and duplicates are removed', () => {
  const scopes = scopesFrom('data:write:shops', 'data:write:tags', 'data:write:shops', 'interactions:read');
  assert.deepEqual(scopes, ['data:write:shops', 'data:write:tags', 'interactions:read']);
  assert.ok(permits(scopes, 'data:write', 'tags') && permits(scopes, 'interactions:read'));
});

test('an empty list of scopes permits nothing, and neither does a scope of a newer version', () => {
  assert.equal(permits([], 'data:read', 'shops'), false);
  assert.equal(permits(['everything:else'], 'interactions:read'), false);
});

test('a scope can be limited to any record type, for writing and for reading', () => {
  for (const type of recordTypeNames) {
    assert.deepEqual(scopesFrom(`data:write:${type}`, `data:read:${type}`).length, 2);
  }
});

test('an unknown scope is refused with a similar name', () => {
  assert.match(refusalOf('data:wirte'), /"data:wirte" is not a scope.*did you mean data:write\?$/);
  assert.match(refusalOf('data:write:shosp'), /has an unknown record type; did you mean data:write:shops\?$/);
  assert.match(refusalOf('data:write:colours'), /the types are customers, transactions/);
  for (const text of [
    '',
    'data',
    'data:',
    'data:write:',
    'DATA:WRITE',
    'interactions:write:shops',
    'data:write:shops:x',
    'data:write:__proto__',
  ]) {
    refusalOf('data:read', text);
  }
});
