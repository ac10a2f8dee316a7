import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { InFlight } from './in-flight-bytes.ts';

const BODY = 32;

describe('InFlight', () => {
  test('limits one organisation to half, and leaves room for further organisations', () => {
    const inFlight = new InFlight(240, BODY);
    const takeAll = (organisation: number): number => {
      let taken = 0;
      while (inFlight.take(organisation, 1)) taken++;
      return taken;
    };
    assert.equal(takeAll(1), 120);
    assert.equal(takeAll(2), 60);
    inFlight.give(1, 120);
    assert.equal(takeAll(2), 60);
    assert.equal(takeAll(1), 60);
    assert.equal(takeAll(3), 32);
  });

  test('always allows an organisation one body if there is room for it', () => {
    const inFlight = new InFlight(BODY, BODY);
    assert.equal(inFlight.take(1, BODY), true);
    assert.equal(inFlight.take(2, 1), false);
    inFlight.give(1, BODY);
    assert.equal(inFlight.take(2, BODY), true);
  });

  test('counts responses that are not sent yet, and releases everything', () => {
    const inFlight = new InFlight(100, 10);
    inFlight.hold(1, 60);
    assert.equal(inFlight.take(1, 1), false);
    assert.equal(inFlight.take(2, 20), true);
    inFlight.give(1, 60);
    inFlight.give(2, 20);
    assert.equal(inFlight.bytes, 0);
    assert.equal(inFlight.take(1, 50), true);
  });
});
