import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { pathTo } from '../analytics/segments/condition-problem.ts';
import { placeInJson } from './json-place.ts';

const text = `{
  "note": "a \\"quoted\\" [note], {really}",
  "condition": {"all": [
    {"customer": "region", "in": ["DE", "AT"]},
    {"did": "transactions", "where": {"shop.tag": {"is": "coffee"}}, "sample": {"percent": 5}}
  ]}
}`;

test('finds properties by their keys, and elements by their values', () => {
  const found = (path: string): string => text.slice(placeInJson(text, path)).split(/[\n:,]/, 1)[0]!;
  assert.equal(found(''), '{');
  assert.equal(found('note'), '"note"');
  assert.equal(found('condition'), '"condition"');
  assert.equal(found('condition.all[0]'), '{"customer"');
  assert.equal(found('condition.all[0].in[1]'), '"AT"]}');
  assert.equal(found('condition.all[1].where.shop.tag'), '"shop.tag"');
  assert.equal(found('condition.all[1].where.shop.tag.is'), '"is"');
});

test('finds the innermost part that exists', () => {
  for (const [path, innermost] of [
    ['condition.all[1].sample.salt', 'condition.all[1].sample'],
    ['condition.all[7].not', 'condition.all'],
    ['other', ''],
  ] as const) {
    assert.equal(placeInJson(text, path), placeInJson(text, innermost), path);
  }
});

/** Returns the paths of everything in a value, with the text that begins at their places. */
function* partsOf(value: unknown, path: string, begins: string): Iterable<readonly [string, string]> {
  yield [path, begins];
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries())
      yield* partsOf(each, `${path}[${at}]`, JSON.stringify(each)[0]!);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value))
      yield* partsOf(each, pathTo(path, key), JSON.stringify(key));
  }
}

test('finds every part of any value', () => {
  // Keys are digits and letters, so that every path is unique.
  const key = fc.stringMatching(/^k[a-z0-9]{0,3}$/);
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string({ unit: 'binary' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom(true, null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(value, fc.constantFrom(0, 2), (given, indent) => {
      const json = JSON.stringify(given, null, indent);
      for (const [path, begins] of partsOf(given, '', json[0]!)) {
        assert.ok(json.startsWith(begins, placeInJson(json, path)), `${path} in ${json}`);
      }
    }),
    { numRuns: 50 },
  );
});
