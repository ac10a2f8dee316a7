import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreUnavailable } from '../store/store.ts';
import type { OrderRefusal } from './analytics-orders.ts';
import { type Replica, ReplicaClosed } from './replica.ts';
import { withReplica } from './replica-use.ts';

const INVALIDATED = 'Failed: database has been invalidated because of a previous fatal error.';
const fatalError = (exception_message: string): Error =>
  new Error(JSON.stringify({ exception_type: 'FATAL', exception_message }));

/** Resolves to the reason why the replica is discarded after an error, what is logged, and the client's message. */
async function after(
  error: Error,
): Promise<{ discardedFor: string | null; logged: readonly string[]; message: string }> {
  let discardedFor: string | null = null;
  const logged: string[] = [];
  const replica = {
    async discard(reason: string) {
      discardedFor = reason;
    },
  } as unknown as Replica;
  const service = {
    replica,
    folder: '/secret',
    onUse() {},
    onUnusable: (reason: string) => void logged.push(reason),
  };
  const refusal: OrderRefusal = await withReplica(service, () => Promise.reject(error));
  return { discardedFor, logged, message: refusal.message };
}

test('a replica is discarded after an error of DuckDB that makes it unusable, and only then', async () => {
  const unusable = await after(fatalError(INVALIDATED));
  assert.equal(unusable.discardedFor, INVALIDATED);
  assert.match(unusable.message, /was damaged and is made again/);
  const other = await after(new Error('the file /secret/x is locked'));
  assert.equal(other.discardedFor, null);
  assert.match(other.message, /cannot be used at the moment: the file HEADGATE_ANALYTICS_DIR\/x is locked$/);
});

test('a full disk is not damage, even if DuckDB refuses everything because of it', async () => {
  const reason = `${INVALIDATED}\nOriginal error: "Could not write file "x.duckdb": No space left on device"`;
  const full = await after(fatalError(reason));
  assert.equal(full.discardedFor, null);
  assert.match(full.message, /cannot be used at the moment: .*No space left/s);
});

test('a query for which the others have left no memory is told so, without the advice of DuckDB', async () => {
  const exception_message =
    'could not allocate block of size 2 KiB (244 MiB/244 MiB used)\nPossible solutions: …';
  const { message, logged } = await after(
    new Error(JSON.stringify({ exception_type: 'Out of Memory', exception_message })),
  );
  assert.match(message, /^There is not enough memory left .* other queries/);
  assert.deepEqual(logged, [exception_message]);
});

test('the log gets the reason if the replica cannot be used, but not if the store does not respond', async () => {
  assert.deepEqual((await after(new Error('the file is locked'))).logged, ['the file is locked']);
  assert.deepEqual((await after(new StoreUnavailable('down'))).logged, []);
  assert.deepEqual((await after(new ReplicaClosed())).logged, []);
});
