// Two organisations with the same ids: neither can see or change the data of the other, or learn that it exists.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { type Api, apiOf, type Counts, problemsOf, totals } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import {
  fullInteraction,
  type Items,
  itemKinds,
  leastInteraction,
  uploadItems,
} from './harness/interactions.ts';
import type { TestRecord } from './harness/records.ts';
import { assertRefusal } from './harness/refusal.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import {
  fullSpecRecord,
  type Parents,
  shownRecord,
  specFields,
  specKey,
  specRecord,
  specReferences,
  specTypes,
} from './harness/spec.ts';

const one = (what: keyof Counts): Counts => ({
  received: 1,
  created: 0,
  updated: 0,
  unchanged: 0,
  rejected: 0,
  [what]: 1,
});

forEachStore((store) => {
  const running = runningHeadgate(store);
  let first: Api;
  let second: Api;
  /** A second key of the first organisation. */
  let firstAgain: Api;

  before(async () => {
    const [own, other] = await Promise.all([running.headgate.newKey(), running.headgate.newKey()]);
    const again = await running.headgate.anotherKey(own.org_id, []);
    [first, second, firstAgain] = [own, other, again].map(({ key }) => apiOf(running.headgate.url, key)) as [
      Api,
      Api,
      Api,
    ];
  });

  /** The same ids in both organisations, so that each can name every record of the other. */
  const shared: Parents = Object.fromEntries(specTypes.map((type) => [type, randomUUID()]));
  const inOrder = [
    ...new Set([...specReferences.map(({ target }) => target), ...specTypes]),
  ] as readonly string[];

  /** A record with the shared id, whose texts and dates differ from one organisation to the other. */
  const recordOf = (type: string, mark: string): TestRecord => ({
    ...fullSpecRecord(type, shared),
    [specKey(type)]: shared[type],
    is_deleted: false,
    ...Object.fromEntries(
      specFields(type)
        .filter(({ holds }) => holds === 'text')
        .map(({ name }) => [name, `${mark} ${name}`]),
    ),
    created: mark === 'first' ? '2024-01-01T00:00:00Z' : '2024-02-02T00:00:00Z',
  });
  const firstRecords = new Map(inOrder.map((type) => [type, recordOf(type, 'first')]));
  const secondRecords = new Map(inOrder.map((type) => [type, recordOf(type, 'second')]));

  describe('records', () => {
    it('of the first organisation do not exist for the second', async () => {
      for (const type of inOrder) {
        const record = firstRecords.get(type)!;
        assert.deepEqual(totals((await first.upload(type, [record])).body), one('created'), type);
        assertRefusal(await second.request(`/v1/data/${type}/${shared[type]}`), 404, /your organisation/);
        assert.deepEqual((await second.list(type, '?include_deleted=true')).body.records, []);
      }
    });

    it('satisfy no reference of the second organisation', async () => {
      for (const { type, field } of specReferences) {
        const record = { ...firstRecords.get(type)!, [specKey(type)]: randomUUID() };
        for (const query of ['', '?dry_run=true']) {
          const { status, body } = await second.upload(type, [record], { query });
          assert.equal(status, 400);
          assert.ok(
            problemsOf(body).some(
              (problem) => problem.field === field && problem.code === 'unknown_reference',
            ),
            `${type} ${field}`,
          );
        }
      }
    });

    it('with the same ids are new to the second organisation, and change nothing for the first', async () => {
      for (const type of inOrder) {
        const record = secondRecords.get(type)!;
        const dry = await second.upload(type, [record], { query: '?dry_run=true' });
        assert.deepEqual(totals(dry.body), one('created'), type);
        assert.deepEqual(totals((await second.upload(type, [record])).body), one('created'), type);
        assert.deepEqual((await first.read(type, shared[type]!)).body, firstRecords.get(type));
        assert.deepEqual((await second.read(type, shared[type]!)).body, record);
      }
    });

    it('are not changed by uploads of the other organisation', async () => {
      for (const type of inOrder) {
        assert.deepEqual(
          totals((await first.upload(type, [firstRecords.get(type)!])).body),
          one('unchanged'),
        );
        assert.deepEqual(
          totals((await second.upload(type, [secondRecords.get(type)!])).body),
          one('unchanged'),
        );
      }
    });

    it('are updated even if the other organisation has a newer version', async () => {
      const id = randomUUID();
      const newer = specRecord('shops', {}, { shop_id: id, updated: '2024-05-02T00:00:00Z' });
      const older = { ...newer, name: 'older', updated: '2024-05-01T00:00:00Z' };
      assert.deepEqual(totals((await first.upload('shops', [newer])).body), one('created'));
      assert.deepEqual(totals((await second.upload('shops', [older])).body), one('created'));
      const oldest = { ...older, updated: '2024-04-30T00:00:00Z' };
      assert.deepEqual(totals((await second.upload('shops', [oldest])).body), one('unchanged'));
      assert.deepEqual(
        totals((await second.upload('shops', [{ ...older, name: 'b' }])).body),
        one('updated'),
      );
      assert.deepEqual((await first.read('shops', id)).body, shownRecord('shops', newer));
    });

    it('marked as deleted by one are not deleted for the other', async () => {
      for (const type of inOrder) {
        const deleted = { ...secondRecords.get(type)!, is_deleted: true };
        assert.deepEqual(totals((await second.upload(type, [deleted])).body), one('updated'));
        const { body } = await first.list(type, '?limit=1000');
        assert.deepEqual(
          body.records.filter((record) => record[specKey(type)] === shared[type]),
          [firstRecords.get(type)],
        );
        assert.deepEqual(
          totals((await second.upload(type, [secondRecords.get(type)!])).body),
          one('updated'),
        );
      }
    });

    it('are listed for their own organisation only', async () => {
      for (const type of inOrder) {
        const [own, other] = await Promise.all(
          [first, second].map(async (api) => (await api.list(type, '?limit=1000&include_deleted=true')).body),
        );
        const find = (records: readonly TestRecord[] | undefined): TestRecord[] =>
          records!.filter((record) => record[specKey(type)] === shared[type]);
        assert.deepEqual(find(own?.records), [firstRecords.get(type)]);
        assert.deepEqual(find(other?.records), [secondRecords.get(type)]);
      }
    });

    it('are shared by the keys of one organisation', async () => {
      const { body } = await firstAgain.read('shops', shared.shops!);
      assert.deepEqual(body, firstRecords.get('shops'));
      const { body: again } = await firstAgain.upload('shops', [firstRecords.get('shops')!]);
      assert.deepEqual(totals(again), one('unchanged'));
    });
  });

  it("shows nothing of one organisation to the other through a list's cursor", async () => {
    const institutes = (count: number): TestRecord[] =>
      Array.from({ length: count }, () => specRecord('institutes', {}));
    const [mine, theirs] = [institutes(40), institutes(40)];
    await Promise.all([first.upload('institutes', mine), second.upload('institutes', theirs)]);
    const { body: page } = await first.list('institutes', '?limit=5');
    const seen = page.records.at(-1)!.institute_id as string;
    const reply = await second.list('institutes', `?limit=1000&cursor=${page.next_cursor}`);
    assert.equal(reply.status, 200);
    const wanted = [...theirs.map(({ institute_id }) => institute_id as string), shared.institutes!]
      .filter((id) => id > seen)
      .sort();
    assert.deepEqual(
      reply.body.records.map(({ institute_id }) => institute_id),
      wanted,
    );
  });

  describe('interactions', () => {
    let items: Items;
    let own: TestRecord[];
    let other: TestRecord[];

    before(async () => {
      items = await uploadItems(first);
      const otherItems = await uploadItems(second);
      const record = async (api: Api, sent: TestRecord): Promise<TestRecord> => {
        const { status, body, text } = await api.record(sent);
        assert.equal(status, 201, text);
        return body;
      };
      // The second organisation gets the first one's student and shop under the same ids.
      const student = specRecord('customers', {}, { customer_id: items.student });
      const shop = specRecord('shops', {}, { shop_id: items.item.SHOP });
      await second.upload('customers', [student]);
      await second.upload('shops', [shop]);
      own = [];
      other = [];
      for (let at = 0; at < 12; at++) {
        const event_timestamp = 1_714_555_800 + at;
        own.unshift(await record(first, fullInteraction(items, { event_timestamp, city: 'first' })));
        other.unshift(
          await record(
            second,
            fullInteraction(
              { ...otherItems, item: items.item, student: items.student },
              {
                event_timestamp,
                city: 'second',
              },
            ),
          ),
        );
      }
    });

    it('are about items and students of their own organisation only', async () => {
      for (const kind of Object.keys(itemKinds)) {
        if (kind === 'SHOP') continue;
        const sent = leastInteraction(items, { item_type: kind, item_id: items.item[kind] });
        assert.equal((await first.record(sent)).status, 201);
        const { status, body } = await second.record<{ details: { field: string; code: string }[] }>(sent);
        assert.equal(status, 400);
        assert.deepEqual(
          body.details.map(({ field, code }) => ({ field, code })),
          [{ field: 'item_id', code: 'unknown_reference' }],
        );
      }
    });

    it('are found by id in their own organisation only', async () => {
      for (const interaction of own) {
        const path = `/user-interactions/${interaction.interaction_id}`;
        assert.deepEqual((await first.request(path)).body, interaction);
        assertRefusal(await second.request(path), 404, /interaction/);
      }
    });

    it('are listed for their own organisation only, also by every filter', async () => {
      const { student, item } = items;
      for (const filter of [
        `student_id=${student}`,
        'user_id=user-7',
        `item_id=${item.SHOP}&user_id=user-7`,
        'item_type=SHOP&source=SERVICE',
        'interaction_type=PAGE_VIEW&source=SERVICE',
        'source=SERVICE',
        'from=2024-05-01T09:30:00Z&to=2024-05-01T10:00:00Z&user_id=user-7',
      ]) {
        assert.deepEqual((await first.interactions(`?${filter}`)).body.interactions, own, filter);
        assert.deepEqual((await second.interactions(`?${filter}`)).body.interactions, other, filter);
      }
      const { body: all } = await second.interactions('?limit=1000');
      assert.deepEqual(all.interactions, other);
    });

    it('are not shown through the cursor of the other organisation', async () => {
      const { body: page } = await first.interactions('?limit=5&source=SERVICE');
      assert.deepEqual(page.interactions, own.slice(0, 5));
      const { status, body } = await second.interactions(`?source=SERVICE&cursor=${page.next_cursor}`);
      assert.equal(status, 200);
      assert.deepEqual(
        body.interactions.filter(({ city }) => city !== 'second'),
        [],
      );
      // Interactions with the same time as the cursor come before or after it by their ids.
      assert.ok([7, 8].includes(body.interactions.length));
      assert.deepEqual(body.interactions, other.slice(-body.interactions.length));
    });
  });

  describe('idempotency keys', () => {
    it('of one organisation mean nothing to the other, for uploads', async () => {
      const headers = { 'Idempotency-Key': randomUUID() };
      const record = specRecord('shops', {});
      const firstReply = await first.upload('shops', [record], { headers });
      const secondReply = await second.upload('shops', [record], { headers });
      for (const reply of [firstReply, secondReply]) {
        assert.equal(reply.status, 200);
        assert.equal(reply.headers.get('idempotency-replayed'), null);
        assert.deepEqual(totals(reply.body), one('created'));
      }
      assert.notEqual(firstReply.body.request_id, secondReply.body.request_id);
      const another = await second.upload('tags', [specRecord('tags', {})], { headers });
      assert.equal(another.status, 200);

      const replayed = await firstAgain.upload('shops', [record], { headers });
      assert.equal(replayed.headers.get('idempotency-replayed'), 'true');
      assert.deepEqual(replayed.body, firstReply.body);
    });

    it('can be used with another body by the other organisation, but not by their own', async () => {
      const headers = { 'Idempotency-Key': randomUUID() };
      const [record, different] = [specRecord('shops', {}), specRecord('shops', {})];
      assert.equal((await first.upload('shops', [record], { headers })).status, 200);
      assert.deepEqual(totals((await second.upload('shops', [different], { headers })).body), one('created'));
      assert.equal((await first.upload('shops', [different], { headers })).status, 422);
      assert.equal((await first.read('shops', different.shop_id as string)).status, 404);
    });

    it('of one organisation mean nothing to the other, for interactions', async () => {
      const headers = { 'Idempotency-Key': randomUUID() };
      const shop = specRecord('shops', {});
      await Promise.all([first.upload('shops', [shop]), second.upload('shops', [shop])]);
      const sent = leastInteraction({ item: { SHOP: shop.shop_id as string }, student: '' });
      const [own, other] = [await first.record(sent, headers), await second.record(sent, headers)];
      for (const { status, headers: answered } of [own, other]) {
        assert.equal(status, 201);
        assert.equal(answered.get('idempotency-replayed'), null);
      }
      assert.notEqual(own.body.interaction_id, other.body.interaction_id);
      const { body } = await second.interactions(`?item_id=${shop.shop_id}`);
      assert.deepEqual(body.interactions, [other.body]);
    });
  });
});
