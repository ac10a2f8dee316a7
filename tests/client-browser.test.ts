// The client in a real browser, as built for publishing: a page of another origin uploads, records an interaction and
// reads.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { testDatabases } from '../server/store/test-databases.ts';
import { openBrowser } from './harness/browser.ts';
import { startEndlessServer } from './harness/endless-server.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const root = new URL('..', import.meta.url).pathname;

/** Serves a page and, under /client/, the built client. */
async function servePage(built: string): Promise<{ server: Server; origin: string }> {
  const server = createServer(async (request, response) => {
    const script = /^\/client\/([\w-]+\.js)$/.exec(request.url ?? '')?.[1];
    if (script === undefined) {
      response.setHeader('Content-Type', 'text/html');
      return void response.end('<!doctype html><link rel="icon" href="data:,"><title>Another origin</title>');
    }
    response.setHeader('Content-Type', 'text/javascript');
    response.end(await readFile(join(built, script)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const browser: Browser | string = await openBrowser();
const skip = typeof browser === 'string' ? browser : false;

describe('in a browser', { skip }, () => {
  let built: string;
  let headgate: Headgate;
  let removeDatabase: () => Promise<void>;
  let allowed: { server: Server; origin: string };
  let stranger: { server: Server; origin: string };
  let apiKey: string;

  before(async () => {
    built = await mkdtemp(join(tmpdir(), 'headgate-client-'));
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const project = join(root, 'client/tsconfig.build.json');
    await promisify(execFile)(process.execPath, [compiler, '--project', project, '--outDir', built]);
    [allowed, stranger] = await Promise.all([servePage(built), servePage(built)]);
    const { database, remove } = await testDatabases[0]!.newDatabase();
    removeDatabase = remove;
    headgate = await startHeadgate(database, { HEADGATE_ALLOWED_ORIGINS: allowed.origin });
    ({ key: apiKey } = await headgate.newKey());
  });
  after(async () => {
    await (browser as Browser).close();
    for (const page of [allowed, stranger]) {
      page?.server.close();
      page?.server.closeAllConnections();
    }
    await headgate?.stop();
    await removeDatabase?.();
    await rm(built, { recursive: true, force: true });
  });

  async function onPage<Result>(origin: string, use: (page: Page) => Promise<Result>): Promise<Result> {
    const page = await (browser as Browser).newPage();
    try {
      await page.goto(origin);
      return await use(page);
    } finally {
      await page.close();
    }
  }

  test('a page of an allowed origin uploads, records and reads, and can read refusals', async () => {
    const ids = Array.from({ length: 60 }, () => randomUUID());
    const seen = await onPage(allowed.origin, (page) =>
      page.evaluate(
        async ({ url, key, shopIds }) => {
          const path = '/client/client.js';
          const { HeadgateClient } = (await import(path)) as typeof import('@headgate/client/client.ts');
          const client = new HeadgateClient({
            url,
            apiKey: key,
            maxRecordsPerRequest: 20,
            compression: 'gzip',
          });
          const shops = shopIds.map((shop_id, at) => ({
            shop_id,
            name: `Shop ${at} 漢`,
            region: at === 41 ? '?' : 'GB',
          }));
          const { counts, errors } = await client.upload('shops', shops);
          const interaction = await client.record({
            interaction_type: 'PAGE_VIEW',
            item_type: 'SHOP',
            item_id: shopIds[0]!,
            platform: 'WEB',
            event_timestamp: Date.now(),
          });
          const listed: string[] = [];
          for await (const { name } of client.list('shops', { pageSize: 25 })) listed.push(name);
          const refusal = await new HeadgateClient({ url, apiKey: 'hg_wrong_key' })
            .get('shops', shopIds[0]!)
            .catch((error: Error & { requestId?: string }) => [error.name, typeof error.requestId]);
          return {
            counts,
            places: errors.map(({ index }) => index),
            interaction,
            listed: listed.sort(),
            refusal,
          };
        },
        { url: headgate.url, key: apiKey, shopIds: ids },
      ),
    );
    assert.deepEqual(seen.counts, { received: 60, created: 59, updated: 0, unchanged: 0, rejected: 1 });
    assert.deepEqual(seen.places, [41]);
    assert.equal(seen.interaction.item_id, ids[0]);
    assert.equal(seen.listed.length, 59);
    assert.ok(seen.listed.every((name) => name.endsWith('漢')));
    assert.deepEqual(seen.refusal, ['UnauthorizedError', 'string']);
  });

  test('a page of any other origin cannot read a response', async () => {
    const name = await onPage(stranger.origin, (page) =>
      page.evaluate(
        async ({ url, key, id }) => {
          const path = '/client/client.js';
          const { HeadgateClient } = (await import(path)) as typeof import('@headgate/client/client.ts');
          const client = new HeadgateClient({ url, apiKey: key, retry: { attempts: 1 } });
          return client.get('shops', id).then(
            () => 'an answer',
            (error: Error) => error.name,
          );
        },
        { url: headgate.url, key: apiKey, id: randomUUID() },
      ),
    );
    assert.equal(name, 'UnreachableError');
  });

  test('a response that never ends is read in part only', async (t) => {
    const endless = await startEndlessServer('/v1/data/shops/');
    t.after(() => endless.close());
    const error = await onPage(stranger.origin, async (page) => {
      const thrown = await page.evaluate(async (url) => {
        const path = '/client/client.js';
        const { HeadgateClient } = (await import(path)) as typeof import('@headgate/client/client.ts');
        const client = new HeadgateClient({ url, apiKey: 'hg_a_b' });
        return client.latest().then(
          () => ({ name: 'none', message: '' }),
          ({ name, message }: Error) => ({ name, message }),
        );
      }, endless.url);
      // Closing the page would also close the connection.
      await waitUntil('the connection is closed', () => endless.open() === 0);
      return thrown;
    });
    assert.equal(error.name, 'ResponseTooLargeError');
    assert.match(error.message, /\/v1\/changes responded with more than 128 MiB/);
    assert.equal(endless.begun.length, 1);
  });
});
