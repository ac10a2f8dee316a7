// `headgate load` when it is interrupted or its server dies: everything arrives exactly once.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { apiOf } from './harness/api.ts';
import { startFaultyProxy } from './harness/faulty-proxy.ts';
import { forEachStore, type TestStore } from './harness/for-each-store.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { csvOf, loadFolder } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const PER_REQUEST = 5000;
/** One record in so many is rejected. */
const RECORDS_PER_REJECTED = 1000;
const INTERACTIONS = times(3000, 1000);

/** A server that can be started again on the same database and port. */
async function restartable(t: TestContext, store: TestStore) {
  const { database, remove } = await store.newDatabase();
  let headgate: Headgate = await startHeadgate(database);
  t.after(async () => {
    await headgate.kill();
    await remove();
  });
  const { url } = headgate;
  const { key } = await headgate.newKey();
  return {
    url,
    key,
    api: apiOf(url, key),
    kill: () => headgate.kill(),
    async startAgain() {
      headgate = await startHeadgate(database, { HEADGATE_PORT: new URL(url).port });
    },
  };
}

function shopsCsv(count: number): string {
  const rows = Array.from({ length: count }, (_, at) => [
    randomUUID(),
    `Shop ${at}`,
    at % RECORDS_PER_REJECTED === 7 ? 'nowhere' : 'GB',
  ]);
  return csvOf(['shop_id', 'name', 'region'], rows);
}

function lineOf(message: string): number {
  return numberIn(/resuming at line ([\d,]+)/.exec(message)![1]!);
}

function numberIn(shown: string): number {
  return Number(shown.replaceAll(',', ''));
}

forEachStore((store) => {
  test('a server that is killed and started again in mid-load gets everything exactly once', async (t) => {
    const { url, key, api, kill, startAgain } = await restartable(t, store);
    const folder = await loadFolder(t, { HEADGATE_URL: url, HEADGATE_KEY: key });
    const shopId = randomUUID();
    const count = times(60_000, 20_000);
    const rejected = count / RECORDS_PER_REJECTED;
    const created = count + 1 - rejected;
    await folder.write('d/shops.1.csv', shopsCsv(count));
    await folder.write('d/shops.2.csv', csvOf(['shop_id', 'name', 'region'], [[shopId, 'Last', 'GB']]));
    const interactions = Array.from({ length: INTERACTIONS }, (_, at) => ({
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shopId,
      event_timestamp: 1_700_000_000 + at,
    }));
    await folder.write('d/user-interactions.json', JSON.stringify(interactions));

    const loading = folder.start('load', 'd', '--json', '--concurrency', '2');
    await waitUntil(
      'the first shops are stored',
      async () => (await api.list('shops', '?limit=1')).body.records.length > 0,
    );
    await kill();
    await startAgain();
    await waitUntil(
      'the first interactions are recorded',
      async () => (await api.interactions('?limit=1')).body.interactions.length > 0,
    );
    await kill();
    await startAgain();
    const { exitCode, out, err } = await loading.ended;
    assert.equal(exitCode, 1, err);
    const { types } = JSON.parse(out) as { types: Record<string, unknown>[] };
    const none = { updated: 0, unchanged: 0, unchecked: 0 };
    assert.deepEqual(types, [
      { type: 'shops', received: count + 1, created, rejected, ...none },
      { type: 'user-interactions', received: INTERACTIONS, created: INTERACTIONS, rejected: 0, ...none },
    ]);
    assert.equal((await readAllRecords(api, 'shops')).length, created);
    const recorded = await readAllInteractions(api);
    assert.equal(recorded.length, INTERACTIONS);
    assert.equal(new Set(recorded.map(({ event_timestamp }) => event_timestamp)).size, INTERACTIONS);
    const lines = (await folder.read('rejected/shops.ndjson')).trimEnd().split('\n');
    assert.equal(lines.length, rejected);
  });
});

