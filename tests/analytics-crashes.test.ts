// An organisation whose queries take too much memory again and again: its analytics is paused, and the queries of others
// succeed.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { times } from '../server/store/test-thoroughness.ts';
import type { Api, RefusalBody, Reply } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

/** Needs 3 GB for single values, which DuckDB's memory limit does not include. */
const tooLarge = {
  sql: 'SELECT damerau_levenshtein(?, ?)',
  params: ['a'.repeat(20_000), 'b'.repeat(20_000)],
};
/** Takes about half a second. */
const long = { sql: 'SELECT count(*)::INTEGER FROM range(40000000) WHERE sqrt(range) > 3' };
const short = { sql: 'SELECT count(*)::INTEGER FROM tags' };
/** The first one ends the organisation's process, the others are refused. */
const ATTACKS = times(100, 15);
/** On two idle cores, the longest takes 2 to 5 s. Busy ones may take four times as long. */
const LONGEST_MS = 20_000;
const PAUSED = /^A query of this organisation ended the process .* paused for this organisation for \d+ s\./;

forEachStore((store) => {
  const workers: Record<string, string> = store.name === 'SQLite' ? {} : { HEADGATE_WORKERS: '2' };
  const folder = join(tmpdir(), `hg-crashes-${randomUUID().slice(0, 8)}`);
  const server = runningHeadgate(store, {
    HEADGATE_ANALYTICS_MEMORY: '256MiB',
    HEADGATE_ANALYTICS_DIR: folder,
    ...workers,
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  const ask = (api: Api, body: object): Promise<Reply<RefusalBody>> => api.request('/v1/sql', { body });

  test('an organisation whose queries end their process in a loop is paused, and the others go on', async (t) => {
    const [hostile, busy, other] = [await server.newApi(), await server.newApi(), await server.newApi()];
    for (const api of [busy, other]) await api.upload('tags', [leastRecord('tags')]);
    const attacks: Reply<RefusalBody>[] = [];
    const attack = async (): Promise<void> => {
      while (attacks.length < ATTACKS) {
        attacks.push(await ask(hostile, tooLarge));
        await sleep(100);
      }
    };
    const repeat = async (api: Api, query: object, pauseMs: number) => {
      const replies: { readonly reply: Reply<RefusalBody>; readonly ms: number }[] = [];
      while (attacks.length < ATTACKS) {
        const beganAtMs = performance.now();
        replies.push({ reply: await ask(api, query), ms: performance.now() - beganAtMs });
        await sleep(pauseMs);
      }
      return replies;
    };
    const [, ...innocent] = await Promise.all([attack(), repeat(busy, long, 0), repeat(other, short, 20)]);
    for (const replies of innocent) {
      for (const { reply } of replies) assert.equal(reply.status, 200, reply.text);
      const longestMs = Math.max(...replies.map(({ ms }) => ms));
      t.diagnostic(`${replies.length} queries, the longest took ${Math.round(longestMs)} ms`);
      assert.ok(longestMs < LONGEST_MS, `a query took ${longestMs} ms`);
    }
    for (const reply of attacks) {
      assert.equal(reply.status, 503, reply.text);
      assert.match(reply.body.message, PAUSED);
      const retryAfterS = Number(reply.headers.get('retry-after'));
      assert.ok(retryAfterS > 10 && retryAfterS <= 30, String(retryAfterS));
    }
    const saved = await hostile.request<{ failure: { message: string } }>('/v1/segments/all', {
      method: 'PUT',
      body: { condition: { customer: 'region', exists: true } },
    });
    assert.match(saved.body.failure.message, PAUSED);
    const paused = server.headgate
      .output()
      .match(/ its queries needed too much memory; its analytics is paused/g);
    assert.equal(paused?.length, 1);
    assert.doesNotMatch(server.headgate.output(), /ended unexpectedly/);
  });
});
