import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columns, wrap } from './columns.ts';

test('columns are as wide as their longest cell in characters, without trailing spaces', () => {
  assert.deepEqual(
    columns(
      [
        ['ID', 'NAME', ''],
        ['1', 'é🎓', 'x'],
        ['22', 'long name', ''],
      ],
      ' ',
    ),
    [' ID  NAME', ' 1   é🎓         x', ' 22  long name'],
  );
});

test('a long last cell is wrapped within its column', () => {
  const lines = columns([['--flag', 'word '.repeat(40).trim()]], '  ');
  assert.equal(lines.length, 3);
  assert.ok(lines.every((line) => line.length <= 100 && line.indexOf('word') === 10));
});

test('wrapping loses no word and breaks only at spaces', () => {
  const text = `short ${'x'.repeat(150)} words after`;
  assert.deepEqual(wrap(text, 20), ['short', 'x'.repeat(150), 'words after']);
});
