import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nearName } from './near-name.ts';

const fields = ['shop_id', 'name', 'region', 'is_deleted', 'updated'];

test('a letter added, dropped, replaced, swapped or in the wrong case finds the name', () => {
  for (const typed of ['shopp_id', 'shp_id', 'shap_id', 'hsop_id', 'Shop_ID']) {
    assert.equal(nearName(typed, fields), 'shop_id', typed);
  }
});

test('a name that resembles none finds none', () => {
  for (const typed of ['colour', 'x', '', 'shop_id_of_the_other_organisation_we_work_with']) {
    assert.equal(nearName(typed, fields), null, typed);
  }
});

test('of several near names the nearest is meant', () => {
  assert.equal(nearName('datee', ['rate', 'data', 'date']), 'date');
});

test('a known name always finds itself, and what is found is always known', () => {
  const word = fc.string({ minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(word, fc.array(word), (typed, known) => {
      const found = nearName(typed, known);
      assert.ok(found === null || known.includes(found));
      assert.equal(nearName(typed, [...known, typed])?.toLowerCase(), typed.toLowerCase());
    }),
  );
});
