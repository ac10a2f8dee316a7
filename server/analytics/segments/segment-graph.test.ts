import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { circleFrom, type Uses, usersOf, withUsed } from './segment-graph.ts';

function segmentsUsing(uses: Readonly<Record<string, readonly string[]>>): Uses {
  return Object.entries(uses).map(([name, used]) => ({ name, uses: used }));
}

test('a circle has the names of its segments in order', () => {
  const segments = segmentsUsing({ a: ['x', 'b'], b: ['c'], c: ['x', 'a'], x: [] });
  assert.deepEqual(circleFrom('a', segments), ['a', 'b', 'c', 'a']);
  assert.deepEqual(circleFrom('b', segments), ['b', 'c', 'a', 'b']);
  assert.deepEqual(circleFrom('s', segmentsUsing({ s: ['s'] })), ['s', 's']);
});

test('a segment that only uses a circle is not part of it', () => {
  assert.equal(circleFrom('a', segmentsUsing({ a: ['b'], b: ['c'], c: ['b'] })), null);
});

test('segments that use the same segment are no circle', () => {
  assert.equal(circleFrom('a', segmentsUsing({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] })), null);
});

test('the users of a segment are those that use it themselves', () => {
  const segments = segmentsUsing({ z: ['a', 'a'], b: ['a'], c: ['b'], a: [] });
  assert.deepEqual(usersOf('a', segments), ['b', 'z']);
  assert.deepEqual(usersOf('c', segments), []);
});

test('what segments use includes what those use', () => {
  const segments = segmentsUsing({ a: ['b'], b: ['c', 'a'], c: ['d'], x: ['a'] });
  assert.deepEqual(withUsed(['a'], segments), ['a', 'b', 'c', 'd']);
  assert.deepEqual(withUsed(['d', 'x'], segments), ['d', 'x', 'a', 'b', 'c']);
});

test('a circle is found if and only if the segment can be reached from itself', () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const uses = fc.record(
    Object.fromEntries(names.map((name) => [name, fc.subarray(names, { maxLength: 2 })])),
  );
  fc.assert(
    fc.property(uses, (using) => {
      const reached = new Set(using.a!);
      for (const name of reached) for (const next of using[name]!) reached.add(next);
      const circle = circleFrom('a', segmentsUsing(using));
      assert.equal(circle !== null, reached.has('a'));
      for (const [index, name] of (circle ?? []).slice(0, -1).entries()) {
        assert.ok(using[name]!.includes(circle![index + 1]!));
      }
    }),
  );
});
