// All stores that the contract suite runs on.

import { openReplicaStore, openStore } from './open-store.ts';
import { hasPooler, startPooler, type TestPooler } from './postgres/test-pooler.ts';
import { testServer } from './postgres/test-server.ts';
import type { Store } from './store.ts';
import { type TestDatabases, testDatabases } from './test-databases.ts';

export interface TestStore {
  readonly store: Store;
  /** Closes the store and opens its database again. */
  reopen(): Promise<Store>;
  dispose(): Promise<void>;
}

let pooler: Promise<TestPooler> | null = null;

const behindPooler: Pick<TestDatabases, 'name' | 'newDatabase'> = {
  name: 'PostgreSQL behind PgBouncer',
  async newDatabase() {
    const server = await testServer();
    pooler ??= startPooler(server, 'transaction');
    const { urlOf } = await pooler;
    const { name, drop } = await server.newDatabase();
    return { database: urlOf(name), remove: drop };
  },
};

interface TestStores {
  readonly name: string;
  open(): Promise<TestStore>;
}

/** One for each kind of database. */
export const directStores: readonly TestStores[] = testDatabases.map((databases) => storesOn(databases));
export const testStores: readonly TestStores[] = hasPooler()
  ? [...directStores, storesOn(behindPooler)]
  : directStores;
/** Whose ledgers and segments are those of a replica process. */
export const replicaStore = storesOn(
  { ...testDatabases[0]!, name: `${testDatabases[0]!.name} replica` },
  openWithReplicaStore,
);

async function openWithReplicaStore(database: string): Promise<Store> {
  const whole = await openStore(database);
  const part = await openReplicaStore(database, (trouble) => process.stderr.write(`${trouble}\n`));
  return {
    ...whole,
    ...part,
    async close() {
      await part.close();
      await whole.close();
    },
  };
}

function storesOn(
  { name, newDatabase }: Pick<TestDatabases, 'name' | 'newDatabase'>,
  openDatabase: (database: string) => Promise<Store> = openStore,
): TestStores {
  return {
    name,
    async open() {
      const { database, remove } = await newDatabase();
      let current = await openDatabase(database);
      return {
        store: current,
        async reopen() {
          await current.close();
          current = await openDatabase(database);
          return current;
        },
        async dispose() {
          await current.close();
          await remove();
        },
      };
    },
  };
}
