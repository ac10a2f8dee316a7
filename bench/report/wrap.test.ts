import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oneLine, wrap } from './wrap.ts';

test('lines break at spaces, and a word breaks only if it is longer than a line', () => {
  assert.deepEqual(wrap('one two three', 7), ['one two', 'three']);
  assert.deepEqual(wrap('a abcdefgh b', 3), ['a', 'abc', 'def', 'gh', 'b']);
  assert.deepEqual(wrap('', 3), ['']);
  assert.deepEqual(wrap('🎓🎓🎓', 2), ['🎓🎓', '🎓']);
});

test('colours, line breaks and control characters are removed', () => {
  assert.equal(oneLine(' \u001b[31mred\u001b[0m\r\n\tand\u0000 more\ud800 '), 'red and more\ufffd');
});
