// Starts one PostgreSQL for all test files of a run, because each start costs a second. It is passed to Node with
// --test-global-setup, and is not needed to run a single file.

import { shareTestServer, startTestServer } from './test-server.ts';

export async function globalSetup(): Promise<void> {
  shareTestServer(await startTestServer());
}
