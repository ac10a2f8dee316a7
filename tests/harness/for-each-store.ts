// Runs a suite once for every kind of database that Headgate supports.

import { describe } from 'node:test';
import { isTriedInFull, type TestDatabases, testDatabases } from '../../server/store/test-databases.ts';

export type TestStore = TestDatabases;

export function forEachStore(suite: (store: TestStore) => void): void {
  for (const store of testDatabases) describe(`on ${store.name}`, () => suite(store));
}

/** For tests of what does not depend on the database. */
export function describeOnceOn(
  store: TestStore,
  what: string,
  suite: () => void,
  options: { readonly concurrency?: boolean } = {},
): void {
  if (isTriedInFull(store)) describe(what, options, suite);
}
