import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkDeclarations } from './check-declarations.ts';
import { type Catalogue, type Fields, newlyRequired, optional, recordType, required } from './declaration.ts';
import { boolean } from './kinds/boolean.ts';
import { dateTime } from './kinds/date-time.ts';
import { text } from './kinds/text.ts';
import { uuid } from './kinds/uuid.ts';
import { interaction, recordTypes } from './record-types.ts';
import { uploadOrder } from './references.ts';

const bookkeeping = { updated: optional(dateTime), is_deleted: optional(boolean, { omitted: false }) };
const shops = recordType('Shop', 'shop_id', { shop_id: required(uuid), ...bookkeeping });

function offers(fields: Fields, key = 'offer_id'): Catalogue {
  return { shops, offers: { title: 'Offer', key, fields: { ...fields, ...bookkeeping } } };
}

describe('declarations', () => {
  test('of this version are accepted', () => {
    checkDeclarations(recordTypes, interaction);
  });

  const broken: Readonly<Record<string, readonly [types: Catalogue, says: RegExp]>> = {
    'a key that names no field': [offers({ id: required(uuid) }), /offers: the key offer_id names no field/],
    'an optional key': [
      offers({ offer_id: optional(uuid) }),
      /offers: the key offer_id must be a required UUID/,
    ],
    'a key that became required later': [
      offers({ offer_id: newlyRequired(uuid) }),
      /offer_id must be a required UUID/,
    ],
    'a key that is no UUID': [offers({ offer_id: required(text) }), /offer_id must be a required UUID/],
    'a reference to an unknown type': [
      offers({ offer_id: required(uuid), shop_id: required(uuid, { references: 'stores' }) }),
      /offers\.shop_id: references stores, which is no record type/,
    ],
    'a reference that is a text': [
      offers({ offer_id: required(uuid), shop_id: required(text, { references: 'shops' }) }),
      /offers\.shop_id: only a UUID can reference/,
    ],
    'a reference whose type is named by no field': [
      offers({
        offer_id: required(uuid),
        item_id: required(uuid, { references: { by: 'item_type', types: { SHOP: 'shops' } } }),
      }),
      /offers\.item_id: is told apart by item_type, which is no field/,
    ],
    'a name that SQL would have to quote': [
      offers({ offer_id: required(uuid), 'Shop Id': optional(uuid) }),
      /offers\.Shop Id: is no snake_case name/,
    ],
  };
  for (const [what, [types, says]] of Object.entries(broken)) {
    test(`with ${what} are refused`, () => {
      assert.throws(() => checkDeclarations(types, {}), says);
    });
  }

  test('that lack a field that every type must have are refused', () => {
    const types = {
      shops: recordType('Shop', 'shop_id', { shop_id: required(uuid), updated: optional(dateTime) }),
    };
    assert.throws(() => checkDeclarations(types, {}), /shops: lacks is_deleted/);
  });

  test('that refer to each other in a circle are refused', () => {
    const refersTo = (references: string): Fields => ({
      id: required(uuid),
      other_id: required(uuid, { references }),
      ...bookkeeping,
    });
    const types = {
      a: recordType('A', 'id', refersTo('b')),
      b: recordType('B', 'id', refersTo('a')),
    };
    assert.throws(() => checkDeclarations(types, {}), /a → b → a/);
  });
});

describe('the upload order', () => {
  test('has every type once, after all types that it refers to', () => {
    const order = uploadOrder(recordTypes);
    assert.deepEqual([...order].sort(), Object.keys(recordTypes).sort());
    for (const [type, { fields }] of Object.entries(recordTypes)) {
      for (const { references } of Object.values(fields as Fields)) {
        if (typeof references !== 'string') continue;
        assert.ok(
          order.indexOf(references as never) < order.indexOf(type as never),
          `${references} before ${type}`,
        );
      }
    }
  });
});
