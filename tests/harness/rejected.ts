// Returns the error of a rejected promise, for tests that check its details.

import assert from 'node:assert/strict';

/** Resolves to the error with which the promise rejects. It must be of the class. */
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
