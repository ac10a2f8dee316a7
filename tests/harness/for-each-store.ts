// Runs a suite once for every kind of database that Headgate supports.

import { describe } from 'node:test';
import { type TestDatabases, testDatabases } from '../../server/store/test-databases.ts';

export type TestStore = TestDatabases;

export function forEachStore(suite: (store: TestStore) => void): void {
  for (const store of testDatabases) describe(`on ${store.name}`, () => suite(store));
}
