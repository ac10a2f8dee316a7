import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure } from '../../failure.ts';
import { checkNote } from './segment-definition.ts';

test('a note is a text that every store can store, of at most 1000 characters, or null', () => {
  for (const note of ['', 'Who buys takeaway', 'ü😀', 'x'.repeat(1000), null]) {
    assert.equal(checkNote(note), note);
  }
  assert.equal(checkNote(undefined), null);
  for (const note of ['a\0b', '\ud800', 'x'.repeat(1001), 1, {}]) {
    assert.ok(checkNote(note) instanceof Failure, JSON.stringify(note));
  }
});
