import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from './csv-lines.ts';

test('ordinary values are written unchanged, separated by commas', () => {
  assert.equal(csvLine(['shop_id', 'is_public', 'value']), 'shop_id,is_public,value\n');
  assert.equal(csvLine(['Café Nord', true, 12.5]), 'Café Nord,true,12.5\n');
  assert.equal(csvLine([' spaces stay ', false, 0]), ' spaces stay ,false,0\n');
  assert.equal(csvLine([1e21, 5e-324, -0.1]), '1e+21,5e-324,-0.1\n');
});

test('null is an empty cell, and an empty text is a quoted one', () => {
  assert.equal(csvLine([null, '', null]), ',"",\n');
});

test('values with commas, quotes or line breaks are quoted', () => {
  assert.equal(
    csvLine(['a,b', 'say "so"', 'one\ntwo', 'one\rtwo']),
    '"a,b","say ""so""","one\ntwo","one\rtwo"\n',
  );
});
