import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALWAYS_ALLOWED_BYTES, InFlight } from './in-flight-bytes.ts';

const MIB = 1024 * 1024;
const BODY = 32 * MIB;

describe('InFlight', () => {
  test('limits one organisation to half, and leaves room for further organisations', () => {
    const inFlight = new InFlight(240 * MIB, BODY);
    const takeAll = (organisation: number): number => {
      let taken = 0;
      while (inFlight.take(organisation, MIB)) taken++;
      return taken;
    };
    assert.equal(takeAll(1), 120);
    assert.equal(takeAll(2), 60);
    inFlight.give(1, 120 * MIB);
    assert.equal(takeAll(2), 60);
    assert.equal(takeAll(1), 60);
    assert.equal(takeAll(3), 32);
  });

  test('always allows an organisation one body if there is room for it', () => {
    const inFlight = new InFlight(BODY, BODY);
    assert.equal(inFlight.take(1, BODY), true);
    assert.equal(inFlight.take(2, MIB), false);
    inFlight.give(1, BODY);
    assert.equal(inFlight.take(2, BODY), true);
  });

  test('never refuses an organisation that holds little, even if responses take all the room', () => {
    const inFlight = new InFlight(100 * MIB, 10 * MIB);
    for (const organisation of [1, 2, 3, 4]) inFlight.hold(organisation, 30 * MIB);
    assert.equal(inFlight.take(1, 1), false);
    assert.equal(inFlight.take(5, ALWAYS_ALLOWED_BYTES), true);
    assert.equal(inFlight.take(5, 1), false);
  });

  test('counts responses that are not sent yet, and releases everything', () => {
    const inFlight = new InFlight(100 * MIB, 10 * MIB);
    inFlight.hold(1, 60 * MIB);
    assert.equal(inFlight.take(1, MIB), false);
    assert.equal(inFlight.take(2, 20 * MIB), true);
    inFlight.give(1, 60 * MIB);
    inFlight.give(2, 20 * MIB);
    assert.equal(inFlight.bytes, 0);
    assert.equal(inFlight.take(1, 50 * MIB), true);
  });
});
