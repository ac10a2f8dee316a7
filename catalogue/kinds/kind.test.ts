import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quote } from './kind.ts';

const LIMIT_CHARACTERS = 100;

test('a value within the limit is quoted in full', () => {
  assert.equal(quote('a "b"'), '"a \\"b\\""');
  assert.equal(quote('x'.repeat(LIMIT_CHARACTERS)), `"${'x'.repeat(LIMIT_CHARACTERS)}"`);
  assert.equal(quote(1.5), '1.5');
});

test('a longer text is cut, and an escape counts as all of its characters', () => {
  assert.equal(quote('x'.repeat(LIMIT_CHARACTERS + 1)), `"${'x'.repeat(LIMIT_CHARACTERS)}…"`);
  for (const text of ['\u0001', '"', '😀', '\ud800', 'é']) {
    const quoted = quote(text.repeat(1000));
    assert.ok(quoted.length <= LIMIT_CHARACTERS + '"…"'.length, quoted);
    assert.ok(quoted.endsWith('…"') && quoted.isWellFormed(), quoted);
  }
});

test('arrays and objects are named without showing their contents', () => {
  let nested: unknown = [];
  for (let level = 0; level < 100_000; level++) nested = [nested];
  assert.equal(quote(nested), 'an array');
  assert.equal(quote({}), 'an object');
  assert.equal(quote(null), 'null');
});
