// Runs a suite once for every kind of database that Headgate supports.

import { describe } from 'node:test';
import { type TestDatabases, testDatabases } from '../../server/store/test-databases.ts';
import { isThorough } from '../../server/store/test-thoroughness.ts';

export type TestStore = TestDatabases;

export function forEachStore(suite: (store: TestStore) => void): void {
  for (const store of testDatabases) describe(`on ${store.name}`, () => suite(store));
}

/** For tests of what does not depend on the database. Thorough runs try it on every store, others on the first one. */
export function describeOnceOn(
  store: TestStore,
  what: string,
  suite: () => void,
  options: { readonly concurrency?: boolean } = {},
): void {
  if (isThorough || store === testDatabases[0]) describe(what, options, suite);
}
