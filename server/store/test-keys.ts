// Opens a database for tests that only create organisations and keys. For SQLite, it starts no threads: their start takes
// fifty times as long as writing the two rows.

import { Failure } from '../failure.ts';
import { readDatabaseLocation } from './database-location.ts';
import { openStore } from './open-store.ts';
import { keyWrites } from './sqlite/keys.ts';
import { retryWhileLocked } from './sqlite/lock-waiting.ts';
import { organisationLookUps, organisationWrites } from './sqlite/organisations.ts';
import { preparer } from './sqlite/statements.ts';
import { openForWriting } from './sqlite/writing-connection.ts';
import type { Store } from './store.ts';

export type Keys = Pick<Store, 'createOrganisation' | 'organisations' | 'addKey' | 'close'>;

export async function openKeys(database: string): Promise<Keys> {
  const place = readDatabaseLocation(database);
  if (place instanceof Failure || place.kind === 'postgres') return openStore(database);
  const connection = openForWriting(place.path);
  const prepare = preparer(connection);
  const { createOrganisation } = organisationWrites(prepare);
  const { organisations } = organisationLookUps(prepare);
  const { addKey } = keyWrites(prepare);
  return {
    createOrganisation: async (...args) => retryWhileLocked(() => createOrganisation(...args)),
    organisations: async () => organisations(),
    addKey: async (...args) => retryWhileLocked(() => addKey(...args)),
    close: async () => connection.close(),
  };
}
