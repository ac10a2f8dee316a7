import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cutTo, shownWidth } from './shown-width.ts';

test('an ideograph or emoji is as wide as two letters, and an accent has no width', () => {
  for (const [text, width] of [
    ['', 0],
    ['shop', 4],
    ['Café', 4],
    ['Cafe\u0301', 4],
    ['書店', 4],
    ['☕ 1', 4],
    ['👩‍👩‍👧', 2],
    ['한국', 4],
    ['a…', 2],
  ] as const) {
    assert.equal(shownWidth(text), width, JSON.stringify(text));
  }
});

test('a text is cut only if it is too wide, and then ends in an ellipsis', () => {
  assert.equal(cutTo('Corner Books', 12), 'Corner Books');
  assert.equal(cutTo('Corner Books', 11), 'Corner Boo…');
  assert.equal(cutTo('書店書店', 8), '書店書店');
  assert.equal(cutTo('書店書店', 7), '書店書…');
  assert.equal(cutTo('書店書店', 6), '書店…');
});

test('a text that was cut fits, and is the beginning of the text', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      fc.integer({ min: 1, max: 40 }),
      (text, most) => {
        const cut = cutTo(text, most);
        assert.ok(shownWidth(cut) <= most);
        if (cut === text) return;
        assert.ok(shownWidth(text) > most);
        assert.ok(cut.endsWith('…') && text.startsWith(cut.slice(0, -1)));
      },
    ),
  );
});
