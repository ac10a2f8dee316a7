import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from './csv-lines.ts';

test('values stand as they are, separated by commas', () => {
  assert.equal(csvLine(['shop_id', 'is_public', 'value']), 'shop_id,is_public,value\n');
  assert.equal(csvLine(['Café Nord', true, 12.5]), 'Café Nord,true,12.5\n');
  assert.equal(csvLine([' spaces stay ', false, 0]), ' spaces stay ,false,0\n');
  assert.equal(csvLine([1e21, 5e-324, -0.1]), '1e+21,5e-324,-0.1\n');
});

test('an absent value is an empty cell, an empty text is not', () => {
  assert.equal(csvLine([null, '', null]), ',"",\n');
});

test('what would be taken for a separator is quoted', () => {
  assert.equal(
    csvLine(['a,b', 'say "so"', 'one\ntwo', 'one\rtwo']),
    '"a,b","say ""so""","one\ntwo","one\rtwo"\n',
  );
});
