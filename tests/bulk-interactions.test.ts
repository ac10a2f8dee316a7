// Uploads of many interactions at once.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { type Api, apiOf, type Counts, type Reply, type UploadBody } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { fullInteraction, type Items, leastInteraction, uploadItems } from './harness/interactions.ts';
import { readAllInteractions } from './harness/read-all.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

forEachStore((store) => {
  const running = runningHeadgate(store);
  let api: Api;
  let items: Items;

  const newOrganisation = async (): Promise<void> => {
    api = await running.newApi();
    items = await uploadItems(api);
  };

  beforeEach(newOrganisation);

  const countsOf = ({ body }: Reply<UploadBody>): Counts => body.batches[0]!.data.counts;
  const upload = (records: readonly unknown[], options = {}): Promise<Reply<UploadBody>> =>
    api.upload('interactions', records, options);
  const none: Counts = { received: 0, created: 0, updated: 0, unchanged: 0, rejected: 0 };

  describe('an upload of interactions', () => {
    it('stores all fields, with the given id and time or with new ones', async () => {
      const own = { interaction_id: randomUUID(), created: '2024-01-02T03:04:05Z' };
      const reply = await upload([fullInteraction(items, own), leastInteraction(items)]);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.body.type, 'interactions');
      assert.deepEqual(countsOf(reply), { ...none, received: 2, created: 2 });
      const stored = await readAllInteractions(api);
      const given = stored.find(({ interaction_id }) => interaction_id === own.interaction_id);
      assert.partialDeepStrictEqual(given, { ...fullInteraction(items), ...own });
      assert.equal(given!.occurred_at, '2024-05-01T09:30:00Z');
      const assigned = stored.find(({ interaction_id }) => interaction_id !== own.interaction_id);
      assert.match(String(assigned!.interaction_id), /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      assert.ok(Math.abs(Date.parse(String(assigned!.created)) - Date.now()) < 60_000);
    });

    it('never changes an interaction that is stored, and counts it as unchanged', async () => {
      const interaction_id = randomUUID();
      const first = leastInteraction(items, { interaction_id, city: 'first' });
      await upload([first]);
      const other = { ...first, city: 'second', created: '2030-01-01T00:00:00Z' };
      for (const query of ['?dry_run=true', '']) {
        const reply = await upload([other, leastInteraction(items)], { query });
        assert.deepEqual(countsOf(reply), { ...none, received: 2, created: 1, unchanged: 1 }, query);
      }
      const { body } = await api.request<{ city: string }>(`/user-interactions/${interaction_id}`);
      assert.equal(body.city, 'first');
    });

    it('stores the first of several with the same id', async () => {
      const interaction_id = randomUUID();
      const cities = ['first', 'second', 'third'];
      const reply = await upload(cities.map((city) => leastInteraction(items, { interaction_id, city })));
      assert.deepEqual(countsOf(reply), { ...none, received: 3, created: 1, unchanged: 2 });
      const { body } = await api.request<{ city: string }>(`/user-interactions/${interaction_id}`);
      assert.equal(body.city, 'first');
    });

    it('accepts thousands, and stores none of them twice', async () => {
      const records = Array.from({ length: 2500 }, (_, at) =>
        leastInteraction(items, { interaction_id: randomUUID(), event_timestamp: 1_700_000_000 + at }),
      );
      for (const isFirst of [true, false]) {
        const { status, body } = await upload(records);
        assert.equal(status, 200);
        assert.deepEqual(
          body.batches.map(({ data }) => data.counts[isFirst ? 'created' : 'unchanged']),
          [1000, 1000, 500],
        );
      }
      assert.equal((await readAllInteractions(api)).length, records.length);
    });

    it('reports the problems of each, and stores the others', async () => {
      const missing = randomUUID();
      const reply = await upload([
        leastInteraction(items),
        leastInteraction(items, { item_id: missing }),
        { ...leastInteraction(items), interaction_id: 'x', occurred_at: '2024-01-01T00:00:00Z' },
        5,
      ]);
      assert.equal(reply.status, 207);
      assert.deepEqual(countsOf(reply), { ...none, received: 4, created: 1, rejected: 3 });
      assert.deepEqual(
        reply.body.batches[0]!.data.errors.map(({ index, field, code }) => [index, field, code]),
        [
          [1, 'item_id', 'unknown_reference'],
          [2, 'interaction_id', 'invalid_format'],
          [2, 'occurred_at', 'unknown_field'],
          [3, null, 'not_an_object'],
        ],
      );
      assert.equal((await readAllInteractions(api)).length, 1);
    });

    it('is stored once if it is repeated with an idempotency key', async () => {
      const headers = { 'Idempotency-Key': randomUUID() };
      const [first, second] = [
        await upload([leastInteraction(items)], { headers }),
        await upload([leastInteraction(items)], { headers }),
      ];
      assert.equal(second.headers.get('Idempotency-Replayed'), 'true');
      assert.deepEqual(second.body, first.body);
      assert.equal((await readAllInteractions(api)).length, 1);
    });

    it('does not reach interactions of another organisation', async () => {
      const interaction_id = randomUUID();
      await upload([leastInteraction(items, { interaction_id, city: 'ours' })]);
      const [ours, oursItems] = [api, items];
      await newOrganisation();
      const reply = await upload([leastInteraction(items, { interaction_id, city: 'theirs' })]);
      assert.deepEqual(countsOf(reply), { ...none, received: 1, created: 1 });
      const { body } = await ours.request<{ city: string }>(`/user-interactions/${interaction_id}`);
      assert.equal(body.city, 'ours');
      const foreign = await upload([leastInteraction(oursItems)]);
      assert.equal(countsOf(foreign).rejected, 1);
    });

    it('needs the scope interactions:write, and no other', async () => {
      for (const [scope, status] of [
        ['interactions:write', 400],
        ['data:write', 403],
      ] as const) {
        const { key } = await running.headgate.newKey(undefined, [scope]);
        const reply = await apiOf(running.headgate.url, key).upload('interactions', [{}]);
        assert.equal(reply.status, status, scope);
      }
    });
  });

  it('the path for uploads says where interactions are read', async () => {
    for (const name of ['interactions', 'user-interactions']) {
      const { status, body } = await api.request(`/v1/data/${name}`);
      assert.equal(status, 404);
      assert.equal(body.message, 'Interactions are read at GET /user-interactions.');
    }
  });
});
