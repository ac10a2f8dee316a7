// Every store that the contract suite is run over.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from './open-store.ts';
import { testClusters } from './postgres/test-cluster.ts';
import { testServer } from './postgres/test-server.ts';
import type { Store } from './store.ts';

export interface TestStore {
  readonly store: Store;
  /** Closes the store, and opens what it left behind. */
  reopen(): Promise<Store>;
  dispose(): Promise<void>;
}

export const testStores: readonly { readonly name: string; open(): Promise<TestStore> }[] = [
  {
    name: 'SQLite',
    open() {
      const folder = mkdtempSync(join(tmpdir(), 'headgate-store-'));
      return openOn(`sqlite:${join(folder, 'headgate.db')}`, async () => rmSync(folder, { recursive: true }));
    },
  },
  {
    name: 'PostgreSQL',
    async open() {
      const server = await testServer();
      const { url, drop } = await server.newDatabase();
      return openOn(url, drop);
    },
  },
  ...testClusters.map((testCluster) => ({
    name: 'Citus',
    async open() {
      const cluster = await testCluster();
      const { url, drop } = await cluster.newDatabase();
      return openOn(url, drop);
    },
  })),
];

async function openOn(database: string, remove: () => Promise<void>): Promise<TestStore> {
  let current = await openStore(database);
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
}
