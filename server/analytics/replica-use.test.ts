import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Replica } from './replica.ts';
import { withReplica } from './replica-use.ts';
import type { Replicas } from './replicas.ts';

const order = { organisation: 1, orgId: 'o', timeoutMs: 1000 };

/** Resolves to whether the replica is discarded after an error, and to the message for the client. */
async function after(error: Error): Promise<{ isDiscarded: boolean; message: string }> {
  let isDiscarded = false;
  const replica = {
    async discard() {
      isDiscarded = true;
    },
  } as unknown as Replica;
  const replicas = {
    with: (
      _organisation: number,
      _orgId: string,
      _left: AbortSignal,
      use: (replica: Replica, wanted: AbortSignal) => unknown,
    ) => use(replica, new AbortController().signal),
  } as Replicas;
  const refusal = await withReplica(replicas, order, new AbortController().signal, () =>
    Promise.reject(error),
  );
  return { isDiscarded, message: refusal.message };
}

test('a replica is discarded after an error of DuckDB that makes it unusable, and only then', async () => {
  const fatal = JSON.stringify({
    exception_type: 'FATAL',
    exception_message: 'Failed: database has been invalidated because of a previous fatal error.',
  });
  const unusable = await after(new Error(fatal));
  assert.equal(unusable.isDiscarded, true);
  assert.match(unusable.message, /was damaged and is made again/);
  const other = await after(new Error('the store is not available'));
  assert.equal(other.isDiscarded, false);
  assert.match(other.message, /cannot be used at the moment: the store is not available$/);
});
