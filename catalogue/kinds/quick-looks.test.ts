// The fast checks of UUIDs and date-times must give the same results as the general ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseDateTime } from './date-time.ts';
import { Flaw } from './kind.ts';
import { uuid } from './uuid.ts';

/** Generates texts with one character replaced, removed or doubled, or without any change. */
function damaged(good: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const character = fc.oneof(
    fc.constantFrom(...'0123456789abcdefgGAF-:.TtZz +/\u0130\u0430'),
    fc.string({ unit: 'binary', maxLength: 1 }),
  );
  return fc
    .tuple(good, fc.nat(), character, fc.constantFrom('keep', 'replace', 'drop', 'double'))
    .map(([text, where, other, how]) => {
      const at = where % text.length;
      if (how === 'keep') return text;
      const middle = { replace: other, drop: '', double: text[at]! + text[at]! }[how]!;
      return text.slice(0, at) + middle + text.slice(at + 1);
    });
}

test('a UUID is accepted exactly if it matches its published pattern, and is stored in lower case', () => {
  const pattern = new RegExp((uuid.schema as { pattern: string }).pattern);
  fc.assert(
    fc.property(
      damaged(
        fc.oneof(
          fc.uuid(),
          fc.uuid().map((id) => id.toUpperCase()),
        ),
      ),
      (text) => {
        const kept = uuid.check(text, true);
        if (pattern.test(text)) assert.equal(kept, text.toLowerCase());
        else assert.ok(kept instanceof Flaw, `${text} was kept as ${String(kept)}`);
      },
    ),
    { numRuns: 5000 },
  );
});

test('a date-time means the same moment as for the JavaScript engine, or is refused', () => {
  const moment = fc
    .date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    })
    .map((date) => date.toISOString());
  const spelt = fc.oneof(
    moment,
    moment.map((iso) => `${iso.slice(0, 19)}Z`),
  );
  const usual = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/;
  fc.assert(
    fc.property(damaged(spelt), (text) => {
      const kept = parseDateTime(text);
      if (!usual.test(text)) return;
      const ms = Date.parse(text);
      // The engine takes the 24th hour and the 31st of any month; a calendar does not.
      const isReal =
        !Number.isNaN(ms) &&
        new Date(ms).toISOString().startsWith(text.slice(0, 19)) &&
        ms >= -62_135_596_800_000;
      assert.equal(kept, isReal ? `${new Date(ms).toISOString().slice(0, -1)}000Z` : null);
    }),
    { numRuns: 5000 },
  );
});
