import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nearName } from './near-name.ts';

const fields = ['shop_id', 'name', 'region', 'is_deleted', 'updated'];

test('a name is found with a letter added, missing, replaced, swapped or in the wrong case', () => {
  for (const typed of ['shopp_id', 'shp_id', 'shap_id', 'hsop_id', 'Shop_ID']) {
    assert.equal(nearName(typed, fields), 'shop_id', typed);
  }
});

test('a name that resembles no known name finds nothing', () => {
  for (const typed of ['colour', 'x', '', 'shop_id_of_the_other_organisation_we_work_with']) {
    assert.equal(nearName(typed, fields), null, typed);
  }
});

test('of several similar names the most similar is found', () => {
  assert.equal(nearName('datee', ['rate', 'data', 'date']), 'date');
});

test('a known name always finds itself, and every result is a known name', () => {
  const word = fc.string({ minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(word, fc.array(word), (typed, known) => {
      const found = nearName(typed, known);
      assert.ok(found === null || known.includes(found));
      assert.equal(nearName(typed, [...known, typed])?.toLowerCase(), typed.toLowerCase());
    }),
  );
});
