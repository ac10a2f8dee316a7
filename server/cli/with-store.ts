// Opens the database that `--database` or the environment names, for as long as a command needs it.

import { readSetting, SettingsProblem } from '../settings.ts';
import type { Store } from '../store/store.ts';
import type { Call } from './call.ts';
import { type ExitCode, misused } from './io.ts';

export async function withStore(
  { io, option }: Call,
  use: (store: Store) => Promise<ExitCode>,
): Promise<ExitCode> {
  const database = readSetting('database', io.env, { database: option('database') });
  if (database instanceof SettingsProblem) return misused(io, database.message);
  const { openStore } = await import('../store/open-store.ts');
  const store = await openStore(database, (trouble) => io.err(`headgate: ${trouble}`));
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}
