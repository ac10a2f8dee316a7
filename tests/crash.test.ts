// A server that is killed repeatedly under load, always on the same database: everything it acknowledged is stored
// with the acknowledged values, and no batch is stored in part.
//
// HEADGATE_TEST_SEED repeats the choices of a run; the moments of the kills still depend on the machine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { times } from '../server/store/test-thoroughness.ts';
import { apiOf } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { startHeadgate } from './harness/headgate.ts';
import { chosenSeed, Random } from './harness/random.ts';
import { WatchedLoad } from './harness/watched-load.ts';

const KILLS = times(22, 2);
const LONGEST_LIFE_MS = 700;
const BATCH_SIZE = 40;

forEachStore((store) => {
  test('acknowledged data survives every SIGKILL, and batches are stored whole or not at all', async (t) => {
    const seed = chosenSeed();
    t.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const { database, remove } = await store.newDatabase();
    const start = () => startHeadgate(database, { HEADGATE_BATCH_SIZE: String(BATCH_SIZE) });
    let headgate = await start();
    try {
      const { key } = await headgate.newKey();
      const load = await WatchedLoad.create(apiOf(headgate.url, key), random, BATCH_SIZE);
      for (let kill = 0; kill < KILLS; kill++) {
        let isOver = false;
        const running = load.start(apiOf(headgate.url, key), (reply) =>
          // A request that the kill cut off has no response. Any other failure fails the test.
          reply.catch((error: unknown) => {
            if (isOver) return null;
            throw error;
          }),
        );
        await Promise.race([sleep(random.integer(1, LONGEST_LIFE_MS)), running.ended]);
        isOver = true;
        running.stop();
        await headgate.kill();
        await running.ended;

        headgate = await start();
        const api = apiOf(headgate.url, key);
        await load.retryUnacknowledged(api);
        await load.assertAllThere(api);
      }
      t.diagnostic(`${KILLS} kills; ${load}`);
      assert.ok(
        load.acknowledgedUploads >= KILLS && load.acknowledgedRevisions >= KILLS,
        'the load was no load',
      );
      await headgate.kill();
      assert.deepEqual(await store.damages(database), []);
    } finally {
      await headgate.kill();
      await remove();
    }
  });
});