describe('Ctrl-C', () => {
  const running = runningHeadgate(testDatabases[0]!);

  /** Makes a folder with `shops.csv` to load through a proxy. */
  async function loadingThroughProxy(t: TestContext, count: number) {
    const { url, newKey } = running.headgate;
    const { key } = await newKey();
    const proxy = await startFaultyProxy(url);
    t.after(() => proxy.close());
    const folder = await loadFolder(t, { HEADGATE_URL: proxy.url, HEADGATE_KEY: key });
    await folder.write('shops.csv', shopsCsv(count));
    const uploads = () => proxy.requests.filter(({ method }) => method === 'POST').length;
    return { folder, proxy, uploads, api: apiOf(url, key) };
  }

  test('lets requests in flight finish, and the same command resumes from there', async (t) => {
    const count = 60_000;
    const { folder, proxy, uploads, api } = await loadingThroughProxy(t, count);
    const release = Promise.withResolvers<null>();
    // The first four get their responses, the others wait until they are released.
    proxy.fault = ({ method }) => (method === 'POST' && uploads() > 4 ? release.promise : null);

    const first = folder.start('load', 'shops.csv', '--concurrency', '2');
    await waitUntil('two requests are held', () => uploads() === 6);
    first.child.kill('SIGINT');
    await first.saying('stopping');
    release.resolve(null);
    const stopped = await first.ended;
    assert.equal(stopped.exitCode, 2, stopped.err);
    assert.match(stopped.err, /shops\.csv: it was interrupted\n.*Run the same command again to resume there/);
    const stored = (await readAllRecords(api, 'shops')).length;
    assert.ok(stored < count - count / RECORDS_PER_REJECTED, String(stored));
    assert.ok(uploads() <= 8, 'nothing new is begun');

    proxy.fault = () => null;
    const before = uploads();
    const second = await folder.runWithin('load', 'shops.csv');
    assert.equal(second.exitCode, 1, second.err);
    const line = lineOf(second.err);
    assert.match(second.out, /^shops +60,000 +59,940 +0 +0 +60$/m);
    const left = count - (line - 2);
    assert.equal(uploads() - before, Math.ceil(left / PER_REQUEST), 'only what was left is sent');
    assert.equal((await readAllRecords(api, 'shops')).length, count - count / RECORDS_PER_REJECTED);
    const lines = (await folder.read('rejected/shops.ndjson')).trimEnd().split('\n');
    assert.deepEqual([lines.length, new Set(lines).size], [60, 60]);
    assert.deepEqual(await folder.names('rejected'), ['shops.ndjson']);
  });

  test('ends a load whose server is away, and a killed load resumes, too', async (t) => {
    const count = times(60_000, 40_000);
    const rejected = count / RECORDS_PER_REJECTED;
    const { folder, proxy, uploads, api } = await loadingThroughProxy(t, count);
    proxy.fault = ({ method }) => (method === 'POST' && uploads() > 3 ? 'silence' : null);

    const killed = folder.start('load', 'shops.csv', '--concurrency', '1');
    await waitUntil('the fourth request is there', () => uploads() === 4);
    killed.child.kill('SIGKILL');
    await killed.ended;

    proxy.fault = ({ method }) => (method === 'POST' && uploads() > 6 ? 'cut before' : null);
    const away = folder.start('load', 'shops.csv', '--concurrency', '1');
    await away.saying('trying again');
    proxy.fault = () => 'cut before';
    away.child.kill('SIGINT');
    const left = await away.ended;
    assert.equal(left.exitCode, 2, left.err);
    // The journal may lack what was confirmed in the last moment before the kill.
    const line = lineOf(left.err);
    assert.ok(
      [1, 2, 3].some((requests) => line === 2 + requests * PER_REQUEST),
      left.err,
    );

    proxy.fault = () => null;
    const last = await folder.runWithin('load', 'shops.csv');
    assert.equal(last.exitCode, 1, last.err);
    assert.equal(lineOf(last.err), line + 2 * PER_REQUEST);
    const row = new RegExp(
      `^shops +${count.toLocaleString('en')} +([\\d,]+) +0 +([\\d,]+) +${rejected}$`,
      'm',
    );
    const [, created, unchanged] = row.exec(last.out)!;
    assert.equal(numberIn(created!) + numberIn(unchanged!), count - rejected);
    assert.equal((await readAllRecords(api, 'shops')).length, count - rejected);
    assert.equal((await folder.read('rejected/shops.ndjson')).trimEnd().split('\n').length, rejected);
  });
});
