// For tests: a real database in a folder of its own, gone after the test.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openStore } from '../store/open-store.ts';
import type { Organisation, Store } from '../store/store.ts';
import { createOrganisation } from './organisations.ts';

export interface TemporaryStore {
  readonly store: Store;
  readonly folder: string;
  readonly acme: Organisation;
  /** The same database opened a second time, as another process has it. */
  openAgain(): Promise<Store>;
}

export async function temporaryStore(t: TestContext): Promise<TemporaryStore> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-access-'));
  const opened: Store[] = [];
  t.after(async () => {
    for (const store of opened) await store.close();
    await rm(folder, { recursive: true });
  });
  const open = async (): Promise<Store> => {
    const store = await openStore(join(folder, 'headgate.db'));
    opened.push(store);
    return store;
  };
  const store = await open();
  const created = await createOrganisation(store, 'acme', Date.now());
  if (created.kind !== 'created') throw new Error(`a new database had ${created.kind} the name acme`);
  return { store, folder, acme: created.organisation, openAgain: open };
}
