import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { placeInQuery } from './query-place.ts';
import { shownWidth } from './shown-width.ts';

test('the caret is under the position, on the right line', () => {
  assert.deepEqual(placeInQuery('SELECT nam FROM shops', 7), [
    'line 1: SELECT nam FROM shops',
    '               ^',
  ]);
  const sql = 'SELECT *\r\nFROM\tshop\r\nLIMIT 1';
  assert.deepEqual(placeInQuery(sql, sql.indexOf('shop')), ['line 2: FROM shop', '             ^']);
  assert.deepEqual(placeInQuery("SELECT '書店', x", 13), ["line 1: SELECT '書店', x", `${' '.repeat(23)}^`]);
  assert.deepEqual(placeInQuery('SELECT 1 +', 10), ['line 1: SELECT 1 +', `${' '.repeat(18)}^`]);
});

test('of a long line, the part around the position is shown', () => {
  const sql = `SELECT ${'a, '.repeat(100)}wrong, ${'b, '.repeat(100)} c`;
  const [line, caret] = placeInQuery(sql, sql.indexOf('wrong'), 60);
  assert.match(line, /^line 1: ….*a, wrong, b, .*…$/);
  assert.ok(shownWidth(line) <= 60);
  assert.equal(line.slice(caret.indexOf('^')).slice(0, 5), 'wrong');
});

test('both lines fit any terminal, at any position', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 100 }),
      fc.nat(100),
      fc.integer({ min: 40, max: 90 }),
      (sql, at, width) => {
        const lines = placeInQuery(sql, Math.min(at, sql.length), width);
        for (const line of lines) assert.ok(shownWidth(line) <= width + 1, line);
      },
    ),
  );
});
