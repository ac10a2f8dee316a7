// Runs a suite once for every kind of database that Headgate keeps its data in.

import { join } from 'node:path';
import { describe } from 'node:test';
import { newDatabaseFolder } from './headgate.ts';

export interface TestStore {
  readonly name: string;
  /** A new, empty database: its address, and how to remove it. */
  newDatabase(): Promise<{ database: string; remove(): Promise<void> }>;
}

const stores: readonly TestStore[] = [
  {
    name: 'SQLite',
    async newDatabase() {
      const { folder, remove } = await newDatabaseFolder();
      return { database: `sqlite:${join(folder, 'headgate.db')}`, remove };
    },
  },
];

export function forEachStore(suite: (store: TestStore) => void): void {
  for (const store of stores) describe(`on ${store.name}`, () => suite(store));
}
