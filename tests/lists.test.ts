// Lists are limited in bytes, in rows read and in number at a time, so that they do not slow other organisations.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { HeadgateClient } from '@headgate/client/client.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf } from './harness/api.ts';
import { fillDeletedTags, filledId, fillPageViews } from './harness/filling.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { commandLine } from './harness/headgate.ts';
import { pagesOfInteractions } from './harness/pages.ts';
import { leastRecord, uploadReferenced } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const PAGE_BYTES = 1024 * 1024;
/** JSON writes each of these characters with six bytes. */
const LONGEST_TEXT = '\u0001'.repeat(10_000);
const LARGEST_OFFER_BYTES = 4 * 6 * 10_000 + 1000;
const DELETED_TAGS = 500_000;
const PAGE_VIEWS = times(100_000, 50_000);
/** Generous, because other tests run at the same time; without bounds it takes minutes. */
const SOON_MS = 20_000;

forEachStore((store) => {
  const running = runningHeadgate(store);

  const newOrganisation = async (): Promise<{ api: Api; key: string; orgId: string }> => {
    const { key, org_id: orgId } = await running.headgate.newKey();
    return { api: apiOf(running.headgate.url, key), key, orgId };
  };

  describe('a page of long records', () => {
    const OFFERS = times(60, 24);
    let api: Api;
    let key: string;
    let ids: readonly string[];

    test('ends at about 1 MiB with a cursor to the next page', async () => {
      ({ api, key } = await newOrganisation());
      const references = await uploadReferenced(api, 'offers');
      const texts = Object.fromEntries(
        ['name', 'type', 'allowed_branches', 'allowed_days'].map((field) => [field, LONGEST_TEXT]),
      );
      const offers = Array.from({ length: OFFERS }, () => leastRecord('offers', { ...references, ...texts }));
      const { status, text } = await api.upload('offers', offers);
      assert.equal(status, 200, text);
      ids = offers.map(({ offer_id: id }) => id as string).sort();
      const listed: string[] = [];
      let pages = 0;
      for (let cursor = ''; ; pages++) {
        const page = await api.list('offers', `?limit=1000${cursor}`);
        assert.equal(page.status, 200);
        assert.ok(page.text.length <= PAGE_BYTES + LARGEST_OFFER_BYTES, `${page.text.length} bytes`);
        assert.ok(page.body.records.length > 0);
        listed.push(...page.body.records.map(({ offer_id: id }) => id as string));
        if (page.body.next_cursor === null) break;
        assert.ok(page.text.length > PAGE_BYTES - 2 * LARGEST_OFFER_BYTES, 'pages are filled');
        cursor = `&cursor=${page.body.next_cursor}`;
      }
      assert.deepEqual(listed, ids);
      assert.ok(pages >= 3);
    });

    test('is followed by all other pages in an export', async () => {
      const env = { ...process.env, HEADGATE_URL: running.headgate.url, HEADGATE_KEY: key };
      const { stdout } = await promisify(execFile)(
        process.execPath,
        commandLine(['export', 'offers']).slice(1),
        { env, maxBuffer: 2 * OFFERS * LARGEST_OFFER_BYTES },
      );
      const exported = stdout.trimEnd().split('\n');
      assert.deepEqual(
        exported.map((line) => (JSON.parse(line) as { offer_id: string }).offer_id),
        ids,
      );
    });
  });

  describe('beside half a million deleted tags', () => {
    let api: Api;
    let live: string;

    test('a page ends early with a cursor that leads to the remaining records', async () => {
      const organisation = await newOrganisation();
      api = organisation.api;
      await fillDeletedTags(store, running.headgate.database, organisation.orgId, DELETED_TAGS);
      live = filledId(DELETED_TAGS + 1);
      const { status } = await api.upload('tags', [leastRecord('tags', { tag_id: live })]);
      assert.equal(status, 200);
      const first = await api.list('tags', '?limit=1');
      assert.deepEqual(first.body.records, []);
      assert.equal(typeof first.body.next_cursor, 'string');
      const found: unknown[] = [];
      let pages = 0;
      for (let cursor: string | null = first.body.next_cursor; cursor !== null; pages++) {
        const { body } = await api.list('tags', `?limit=1&cursor=${cursor}`);
        found.push(...body.records.map(({ tag_id: id }) => id));
        cursor = body.next_cursor;
      }
      assert.deepEqual(found, [live]);
      const client = new HeadgateClient({ url: running.headgate.url, apiKey: organisation.key });
      const listed = await Array.fromAsync(client.list('tags', { pageSize: 1 }));
      assert.deepEqual(
        listed.map(({ tag_id: id }) => id),
        [live],
      );
      assert.ok(pages < DELETED_TAGS / 1000, `${pages} pages`);
    });

    test('two hundred lists at once do not delay another organisation', async () => {
      const { api: other } = await newOrganisation();
      const lists = Promise.all(Array.from({ length: 200 }, () => api.list('tags', '?limit=1')));
      const startedAtMs = performance.now();
      const tag = leastRecord('tags');
      assert.equal((await other.upload('tags', [tag])).status, 200);
      assert.equal((await other.read('tags', tag.tag_id as string)).status, 200);
      assert.deepEqual((await other.list('tags')).body.records.length, 1);
      assert.equal((await other.request('/readyz')).status, 200);
      const elapsedMs = performance.now() - startedAtMs;
      assert.ok(elapsedMs < SOON_MS, `${elapsedMs} ms`);
      for (const { status, headers, body, text } of await lists) {
        assert.ok(status === 200 || status === 503, text);
        if (status === 200) continue;
        assert.match(headers.get('retry-after') ?? '', /^\d+$/);
        assert.match((body as unknown as { message: string }).message, /try again|fewer/);
      }
    });
  });

  test('a search for an interaction type that does not occur takes bounded steps', async () => {
    const { api, orgId } = await newOrganisation();
    await fillPageViews(store, running.headgate.database, orgId, PAGE_VIEWS);
    for (const filter of ['interaction_type=SHARE', 'item_type=SHOP', 'source=SERVICE']) {
      const pages = await pagesOfInteractions(api, `?limit=10&${filter}`);
      assert.deepEqual(pages.flat(), []);
      assert.ok(pages.length > 1, `${filter}: ${pages.length} pages`);
    }
    const full = await api.interactions('?limit=1000&interaction_type=PAGE_VIEW&item_type=TAG');
    const newest = Array.from({ length: 1000 }, (_, n) => filledId(PAGE_VIEWS - n));
    assert.deepEqual(
      full.body.interactions.map(({ interaction_id: id }) => id),
      newest,
    );
    assert.equal(typeof full.body.next_cursor, 'string');
    const one = await api.interactions(`?item_id=${filledId(7)}&item_type=TAG`);
    assert.equal(one.body.interactions.length, 1);
    assert.equal(one.body.next_cursor, null);
    assert.deepEqual((await api.interactions(`?item_id=${randomUUID()}`)).body.next_cursor, null);
  });
});
