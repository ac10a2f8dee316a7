// Provides tests with a real database in a temporary folder, which is deleted at the end.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../store/open-store.ts';
import type { Organisation } from '../store/organisations.ts';
import type { Store } from '../store/store.ts';
import { createOrganisation } from './organisations.ts';

export interface TemporaryStore {
  readonly store: Store;
  readonly folder: string;
  /** Creates an organisation: `acme`, then `acme 2`, and so on. */
  newOrganisation(): Promise<Organisation>;
  /** Opens the same database again, as another process would. */
  openAgain(): Promise<Store>;
}

/**
 * Creates a store that is deleted by the hook `life.after`. The hook runs at the end of the test if `life` is the
 * context of a test, and at the end of the file if `after` is the one of `node:test`.
 */
export async function temporaryStore(life: {
  after(hook: () => Promise<void>): void;
}): Promise<TemporaryStore> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-access-'));
  const opened: Store[] = [];
  life.after(async () => {
    for (const store of opened) await store.close();
    await rm(folder, { recursive: true });
  });
  const openAgain = async (): Promise<Store> => {
    const store = await openStore(join(folder, 'headgate.db'));
    opened.push(store);
    return store;
  };
  const store = await openAgain();
  let organisations = 0;
  const newOrganisation = async (): Promise<Organisation> => {
    organisations++;
    const name = organisations === 1 ? 'acme' : `acme ${organisations}`;
    const created = await createOrganisation(store, name, Date.now());
    if (created.kind !== 'created') throw new Error(`${name} is ${created.kind}`);
    return created.organisation;
  };
  return { store, folder, newOrganisation, openAgain };
}
