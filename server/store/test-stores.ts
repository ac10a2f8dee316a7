// Every store that the contract suite is run over.

import { type OpenedStore, openStore } from './open-store.ts';
import type { Store } from './store.ts';
import { testDatabases } from './test-databases.ts';

export interface TestStore {
  readonly store: Store;
  /** Closes the store, and opens what it left behind. */
  reopen(): Promise<Store>;
  dispose(): Promise<void>;
}

export const testStores: readonly { readonly name: string; open(): Promise<TestStore> }[] = testDatabases.map(
  ({ name, newDatabase }) => ({
    name,
    async open() {
      const { database, remove } = await newDatabase();
      let current: OpenedStore = await openStore(database);
      return {
        store: current,
        async reopen() {
          await current.close();
          current = await openStore(database);
          return current;
        },
        async dispose() {
          await current.close();
          await remove();
        },
      };
    },
  }),
);
