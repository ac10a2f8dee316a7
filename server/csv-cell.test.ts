import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvCell, spreadsheetSafe } from './csv-cell.ts';

test('texts with commas, quotes or line breaks are quoted, and so is an empty one', () => {
  for (const [text, cell] of [
    ['Café Nord', 'Café Nord'],
    [' spaces stay ', ' spaces stay '],
    ['', '""'],
    ['a,b', '"a,b"'],
    ['say "so"', '"say ""so"""'],
    ['one\ntwo', '"one\ntwo"'],
    ['one\rtwo', '"one\rtwo"'],
  ] as const) {
    assert.equal(csvCell(text), cell);
  }
});

test('for a spreadsheet, text that looks like a formula is marked', () => {
  for (const first of ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
    assert.equal(spreadsheetSafe(`${first}1`), `'${first}1`);
  }
  for (const text of ['1=1', 'a-b', ' =1', "'", '']) assert.equal(spreadsheetSafe(text), text);
});
