import assert from 'node:assert/strict';
import { addAbortListener, once } from 'node:events';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailable } from '../store.ts';
import {
  type Claim,
  type ConnectionSlot,
  ConnectionSlots,
  callsOf,
  knownKeys,
  listsOf,
  otherKeys,
  pings,
  type SlotLimits,
  slotLimits,
} from './connection-slots.ts';

const never = Number.POSITIVE_INFINITY;

/** Returns slots whose calls never count as slow or late, unless a test sets other limits. */
function placesWith(limits: Partial<SlotLimits> = {}): ConnectionSlots {
  return new ConnectionSlots({
    ...slotLimits,
    slowAfterMs: never,
    lateAfterMs: never,
    patienceMs: 1000,
    tickMs: 5,
    ...limits,
  });
}

/** Takes a slot, and asserts that one is free at once. */
async function taken(slots: ConnectionSlots, claim: Claim): Promise<ConnectionSlot> {
  const slot = await Promise.race([slots.take(claim), sleep(200, null)]);
  assert.ok(slot !== null, `${claim.lane} of ${claim.owner} has to wait`);
  return slot;
}

function takeAll(
  slots: ConnectionSlots,
  claim: Claim,
  count: number,
): { readonly begun: ConnectionSlot[]; readonly refused: Error[] } {
  const begun: ConnectionSlot[] = [];
  const refused: Error[] = [];
  for (let n = 0; n < count; n++) {
    slots.take(claim).then(
      (slot) => begun.push(slot),
      (error: Error) => refused.push(error),
    );
  }
  return { begun, refused };
}

/** Makes a call that fails so late that it counts as timed out. */
async function timeOut(slots: ConnectionSlots, claim: Claim): Promise<void> {
  const slot = await taken(slots, claim);
  await sleep(15);
  slot.giveBack(true);
}

describe('slots', () => {
  test('are limited to all but one per organisation, so that another need not wait', async () => {
    const slots = placesWith();
    const lists = takeAll(slots, listsOf(1), 10);
    const calls = takeAll(slots, callsOf(1), 10);
    await taken(slots, callsOf(2));
    assert.deepEqual([lists.begun.length, calls.begun.length], [1, 2]);
  });

  test('are given to organisations in turn, however many calls each has', async () => {
    const slots = placesWith();
    const greedy = takeAll(slots, callsOf(1), 20);
    const others = [2, 3].map((organisation) => takeAll(slots, callsOf(organisation), 2));
    await sleep(1);
    assert.deepEqual([greedy.begun.length, ...others.map(({ begun }) => begun.length)], [3, 1, 0]);
    for (const slot of greedy.begun.splice(0)) slot.giveBack(false);
    await sleep(1);
    assert.deepEqual([greedy.begun.length, ...others.map(({ begun }) => begun.length)], [1, 2, 1]);
  });

  test('for keys and readiness do not wait for the calls of organisations', async () => {
    const slots = placesWith();
    takeAll(slots, callsOf(1), 10);
    takeAll(slots, callsOf(2), 10);
    const [first] = [await taken(slots, otherKeys), await taken(slots, otherKeys)];
    const third = slots.take(otherKeys);
    first!.giveBack(false);
    await third;
  });

  test('for known keys and readiness wait for few look-ups of unknown keys', async () => {
    const slots = placesWith();
    const unknown = takeAll(slots, otherKeys, 1000);
    const others = [takeAll(slots, knownKeys, 1), takeAll(slots, pings, 1)];
    let ended = 0;
    await sleep(1);
    while (others.some(({ begun }) => begun.length === 0)) {
      unknown.begun.shift()!.giveBack(false);
      ended++;
      await sleep(1);
    }
    assert.ok(ended <= 6, `${ended} look-ups ended before`);
  });

  test('for lists are limited to one per organisation and to a part of all slots', async () => {
    const slots = placesWith();
    const lists = [1, 2, 3].map((organisation) => takeAll(slots, listsOf(organisation), 3));
    await sleep(1);
    assert.deepEqual(
      lists.map(({ begun }) => begun.length),
      [1, 1, 0],
    );
    await Promise.all([taken(slots, callsOf(1)), taken(slots, callsOf(2))]);
    for (const { begun } of lists.slice(0, 2)) begun[0]!.giveBack(false);
    await sleep(1);
    assert.equal(lists.flatMap(({ begun }) => begun).length, 4);
  });

  test('are added while slow calls hold all others, up to a limit', async () => {
    const slots = placesWith({ slowAfterMs: 20 });
    const claims = [1, 2, 3, 4].map(callsOf);
    const slow = claims.map((claim) => takeAll(slots, claim, 3));
    await sleep(200);
    assert.ok(slow.every(({ begun }) => begun.length > 0));
    assert.equal(slow.flatMap(({ begun }) => begun).length, 8);
  });

  test('of late calls are taken back only if other calls wait, the longest held first', async () => {
    const slots = placesWith({ slowAfterMs: 10, lateAfterMs: 50 });
    const hanging = [1, 2, 3].map((organisation) => takeAll(slots, callsOf(organisation), 3));
    await sleep(200);
    const held = hanging.flatMap(({ begun }) => begun);
    assert.equal(held.length, 8);
    for (const slot of held) addAbortListener(slot.givenUp, () => slot.giveBack(true));
    await taken(slots, callsOf(9));
    const aborted = held.filter(({ givenUp }) => givenUp.aborted);
    assert.equal(aborted.length, 4);
    assert.deepEqual(aborted, held.slice(0, 4));
  });

  test('are refused after a timeout, or if too many calls of one organisation wait', async () => {
    const slots = placesWith({ patienceMs: 50, waitingOfOwner: 2 });
    const { begun, refused } = takeAll(slots, callsOf(1), 6);
    await sleep(1);
    assert.deepEqual([begun.length, refused.length], [3, 1]);
    await sleep(150);
    assert.equal(refused.length, 3);
    assert.ok(refused.every((error) => error instanceof StoreUnavailable));
    begun[0]!.giveBack(false);
    await taken(slots, callsOf(1));
  });

  test('can have a time limit, and reaching it does not count against the owner', async () => {
    const slots = placesWith({ lateAfterMs: 10, brokenAfterTimeouts: 1 });
    const claim: Claim = { lane: 'ordinary', owner: 'mixed groups', limitMs: 20 };
    const slot = await taken(slots, claim);
    await once(slot.givenUp, 'abort');
    slot.giveBack(true);
    await Promise.all([taken(slots, claim), taken(slots, claim)]);
  });
});

