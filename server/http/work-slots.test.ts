import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WorkSlots } from './work-slots.ts';

function slotsWith(options: Partial<ConstructorParameters<typeof WorkSlots>[0]>): WorkSlots {
  return new WorkSlots({ slots: 2, mostWaiting: 2, longestWaitMs: 60_000, ...options });
}

describe('WorkSlots', () => {
  test('makes further requests of an organisation wait for a slot, in order of arrival', async () => {
    const slots = slotsWith({});
    assert.deepEqual(await Promise.all([slots.enter(1), slots.enter(1)]), [true, true]);
    const entered: string[] = [];
    const third = slots.enter(1).then(() => entered.push('third'));
    const fourth = slots.enter(1).then(() => entered.push('fourth'));
    assert.equal(await slots.enter(2), true, 'another organisation does not wait');
    assert.deepEqual(entered, []);
    slots.leave(1);
    await third;
    slots.leave(1);
    await fourth;
    assert.deepEqual(entered, ['third', 'fourth']);
    slots.leave(1);
    slots.leave(1);
    assert.equal(await slots.enter(1), true);
  });

  test('removes a request that gives up from the queue, so that it takes no slot later', async () => {
    const slots = slotsWith({ slots: 1 });
    await slots.enter(1);
    let giveUp = (): void => assert.fail('the request did not wait');
    const waiting = slots.enter(1, (given) => (giveUp = given));
    giveUp();
    assert.equal(await waiting, false);
    slots.leave(1);
    giveUp();
    assert.equal(await slots.enter(1), true);
  });

  test('refuses a request that waits too long, or behind too many others', async () => {
    const slots = slotsWith({ longestWaitMs: 20 });
    await Promise.all([slots.enter(1), slots.enter(1)]);
    const waiting = [slots.enter(1), slots.enter(1)];
    assert.equal(await slots.enter(1), false);
    assert.deepEqual(await Promise.all(waiting), [false, false]);
    slots.leave(1);
    assert.equal(await slots.enter(1), true);
  });
});
