import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { arrayOf } from './row-text.ts';

describe('a column written as an array', () => {
  test('quotes texts that look like array syntax', () => {
    const texts = ['a,b', '{}', '"', '\\', 'NULL', ' ', '', null, 'null'];
    const rows = texts.map((text) => [text]);
    assert.equal(arrayOf(rows, 0, 'text'), '{"a,b","{}","\\"","\\\\","NULL"," ","",NULL,"null"}');
  });

  test('is empty for no rows', () => {
    assert.equal(arrayOf([], 0, 'uuid'), '{}');
  });

  const strange = [
    ['uuid', 'a,b'],
    ['date-time', '2024-05-01T09:30:00Z'],
    ['date', 20240501],
    ['number', 'north'],
    ['number', Number.NaN],
    ['number', Number.POSITIVE_INFINITY],
  ] as const;
  for (const [kind, value] of strange) {
    test(`refuses ${value} as a ${kind}`, () => {
      assert.throws(() => arrayOf([[value]], 0, kind));
    });
  }
});