describe('an organisation whose calls time out', () => {
  const limits = { slowAfterMs: 30, lateAfterMs: 10 };

  test('is refused at once while its probing call hangs, and served after that succeeds', async () => {
    const slots = placesWith(limits);
    for (let n = 0; n < 3; n++) await timeOut(slots, callsOf(1));
    const probe = await taken(slots, callsOf(1));
    const { begun, refused } = takeAll(slots, callsOf(1), 2);
    await sleep(1);
    assert.deepEqual([begun.length, refused.length], [0, 0], 'the probing call may still succeed');
    await sleep(100);
    assert.equal(refused.length, 2);
    await assert.rejects(slots.take(callsOf(1)), StoreUnavailable);
    await taken(slots, callsOf(2));
    await taken(slots, listsOf(1));
    probe.giveBack(false);
    await Promise.all([taken(slots, callsOf(1)), taken(slots, callsOf(1))]);
  });

  test('is not refused after few timeouts, after fast failures, or after one success', async () => {
    const slots = placesWith(limits);
    for (let n = 0; n < 2; n++) await timeOut(slots, callsOf(1));
    (await taken(slots, callsOf(1))).giveBack(false);
    for (let n = 0; n < 2; n++) await timeOut(slots, callsOf(1));
    for (let n = 0; n < 5; n++) (await taken(slots, callsOf(1))).giveBack(true);
    await taken(slots, callsOf(1));
    await sleep(100);
    await taken(slots, callsOf(1));
  });

  test('shares two slots with all other such organisations, and is served after the rest', async () => {
    const slots = placesWith(limits);
    const troubled = [1, 2, 3];
    for (const organisation of troubled) await timeOut(slots, callsOf(organisation));
    const probing = troubled.map((organisation) => takeAll(slots, callsOf(organisation), 3));
    await sleep(1);
    assert.equal(probing.flatMap(({ begun }) => begun).length, 2);
    await Promise.all([taken(slots, callsOf(4)), taken(slots, callsOf(5))]);
  });
});
