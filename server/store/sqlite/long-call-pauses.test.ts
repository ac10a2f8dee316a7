import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LongCallPauses } from './long-call-pauses.ts';

const A = 1;
const B = 2;
const largeOf = (organisation: number) => ({ organisation, weight: 5000 });
const smallOf = (organisation: number) => ({ organisation, weight: 1 });

describe('after a large call that took 700 ms', () => {
  test('its organisation pauses for as long if another one is active', () => {
    const pauses = new LongCallPauses();
    pauses.groupEnded([smallOf(B)], 1, 1000);
    pauses.groupEnded([largeOf(A)], 700, 2000);
    assert.equal(pauses.isPausing(A, 2001), true);
    assert.equal(pauses.isPausing(B, 2001), false);
    assert.equal(pauses.isPausing(A, 2701), false);
  });

  test('its organisation pauses if another one becomes active', () => {
    const pauses = new LongCallPauses();
    pauses.groupEnded([largeOf(A)], 700, 2000);
    assert.equal(pauses.isPausing(A, 2001), false);
    pauses.groupEnded([smallOf(B)], 1, 2002);
    assert.equal(pauses.isPausing(A, 2003), true);
  });

  test('its organisation does not pause if no other one was active lately', () => {
    const pauses = new LongCallPauses();
    pauses.groupEnded([smallOf(B)], 1, 100);
    pauses.groupEnded([largeOf(A)], 700, 2000);
    assert.equal(pauses.isPausing(A, 2001), false);
  });
});

test('nobody pauses after a short large call, or after many small calls', () => {
  const pauses = new LongCallPauses();
  pauses.groupEnded([smallOf(B)], 1, 1000);
  pauses.groupEnded([largeOf(A)], 100, 1500);
  assert.equal(pauses.isPausing(A, 1501), false);
  pauses.groupEnded([smallOf(A)], 700, 1600);
  assert.equal(pauses.isPausing(A, 1601), false);
});
