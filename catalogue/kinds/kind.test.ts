import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quote, shortened } from './kind.ts';

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

test('a name is cut like a quote, and may be read back from JSON', () => {
  assert.equal(shortened('name'), 'name');
  assert.equal(shortened('x'.repeat(LIMIT_CHARACTERS + 1)), 'x'.repeat(LIMIT_CHARACTERS));
  assert.equal(shortened('\u0001'.repeat(1000)), '\u0001'.repeat(Math.floor(LIMIT_CHARACTERS / 6)));
  assert.equal(shortened('"'.repeat(1000)), '"'.repeat(LIMIT_CHARACTERS / 2));
  assert.ok(shortened(`${'x'.repeat(LIMIT_CHARACTERS - 1)}😀`).isWellFormed());
});

test('quoting a text with escapes takes little longer than quoting another text', () => {
  const cpuMs = (text: string): number => {
    const before = process.cpuUsage();
    for (let quotes = 0; quotes < 2000; quotes++) quote(text.repeat(LIMIT_CHARACTERS));
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  for (const text of ['\u0001', '\n', '"', '\ud800']) assert.ok(cpuMs(text) < 100, JSON.stringify(text));
});

test('arrays and objects are named without showing their contents', () => {
  let nested: unknown = [];
  for (let level = 0; level < 100_000; level++) nested = [nested];
  assert.equal(quote(nested), 'an array');
  assert.equal(quote({}), 'an object');
  assert.equal(quote(null), 'null');
});
