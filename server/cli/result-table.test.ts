import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { resultTable } from './result-table.ts';
import { shownWidth } from './shown-width.ts';

const text = (name: string) => ({ name, type: 'VARCHAR' });
const number = (name: string) => ({ name, type: 'BIGINT' });

test('numbers are aligned right, null is empty, and lists are JSON', () => {
  const { lines, leftOut, isCut } = resultTable(
    {
      columns: [
        text('name'),
        number('n'),
        { name: 'paid', type: 'DECIMAL(18,2)' },
        { name: 'l', type: 'INTEGER[]' },
      ],
      rows: [
        ['Corner Books', 7, 12.5, [1, 2]],
        [null, '9223372036854775807', null, null],
        ['書店', null, 3, []],
      ],
    },
    80,
  );
  assert.deepEqual(lines, [
    'name                            n  paid  l',
    '────────────  ───────────────────  ────  ─────',
    'Corner Books                    7  12.5  [1,2]',
    '              9223372036854775807',
    '書店                                  3  []',
  ]);
  assert.deepEqual([leftOut, isCut], [[], false]);
});

test('a table without rows shows the columns', () => {
  assert.deepEqual(resultTable({ columns: [text('name')], rows: [] }, 80).lines, ['name', '────']);
});

test('long texts are cut evenly, but numbers are not', () => {
  const columns = [text('name'), number('amount'), text('note')];
  const { lines, isCut } = resultTable(
    { columns, rows: [['n'.repeat(50), 123456789012, 'x'.repeat(50)]] },
    50,
  );
  assert.equal(lines[2], `${'n'.repeat(16)}…  123456789012  ${'x'.repeat(16)}…`);
  assert.equal(isCut, true);
});

test('a date is shown as a whole, or not at all', () => {
  const columns = [text('name'), { name: 'day', type: 'DATE' }];
  const { lines } = resultTable({ columns, rows: [['n'.repeat(50), '2026-05-01']] }, 20);
  assert.equal(lines[2], `${'n'.repeat(7)}…  2026-05-01`);
});

test('columns for which there is no room are named', () => {
  const columns = Array.from({ length: 10 }, (_, at) => text(`column ${at}`));
  const { lines, leftOut } = resultTable({ columns, rows: [columns.map(() => 'value')] }, 30);
  assert.match(lines[0]!, /^column 0 {2}column 1 {2}column 2$/);
  assert.deepEqual(
    leftOut,
    columns.slice(3).map(({ name }) => name),
  );
});

test('what would control the terminal is escaped', () => {
  const { lines } = resultTable({ columns: [text('a\nb')], rows: [['\x1b[31m']] }, 80);
  assert.deepEqual(lines, ['a\\u000ab', '──────────', '\\u001b[31m']);
});

test('without a terminal, only texts of more than 500 characters are cut', () => {
  const rows = [['x'.repeat(500)], ['y'.repeat(501)]];
  const { lines, isCut } = resultTable({ columns: [text('name')], rows }, undefined);
  assert.equal(isCut, true);
  assert.deepEqual(lines.slice(2), ['x'.repeat(500), `${'y'.repeat(499)}…`]);
});

test('a table fits the terminal', () => {
  const cell = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 40 }), fc.constant(null));
  const table = fc.integer({ min: 1, max: 8 }).chain((count) =>
    fc.record({
      columns: fc.array(fc.string({ maxLength: 20 }).map(text), { minLength: count, maxLength: count }),
      rows: fc.array(fc.array(cell, { minLength: count, maxLength: count }), { maxLength: 5 }),
    }),
  );
  fc.assert(
    fc.property(table, fc.integer({ min: 8, max: 120 }), (result, width) => {
      const { lines, leftOut } = resultTable(result, width);
      assert.equal(lines.length, result.rows.length + 2);
      assert.ok(leftOut.length < result.columns.length);
      for (const line of lines) assert.ok(shownWidth(line) <= width, line);
    }),
  );
});
