import assert from 'node:assert/strict';
import { test } from 'node:test';
import { originOf } from './rejected-form.ts';

test('a rejected record has an origin only if its line can be the line of a file', () => {
  const rejected = (line: unknown) => ({ record: {}, errors: [], file: 'shops.csv', line });
  assert.deepEqual(originOf(rejected(7)), { file: 'shops.csv', line: 7 });
  for (const line of [null, '7', 1.5, 0, -1, 2 ** 48])
    assert.equal(originOf(rejected(line)), null, `${line}`);
  assert.equal(originOf({ record: {}, file: 'shops.csv', line: 7 }), null);
});
