import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailable } from '../store.ts';
import {
  type Claim,
  callsOf,
  listsOf,
  type Place,
  type PlaceLimits,
  Places,
  placeLimits,
  vital,
} from './places.ts';

const never = Number.POSITIVE_INFINITY;

/** In which time changes nothing but what a test is about. */
function placesWith(limits: Partial<PlaceLimits> = {}): Places {
  return new Places({
    ...placeLimits,
    slowAfterMs: never,
    lateAfterMs: never,
    patienceMs: 1000,
    tickMs: 5,
    ...limits,
  });
}

/** Takes a place that can be had at once. */
async function taken(places: Places, claim: Claim): Promise<Place> {
  const place = await Promise.race([places.take(claim), sleep(200, null)]);
  assert.ok(place !== null, `${claim.lane} of ${claim.owner} has to wait`);
  return place;
}

function takeAll(
  places: Places,
  claim: Claim,
  count: number,
): { readonly begun: Place[]; readonly refused: Error[] } {
  const begun: Place[] = [];
  const refused: Error[] = [];
  for (let n = 0; n < count; n++) {
    places.take(claim).then(
      (place) => begun.push(place),
      (error: Error) => refused.push(error),
    );
  }
  return { begun, refused };
}

/** A call that failed after the time from which it counts as timed out. */
async function timeOut(places: Places, claim: Claim): Promise<void> {
  const place = await taken(places, claim);
  await sleep(15);
  place.giveBack(true);
}

describe('places', () => {
  test('of one organisation are all but one, so that another need not wait', async () => {
    const places = placesWith();
    const lists = takeAll(places, listsOf(1), 10);
    const calls = takeAll(places, callsOf(1), 10);
    await taken(places, callsOf(2));
    assert.deepEqual([lists.begun.length, calls.begun.length], [1, 2]);
  });

  test('are given to organisations in turn, however many calls each has', async () => {
    const places = placesWith();
    const greedy = takeAll(places, callsOf(1), 20);
    const others = [2, 3].map((organisation) => takeAll(places, callsOf(organisation), 2));
    await sleep(1);
    assert.deepEqual([greedy.begun.length, ...others.map(({ begun }) => begun.length)], [3, 1, 0]);
    for (const place of greedy.begun.splice(0)) place.giveBack(false);
    await sleep(1);
    assert.deepEqual([greedy.begun.length, ...others.map(({ begun }) => begun.length)], [1, 2, 1]);
  });

  test('for keys and readiness wait for nobody', async () => {
    const places = placesWith();
    takeAll(places, callsOf(1), 10);
    takeAll(places, callsOf(2), 10);
    const [first] = [await taken(places, vital), await taken(places, vital)];
    const third = places.take(vital);
    first!.giveBack(false);
    await third;
  });

  test('are held in part by lists, one by those of an organisation', async () => {
    const places = placesWith();
    const lists = [1, 2, 3].map((organisation) => takeAll(places, listsOf(organisation), 3));
    await sleep(1);
    assert.deepEqual(
      lists.map(({ begun }) => begun.length),
      [1, 1, 0],
    );
    await Promise.all([taken(places, callsOf(1)), taken(places, callsOf(2))]);
    for (const { begun } of lists.slice(0, 2)) begun[0]!.giveBack(false);
    await sleep(1);
    assert.equal(lists.flatMap(({ begun }) => begun).length, 4);
  });

  test('held by slow calls are opened once more for others, a bounded number of times', async () => {
    const places = placesWith({ slowAfterMs: 20 });
    const claims = [1, 2, 3, 4].map(callsOf);
    const slow = claims.map((claim) => takeAll(places, claim, 3));
    await sleep(200);
    assert.ok(slow.every(({ begun }) => begun.length > 0));
    assert.equal(slow.flatMap(({ begun }) => begun).length, 8);
  });

  test('held by late calls are given up if others wait, the longest first, and otherwise left', async () => {
    const places = placesWith({ slowAfterMs: 10, lateAfterMs: 50 });
    const hanging = [1, 2, 3].map((organisation) => takeAll(places, callsOf(organisation), 3));
    await sleep(200);
    const held = hanging.flatMap(({ begun }) => begun);
    assert.equal(held.length, 8);
    for (const place of held) place.onGivenUp(() => place.giveBack(true));
    await taken(places, callsOf(9));
    const givenUp = held.filter(({ isGivenUp }) => isGivenUp);
    assert.equal(givenUp.length, 4);
    assert.deepEqual(givenUp, held.slice(0, 4));
  });

  test('are no longer waited for after a while, nor by too many calls of one organisation', async () => {
    const places = placesWith({ patienceMs: 50, waitingOfOwner: 2 });
    const { begun, refused } = takeAll(places, callsOf(1), 6);
    await sleep(1);
    assert.deepEqual([begun.length, refused.length], [3, 1]);
    await sleep(150);
    assert.equal(refused.length, 3);
    assert.ok(refused.every((error) => error instanceof StoreUnavailable));
    begun[0]!.giveBack(false);
    await taken(places, callsOf(1));
  });

  test('can be limited in time, which is not held against its owner', async () => {
    const places = placesWith({ lateAfterMs: 10, brokenAfterTimeouts: 1 });
    const claim: Claim = { lane: 'ordinary', owner: 'mixed groups', limitMs: 20 };
    const place = await taken(places, claim);
    const ended = Promise.withResolvers<void>();
    place.onGivenUp(ended.resolve);
    await ended.promise;
    place.giveBack(true);
    await Promise.all([taken(places, claim), taken(places, claim)]);
  });
});

describe('an organisation whose calls time out', () => {
  const limits = { slowAfterMs: 30, lateAfterMs: 10 };

  test('is refused at once while the call that tries again hangs, and served once that has succeeded', async () => {
    const places = placesWith(limits);
    for (let n = 0; n < 3; n++) await timeOut(places, callsOf(1));
    const probe = await taken(places, callsOf(1));
    const { begun, refused } = takeAll(places, callsOf(1), 2);
    await sleep(1);
    assert.deepEqual([begun.length, refused.length], [0, 0], 'the probing call may still succeed');
    await sleep(100);
    assert.equal(refused.length, 2);
    await assert.rejects(places.take(callsOf(1)), StoreUnavailable);
    await taken(places, callsOf(2));
    await taken(places, listsOf(1));
    probe.giveBack(false);
    await Promise.all([taken(places, callsOf(1)), taken(places, callsOf(1))]);
  });

  test('is not refused for fewer timeouts, for failures that come soon, or after one success', async () => {
    const places = placesWith(limits);
    for (let n = 0; n < 2; n++) await timeOut(places, callsOf(1));
    (await taken(places, callsOf(1))).giveBack(false);
    for (let n = 0; n < 2; n++) await timeOut(places, callsOf(1));
    for (let n = 0; n < 5; n++) (await taken(places, callsOf(1))).giveBack(true);
    await taken(places, callsOf(1));
    await sleep(100);
    await taken(places, callsOf(1));
  });

  test('has two places together with all others of that kind, and comes after those that are served', async () => {
    const places = placesWith(limits);
    const troubled = [1, 2, 3];
    for (const organisation of troubled) await timeOut(places, callsOf(organisation));
    const probing = troubled.map((organisation) => takeAll(places, callsOf(organisation), 3));
    await sleep(1);
    assert.equal(probing.flatMap(({ begun }) => begun).length, 2);
    await Promise.all([taken(places, callsOf(4)), taken(places, callsOf(5))]);
  });
});
