// Queries while PostgreSQL hangs or is down: they fail in time with the reason, and succeed again afterwards.

import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import {
  type OwnTestServer,
  startTestServer,
  type TestDatabase,
} from '../server/store/postgres/test-server.ts';
import { type Api, apiOf, type RefusalBody, type Reply } from './harness/api.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { leastRecord } from './harness/records.ts';
import { waitUntil } from './harness/waiting.ts';
import { childrenOf } from './harness/worker-processes.ts';

/** A query waits for 10 s until the replica is up to date. */
const REFUSED_WITHIN_MS = 11_500;
const folder = join(tmpdir(), `hg-outage-${process.pid}`);

let postgres: OwnTestServer;
let database: TestDatabase;
let headgate: Headgate;
let unused: Headgate;

before(async () => {
  postgres = await startTestServer();
});
beforeEach(async () => {
  database = await postgres.newDatabase();
  headgate = await startHeadgate(database.url, { HEADGATE_ANALYTICS_DIR: join(folder, 'used') });
  // Its analytics process starts only with the first query.
  unused = await startHeadgate(database.url, { HEADGATE_ANALYTICS_DIR: join(folder, 'unused') });
});
afterEach(async () => {
  await Promise.all([headgate.kill(), unused.kill()]);
  await database.drop();
});
after(() => rmSync(folder, { recursive: true, force: true }));

const newApi = async ({ url }: Headgate): Promise<Api> => apiOf(url, (await headgate.newKey()).key);
const count = (api: Api): Promise<Reply<RefusalBody>> =>
  api.request('/v1/sql', { body: { sql: 'SELECT count(*)::INTEGER FROM tags' } });

/** Sends a signal to all processes of PostgreSQL. */
async function signal(name: 'SIGSTOP' | 'SIGCONT', postmaster: number): Promise<void> {
  for (const pid of [postmaster, ...(await childrenOf(postmaster))]) process.kill(pid, name);
}

const outages: Readonly<Record<string, () => Promise<() => Promise<void>>>> = {
  async hangs() {
    const [{ data_directory }] = (await postgres.ask('postgres', 'SHOW data_directory')) as [
      { data_directory: string },
    ];
    const postmaster = Number(readFileSync(join(data_directory, 'postmaster.pid'), 'utf8').split('\n', 1)[0]);
    await signal('SIGSTOP', postmaster);
    return () => signal('SIGCONT', postmaster);
  },
  async 'is down'() {
    await postgres.kill();
    return () => postgres.start();
  },
};

for (const [what, begin] of Object.entries(outages)) {
  test(`if PostgreSQL ${what}, queries fail in time, and succeed afterwards`, async (t) => {
    const [api, fresh, first] = [await newApi(headgate), await newApi(headgate), await newApi(unused)];
    await api.upload('tags', [leastRecord('tags')]);
    assert.equal((await count(api)).status, 200);
    // The servers know the keys, but there are no replicas yet.
    for (const who of [fresh, first]) assert.equal((await who.request('/v1/data/tags')).status, 200);
    const end = await begin();
    try {
      const refuse = async (name: string, who: Api, reason = /store does not respond/): Promise<Headers> => {
        const beganAtMs = performance.now();
        const { status, text, headers } = await count(who);
        const tookMs = performance.now() - beganAtMs;
        t.diagnostic(`${name}: ${Math.round(tookMs)} ms, ${status} ${text}`);
        assert.equal(status, 503, text);
        assert.match(text, reason);
        assert.ok(tookMs < REFUSED_WITHIN_MS, `a query failed after ${tookMs} ms`);
        return headers;
      };
      const refuseForNow = async (name: string, who: Api): Promise<void> => {
        const headers = await refuse(name, who);
        assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      };
      const twice = async (): Promise<void> => {
        await Promise.all([refuseForNow('with a replica', api), refuseForNow('without a replica', fresh)]);
        // The server looks up its key again, which also fails in time.
        await refuseForNow('later', api);
      };
      const starting = /Analytics is not available: the store cannot be opened"/;
      await Promise.all([twice(), refuse('when the analytics process starts', first, starting)]);
    } finally {
      await end();
    }
    await waitUntil('queries succeed again', async () => {
      const { status, text } = await count(api);
      return status === 200 && text.includes('[[1]]');
    });
    await waitUntil('its first query succeeds', async () => (await count(first)).status === 200);
  });
}
