// What a promise is rejected with, for tests that look closely at an error.

import assert from 'node:assert/strict';

/** What is rejected by the promise, which must be of the class. */
export async function rejected<E extends Error>(
  promise: Promise<unknown>,
  type: new (...args: never[]) => E,
): Promise<E> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof type, `not a ${type.name}: ${error}`);
    return error;
  }
  throw new Error(`no ${type.name} came`);
}
