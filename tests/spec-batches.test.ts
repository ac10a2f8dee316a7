// Batch upload: the shape of the response, batches and their statuses, records that exist already, dry runs, lenient
// handling, limits, and requests that are refused as a whole.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { type Api, apiOf, type Counts, problemsOf, totals, type UploadBody } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import type { TestRecord } from './harness/records.ts';
import { assertRefusal } from './harness/refusal.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { type Parents, specRecord, specTypes, uploadParents } from './harness/spec.ts';

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MOST_RECORDS = 5000;

const shop = (given: TestRecord = {}): TestRecord => specRecord('shops', {}, given);
const shops = (count: number): TestRecord[] => Array.from({ length: count }, () => shop());
const badShop = (): TestRecord => shop({ region: 'nowhere' });

const counts = (some: Partial<Counts>): Counts => ({
  received: 0,
  created: 0,
  updated: 0,
  unchanged: 0,
  rejected: 0,
  ...some,
});

const statusesOf = (body: UploadBody): number[] => body.batches.map(({ status }) => status);
const countsOf = (body: UploadBody): Counts[] => body.batches.map(({ data }) => data.counts);

function assertCountsAddUp(body: UploadBody): void {
  for (const { received, created, updated, unchanged, rejected } of countsOf(body)) {
    assert.equal(created + updated + unchanged + rejected, received);
  }
}

/** A second batch size and limit, small enough to test every case with a few records. */
const SMALL_BATCH = 3;
const FEW_RECORDS = 7;

forEachStore((store) => {
  const running = runningHeadgate(store);
  const small = runningHeadgate(store, {
    HEADGATE_BATCH_SIZE: String(SMALL_BATCH),
    HEADGATE_MAX_RECORDS: String(FEW_RECORDS),
  });
  let api: Api;
  let smallApi: Api;
  let parents: Parents;

  before(async () => {
    [api, smallApi] = await Promise.all([running.newApi(), small.newApi()]);
    parents = await uploadParents(api);
  });

  const read = async (from: Api, record: TestRecord): Promise<TestRecord> => {
    const { status, body } = await from.read('shops', record.shop_id as string);
    assert.equal(status, 200);
    return body;
  };

  describe('the response to an upload', () => {
    it('has the shape of the contract when all records are accepted', async () => {
      for (const type of specTypes) {
        const { status, body, headers } = await api.upload(type, [specRecord(type, parents)]);
        assert.equal(status, 200);
        assert.match(headers.get('content-type')!, /^application\/json\b/);
        assert.match(body.request_id, uuidForm);
        assert.ok(body.seq! > 0);
        assert.equal(headers.get('x-request-id'), body.request_id);
        const { message, batch_id } = body.batches[0]!.data;
        assert.match(batch_id, uuidForm);
        assert.ok(message.length > 0);
        assert.deepEqual(body, {
          request_id: body.request_id,
          seq: body.seq,
          type,
          batches: [
            {
              batch: 1,
              status: 200,
              data: {
                status: 'success',
                type,
                message,
                request_id: body.request_id,
                batch_id,
                error: null,
                counts: counts({ received: 1, created: 1 }),
                errors: [],
                warnings: [],
              },
            },
          ],
        });
      }
    });

    it('has the same shape when some records are refused, and names each with its reason', async () => {
      const records = [shop(), badShop(), shop()];
      const { status, body } = await api.upload('shops', records);
      assert.equal(status, 207);
      const { message, batch_id, error, errors } = body.batches[0]!.data;
      assert.equal(typeof error, 'string');
      assert.match(error!, /region/);
      assert.match(errors[0]!.message, /^region /);
      assert.deepEqual(body, {
        request_id: body.request_id,
        seq: body.seq,
        type: 'shops',
        batches: [
          {
            batch: 1,
            status: 207,
            data: {
              status: 'partial',
              type: 'shops',
              message,
              request_id: body.request_id,
              batch_id,
              error,
              counts: counts({ received: 3, created: 2, rejected: 1 }),
              errors: [
                {
                  index: 1,
                  id: records[1]!.shop_id,
                  field: 'region',
                  code: 'invalid_format',
                  message: errors[0]!.message,
                  retryable: false,
                },
              ],
              warnings: [],
            },
          },
        ],
      });
      assert.equal((await api.read('shops', records[1]!.shop_id as string)).status, 404);
      assert.equal((await api.read('shops', records[2]!.shop_id as string)).status, 200);
    });

    it('has the same shape when all records are refused', async () => {
      const { status, body } = await api.upload('shops', [badShop(), badShop()]);
      assert.equal(status, 400);
      assert.deepEqual(Object.keys(body).sort(), ['batches', 'request_id', 'seq', 'type']);
      const [batch] = body.batches;
      assert.equal(batch!.status, 400);
      assert.equal(batch!.data.status, 'error');
      assert.ok(batch!.data.error!.length > 0);
      assert.deepEqual(batch!.data.counts, counts({ received: 2, rejected: 2 }));
      assert.equal(batch!.data.errors.length, 2);
    });

    it('reports a missing referenced record as an error of status 400', async () => {
      const { status, body } = await api.upload('branches', [
        specRecord('branches', parents, { shop_id: randomUUID() }),
      ]);
      assert.equal(status, 400);
      assert.equal(body.batches[0]!.status, 400);
      assert.equal(body.batches[0]!.data.status, 'error');
      assert.match(body.batches[0]!.data.error!, /shop_id/);
    });

    it('has a request id of its own for every request, and a batch id of its own for every batch', async () => {
      const bodies = await Promise.all(
        Array.from({ length: 10 }, async () => (await smallApi.upload('shops', shops(FEW_RECORDS))).body),
      );
      assert.equal(new Set(bodies.map((body) => body.request_id)).size, 10);
      const batches = bodies.flatMap((body) => body.batches.map(({ data }) => ({ body, data })));
      assert.equal(batches.length, 30);
      assert.equal(new Set(batches.map(({ data }) => data.batch_id)).size, 30);
      for (const { body, data } of batches) assert.equal(data.request_id, body.request_id);
    });
  });

  describe('batches', () => {
    for (const [records, sizes] of [
      [999, [999]],
      [1000, [1000]],
      [1001, [1000, 1]],
      [2500, [1000, 1000, 500]],
    ] as const) {
      it(`of ${records} records have the sizes ${sizes.join(', ')}`, async () => {
        const { status, body } = await api.upload('shops', shops(records));
        assert.equal(status, 200);
        assert.deepEqual(
          body.batches.map(({ batch }) => batch),
          sizes.map((_, at) => at + 1),
        );
        assert.deepEqual(
          countsOf(body),
          sizes.map((received) => counts({ received, created: received })),
        );
      });
    }

    it('have the size HEADGATE_BATCH_SIZE if it is set', async () => {
      const { body } = await smallApi.upload('shops', shops(FEW_RECORDS));
      assert.deepEqual(
        countsOf(body).map(({ received }) => received),
        [3, 3, 1],
      );
    });

    it('report problems by the index in the whole request, in the order of the records', async () => {
      const records = shops(2500);
      const spoiled = [0, 999, 1000, 1999, 2000, 2499];
      for (const index of spoiled) records[index] = badShop();
      const { status, body } = await api.upload('shops', records);
      assert.equal(status, 207);
      assert.deepEqual(
        body.batches.map(({ data }) => data.errors.map(({ index }) => index)),
        [
          [0, 999],
          [1000, 1999],
          [2000, 2499],
        ],
      );
      for (const { index, id } of problemsOf(body)) assert.equal(id, records[index]!.shop_id);
    });

    const cases: readonly { shape: string; statuses: readonly number[]; http: number }[] = [
      { shape: 'ggg', statuses: [200], http: 200 },
      { shape: 'gbg', statuses: [207], http: 207 },
      { shape: 'bbb', statuses: [400], http: 400 },
      { shape: 'ggggggg', statuses: [200, 200, 200], http: 200 },
      { shape: 'bbbbbbb', statuses: [400, 400, 400], http: 400 },
      { shape: 'gbbbgb', statuses: [207, 207], http: 207 },
      { shape: 'gggbbb', statuses: [200, 400], http: 207 },
      { shape: 'bbbggg', statuses: [400, 200], http: 207 },
      { shape: 'gggbgbg', statuses: [200, 207, 200], http: 207 },
      { shape: 'bbbgbgb', statuses: [400, 207, 400], http: 207 },
    ];
    const words: Record<number, string> = { 200: 'success', 207: 'partial', 400: 'error' };
    for (const { shape, statuses, http } of cases) {
      it(`of ${shape} (good and bad records) have the statuses ${statuses.join(', ')} and make a ${http}`, async () => {
        const records = [...shape].map((letter) => (letter === 'g' ? shop() : badShop()));
        const { status, body } = await smallApi.upload('shops', records);
        assert.equal(status, http);
        assert.deepEqual(statusesOf(body), statuses);
        for (const { status: batchStatus, data } of body.batches) {
          assert.equal(data.status, words[batchStatus]);
          assert.equal(data.error === null, batchStatus === 200);
          assert.equal(data.errors.length, data.counts.rejected);
        }
        assertCountsAddUp(body);
        for (const [at, record] of records.entries()) {
          const { status: found } = await smallApi.read('shops', record.shop_id as string);
          assert.equal(found, shape[at] === 'g' ? 200 : 404);
        }
      });
    }
  });

  describe('problems', () => {
    it('are all reported, not just the first of a record', async () => {
      const record = { ...shop(), name: 7, region: 'GBR', is_public: 'yes', created: 'today', colour: 'red' };
      const { body } = await api.upload('shops', [record]);
      assert.deepEqual(
        problemsOf(body)
          .map(({ field, code }) => `${field} ${code}`)
          .sort(),
        [
          'colour unknown_field',
          'created invalid_format',
          'is_public wrong_type',
          'name wrong_type',
          'region invalid_format',
        ],
      );
      assert.equal(totals(body).rejected, 1);
    });

    it('of values and of references are reported together', async () => {
      const stray = specRecord('branches', parents, { shop_id: randomUUID(), latitude: 91 });
      const { body } = await api.upload('branches', [stray]);
      assert.deepEqual(
        problemsOf(body)
          .map(({ field, code }) => `${field} ${code}`)
          .sort(),
        ['latitude out_of_range', 'shop_id unknown_reference'],
      );
    });

    it('are at most twenty a record', async () => {
      const strangers = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`stranger_${at}`, at]));
      const { body } = await api.upload('shops', [shop(strangers), shop(), shop(strangers)]);
      const problems = problemsOf(body);
      assert.equal(problems.filter(({ index }) => index === 0).length, 20);
      assert.equal(problems.filter(({ index }) => index === 2).length, 20);
      assert.equal(problems.length, 40);
      assert.equal(totals(body).rejected, 2);
    });

    it('have the id of the record, or null if it cannot be read', async () => {
      const id = randomUUID();
      const { body } = await api.upload('shops', [
        shop({ shop_id: id.toUpperCase(), name: '' }),
        shop({ shop_id: 'seven' }),
        shop({ shop_id: 7 }),
        { name: 'no id', region: 'GB' },
        null,
      ]);
      assert.deepEqual(
        problemsOf(body).map(({ index, id: named, field }) => ({ index, named, field })),
        [
          { index: 0, named: id, field: 'name' },
          { index: 1, named: null, field: 'shop_id' },
          { index: 2, named: null, field: 'shop_id' },
          { index: 3, named: null, field: 'shop_id' },
          { index: 4, named: null, field: null },
        ],
      );
    });

    it('include values that are not objects, and do not affect other records', async () => {
      const strange = [null, 7, 'shop', true, [], [shop()]];
      const { status, body } = await api.upload('shops', [...strange, shop()]);
      assert.equal(status, 207);
      assert.deepEqual(
        problemsOf(body).map(({ index, id, field, code }) => ({ index, id, field, code })),
        strange.map((_, index) => ({ index, id: null, field: null, code: 'not_an_object' })),
      );
      assert.equal(totals(body).created, 1);
    });

    it('quote no more than 100 characters of what was sent', async () => {
      const { body } = await api.upload('shops', [
        shop({ region: 'x'.repeat(300) }),
        shop({ shop_id: 'y'.repeat(300) }),
        shop({ created: '😀'.repeat(300) }),
        shop({ ['z'.repeat(300)]: 1 }),
      ]);
      const [region, id, created, stranger] = problemsOf(body);
      assert.ok(region!.message.includes('x'.repeat(100)) && !region!.message.includes('x'.repeat(101)));
      assert.ok(id!.message.includes('y'.repeat(100)) && !id!.message.includes('y'.repeat(101)));
      assert.ok(created!.message.includes('😀'.repeat(50)) && !created!.message.includes('😀'.repeat(101)));
      assert.equal(stranger!.field, 'z'.repeat(100));
      assert.ok(!stranger!.message.includes('z'.repeat(101)));
      const summary = body.batches[0]!.data.error!;
      assert.ok(!summary.includes('x'.repeat(101)));
    });

    it('with an unknown field suggest a similar name if there is one', async () => {
      const { body } = await api.upload('shops', [shop({ regoin: 'GB' }), shop({ colour: 'red' })]);
      const [near, far] = problemsOf(body);
      assert.match(near!.message, /did you mean region\?/);
      assert.doesNotMatch(far!.message, /did you mean/);
      assert.match(body.batches[0]!.data.error!, /did you mean region\?$/);
    });
  });

  describe('a record id that exists already', () => {
    const upsert = async (stored: TestRecord, sent: TestRecord): Promise<Counts> => {
      assert.equal((await api.upload('shops', [stored])).status, 200);
      const { status, body } = await api.upload('shops', [sent]);
      assert.equal(status, 200);
      return totals(body);
    };
    const updatedAt = (record: TestRecord, updated: string | null, name: string): TestRecord => ({
      ...record,
      name,
      ...(updated === null ? {} : { updated }),
    });

    it('replaces the whole record, so that omitted fields become null again', async () => {
      const stored = shop({ is_public: true, created: '2024-01-01T00:00:00Z', is_deleted: true });
      const sent = { shop_id: stored.shop_id, name: 'renamed', region: 'FR' };
      assert.deepEqual(await upsert(stored, sent), counts({ received: 1, updated: 1 }));
      assert.deepEqual(await read(api, stored), {
        ...sent,
        is_public: null,
        created: null,
        updated: null,
        is_deleted: false,
      });
    });

    it('leaves an identical record unchanged, also if its values are written in another form', async () => {
      const stored = shop({ updated: '2024-05-01T09:30:00Z' });
      assert.deepEqual(await upsert(stored, stored), counts({ received: 1, unchanged: 1 }));
      const rewritten = {
        ...stored,
        shop_id: (stored.shop_id as string).toUpperCase(),
        region: 'gb',
        is_public: null,
        is_deleted: false,
        updated: '2024-05-01T11:30:00.000+02:00',
      };
      assert.deepEqual(await upsert(stored, rewritten), counts({ received: 1, unchanged: 1 }));
    });

    const cases: readonly { stored: string | null; sent: string | null; replaces: boolean; why: string }[] = [
      { stored: '2024-05-02T00:00:00Z', sent: '2024-05-01T00:00:00Z', replaces: false, why: 'is older' },
      { stored: '2024-05-01T00:00:00Z', sent: '2024-05-02T00:00:00Z', replaces: true, why: 'is newer' },
      { stored: '2024-05-01T00:00:00Z', sent: '2024-05-01T00:00:00Z', replaces: true, why: 'is as old' },
      { stored: '2024-05-01T00:00:00Z', sent: null, replaces: true, why: 'does not say how old it is' },
      { stored: null, sent: '2024-05-01T00:00:00Z', replaces: true, why: 'finds one without an age' },
      { stored: null, sent: null, replaces: true, why: 'has no age, as the stored one' },
      {
        stored: '2024-05-01T12:00:00.000002Z',
        sent: '2024-05-01T12:00:00.000001Z',
        replaces: false,
        why: 'is older by a microsecond',
      },
      {
        stored: '2024-05-01T12:00:00Z',
        sent: '2024-05-01T13:00:00+02:00',
        replaces: false,
        why: 'is older once both are in UTC',
      },
      {
        stored: '2024-05-01T13:00:00+02:00',
        sent: '2024-05-01T12:00:00Z',
        replaces: true,
        why: 'is newer once both are in UTC',
      },
    ];
    for (const { stored, sent, replaces, why } of cases) {
      it(`is ${replaces ? 'replaced' : 'kept'} if the incoming record ${why}`, async () => {
        const record = shop();
        const outcome = await upsert(
          updatedAt(record, stored, 'the stored one'),
          updatedAt(record, sent, 'the incoming one'),
        );
        assert.deepEqual(outcome, counts({ received: 1, [replaces ? 'updated' : 'unchanged']: 1 }));
        const { name } = await read(api, record);
        assert.equal(name, replaces ? 'the incoming one' : 'the stored one');
      });
    }

    it('counts created, updated and unchanged records of one upload separately', async () => {
      const [same, changed, older] = [shop(), shop(), shop({ updated: '2024-05-02T00:00:00Z' })];
      await api.upload('shops', [same, changed, older]);
      const { body } = await api.upload('shops', [
        same!,
        { ...changed, name: 'changed' },
        { ...older, name: 'older', updated: '2024-05-01T00:00:00Z' },
        shop(),
        badShop(),
      ]);
      assert.deepEqual(totals(body), { received: 5, created: 1, updated: 1, unchanged: 2, rejected: 1 });
    });

    it('can be marked as deleted, and brought back', async () => {
      const record = shop();
      assert.deepEqual(
        await upsert(record, { ...record, is_deleted: true }),
        counts({ received: 1, updated: 1 }),
      );
      assert.equal((await read(api, record)).is_deleted, true);
      assert.deepEqual(
        totals((await api.upload('shops', [record])).body),
        counts({ received: 1, updated: 1 }),
      );
      assert.equal((await read(api, record)).is_deleted, false);
    });

    it('is not changed by a bad record with its id', async () => {
      const record = shop();
      await api.upload('shops', [record]);
      const { body } = await api.upload('shops', [{ ...record, name: 'spoiled', region: 'GBR' }]);
      assert.deepEqual(totals(body), counts({ received: 1, rejected: 1 }));
      assert.equal((await read(api, record)).name, record.name);
    });
  });

  describe('one id more than once in a request', () => {
    const versions = (...updates: (string | null)[]): TestRecord[] => {
      const record = shop();
      return updates.map((updated, at) => ({ ...record, name: `version ${at}`, updated }));
    };
    const early = '2024-05-01T00:00:00Z';
    const late = '2024-05-02T00:00:00Z';

    const cases: readonly { updates: (string | null)[]; winner: number; what: string }[] = [
      { updates: [null, null], winner: 1, what: 'the later one if none has a date' },
      { updates: [early, late], winner: 1, what: 'the newer one at the later position' },
      { updates: [late, early], winner: 0, what: 'the newer one at the earlier position' },
      { updates: [early, early], winner: 1, what: 'the later one of two with the same date' },
      { updates: [late, null], winner: 1, what: 'the later one without a date' },
      { updates: [null, early], winner: 1, what: 'the later one if the earlier has no date' },
      { updates: [early, late, early], winner: 1, what: 'the newest of three' },
    ];
    for (const { updates, winner, what } of cases) {
      it(`keeps ${what}, in one batch`, async () => {
        const records = versions(...updates);
        const { status, body } = await api.upload('shops', records);
        assert.equal(status, 200);
        assert.deepEqual(
          totals(body),
          counts({ received: updates.length, created: 1, unchanged: updates.length - 1 }),
        );
        assert.equal((await read(api, records[0]!)).name, `version ${winner}`);
      });

      it(`keeps ${what}, in separate batches`, async () => {
        const records = versions(...updates);
        const spread = records.flatMap((record, at) => (at === 0 ? [record] : [shop(), shop(), record]));
        const { status, body } = await smallApi.upload('shops', spread);
        assert.equal(status, 200);
        assert.deepEqual(
          countsOf(body),
          body.batches.map(({ data }, at) => {
            const { received } = data.counts;
            return counts({
              received,
              created: at === winner ? received : received - 1,
              unchanged: at === winner ? 0 : 1,
            });
          }),
        );
        assert.equal((await read(smallApi, records[0]!)).name, `version ${winner}`);
      });
    }

    it('counts the one that is kept as updated if the record existed', async () => {
      const records = versions(null, null, null);
      await api.upload('shops', [records[0]!]);
      const { body } = await api.upload('shops', records);
      assert.deepEqual(totals(body), counts({ received: 3, updated: 1, unchanged: 2 }));
    });

    it('never lets a bad record win over a good one', async () => {
      const [good, spoiled] = versions(null, null) as [TestRecord, TestRecord];
      const { status, body } = await api.upload('shops', [good, { ...spoiled, region: 'GBR' }]);
      assert.equal(status, 207);
      assert.deepEqual(totals(body), counts({ received: 2, created: 1, rejected: 1 }));
      assert.equal((await read(api, good)).name, 'version 0');
    });

    it('is recognised also if the id is written in another case', async () => {
      const [first, second] = versions(null, null) as [TestRecord, TestRecord];
      const shouted = { ...second, shop_id: (second.shop_id as string).toUpperCase() };
      const { body } = await api.upload('shops', [first, shouted]);
      assert.deepEqual(totals(body), counts({ received: 2, created: 1, unchanged: 1 }));
      assert.equal((await read(api, first)).name, 'version 1');
    });
  });

  it('leaves everything unchanged when the same upload is repeated', async () => {
    for (const type of specTypes) {
      const records = Array.from({ length: 20 }, () => specRecord(type, parents));
      assert.equal(totals((await api.upload(type, records)).body).created, 20);
      assert.deepEqual(
        totals((await api.upload(type, records)).body),
        counts({ received: 20, unchanged: 20 }),
      );
    }
  });

  describe('a dry run', () => {
    const dryRun = (from: Api, type: string, records: readonly unknown[]) =>
      from.upload(type, records, { query: '?dry_run=true' });

    /** Returns what must be equal in a dry run and the upload that follows: everything but ids and messages. */
    const outcomeOf = (body: UploadBody) => ({
      type: body.type,
      batches: body.batches.map(({ batch, status, data }) => ({
        batch,
        status,
        word: data.status,
        error: data.error,
        counts: data.counts,
        errors: data.errors,
        warnings: data.warnings,
      })),
    });

    it('gets the response that the upload then gets, and stores nothing', async () => {
      const [stored, kept] = [shop(), shop({ updated: '2024-05-02T00:00:00Z' })] as [TestRecord, TestRecord];
      await smallApi.upload('shops', [stored, kept]);
      const twin = shop();
      const records = [
        { ...stored, name: 'renamed' },
        { ...kept, name: 'older', updated: '2024-05-01T00:00:00Z' },
        twin,
        badShop(),
        { ...twin, name: 'the later twin' },
        shop(),
        stored.shop_id,
      ];
      const dry = await dryRun(smallApi, 'shops', records);
      assert.equal(dry.status, 207);
      assert.equal(dry.body.dry_run, true);
      assert.deepEqual(countsOf(dry.body), [
        counts({ received: 3, updated: 1, unchanged: 2 }),
        counts({ received: 3, created: 2, rejected: 1 }),
        counts({ received: 1, rejected: 1 }),
      ]);
      assert.equal((await read(smallApi, stored)).name, stored.name);
      assert.equal((await read(smallApi, kept)).name, kept.name);
      assert.equal((await smallApi.read('shops', twin.shop_id as string)).status, 404);

      const real = await smallApi.upload('shops', records);
      assert.equal(real.status, dry.status);
      assert.equal(real.body.dry_run, undefined);
      assert.deepEqual(outcomeOf(real.body), outcomeOf(dry.body));
      assert.equal((await read(smallApi, stored)).name, 'renamed');
    });

    it('does so for every type, and can be repeated', async () => {
      for (const type of specTypes) {
        const records = [specRecord(type, parents), specRecord(type, parents)];
        const listed = (await api.list(type, '?limit=1000&include_deleted=true')).body.records.length;
        for (let time = 0; time < 2; time++) {
          const { status, body } = await dryRun(api, type, records);
          assert.equal(status, 200);
          assert.deepEqual(totals(body), counts({ received: 2, created: 2 }));
        }
        const now = (await api.list(type, '?limit=1000&include_deleted=true')).body.records.length;
        assert.equal(now, listed);
        assert.equal(totals((await api.upload(type, records)).body).created, 2);
      }
    });

    it('checks references, and creates no record that they could name', async () => {
      const parent = shop();
      const branch = specRecord('branches', { shops: parent.shop_id as string });
      assert.equal((await dryRun(api, 'shops', [parent])).status, 200);
      for (const reply of [await dryRun(api, 'branches', [branch]), await api.upload('branches', [branch])]) {
        assert.equal(reply.status, 400);
        assert.deepEqual(
          problemsOf(reply.body).map(({ field, code }) => ({ field, code })),
          [{ field: 'shop_id', code: 'unknown_reference' }],
        );
      }
    });

    it('is requested with true or false and nothing else', async () => {
      const record = shop();
      const real = await api.upload('shops', [record], { query: '?dry_run=false' });
      assert.equal(real.body.dry_run, undefined);
      assert.equal((await api.read('shops', record.shop_id as string)).status, 200);
      for (const value of ['', 'yes', '1', 'TRUE', 'true&dry_run=true']) {
        const untouched = shop();
        const reply = await api.request(`/v1/data/shops?dry_run=${value}`, {
          body: { records: [untouched] },
        });
        assertRefusal(reply, 400, /dry_run/);
        assert.equal((await api.read('shops', untouched.shop_id as string)).status, 404);
      }
    });
  });

  describe('lenient handling', () => {
    const lenient = { headers: { Prefer: 'handling=lenient' } };

    it('drops unknown fields, counts them as warnings and says that it was applied', async () => {
      const records = [shop({ colour: 'red' }), shop({ colour: 'blue', size: 3 }), shop()];
      const { status, body, headers } = await api.upload('shops', records, lenient);
      assert.equal(status, 200);
      assert.equal(headers.get('preference-applied'), 'handling=lenient');
      assert.deepEqual(totals(body), counts({ received: 3, created: 3 }));
      assert.deepEqual(
        body.batches[0]!.data.warnings.map(({ code, field, count }) => ({ code, field, count })),
        [
          { code: 'unknown_field', field: 'colour', count: 2 },
          { code: 'unknown_field', field: 'size', count: 1 },
        ],
      );
      assert.ok(!('colour' in (await read(api, records[0]!))));
    });

    it('counts the warnings of each batch separately', async () => {
      const records = Array.from({ length: 4 }, () => shop({ colour: 'red' }));
      const { body } = await smallApi.upload('shops', records, lenient);
      assert.deepEqual(
        body.batches.map(({ data }) => data.warnings.map(({ count }) => count)),
        [[3], [1]],
      );
    });

    it('still refuses everything else', async () => {
      const { status, body } = await api.upload('shops', [shop({ colour: 'red', region: 'GBR' })], lenient);
      assert.equal(status, 400);
      assert.deepEqual(
        problemsOf(body).map(({ field, code }) => ({ field, code })),
        [{ field: 'region', code: 'invalid_format' }],
      );
    });

    it('ignores unknown fields beside "records", which are refused otherwise', async () => {
      const body = { records: [shop()], source: 'nightly' };
      assert.equal((await api.request('/v1/data/shops', { body, ...lenient })).status, 200);
      assertRefusal(await api.request('/v1/data/shops', { body }), 400, /source/);
    });

    it('is not applied unless it is requested', async () => {
      for (const headers of [{}, { Prefer: 'handling=strict' }, { Prefer: 'respond-async' }]) {
        const reply = await api.upload('shops', [shop({ colour: 'red' })], { headers });
        assert.equal(reply.status, 400);
        assert.equal(reply.headers.get('preference-applied'), null);
      }
    });

    it('is recognised among other preferences', async () => {
      const headers = { Prefer: 'respond-async, handling="lenient"; strength=5, wait=10' };
      const { status } = await api.upload('shops', [shop({ colour: 'red' })], { headers });
      assert.equal(status, 200);
    });
  });

  describe('the number of records', () => {
    for (const type of ['shops', 'courses']) {
      it(`may be ${MOST_RECORDS} for ${type}`, async () => {
        const records = Array.from({ length: MOST_RECORDS }, () => specRecord(type, {}));
        const { status, body } = await api.upload(type, records);
        assert.equal(status, 200);
        assert.equal(body.batches.length, 5);
        assert.deepEqual(totals(body), counts({ received: MOST_RECORDS, created: MOST_RECORDS }));
      });
    }

    for (const type of specTypes) {
      it(`may not be ${MOST_RECORDS + 1} for ${type}, of which none is stored`, async () => {
        const known = specRecord(type, parents);
        const records = [known, ...Array.from({ length: MOST_RECORDS }, () => ({}))];
        const reply = await api.request(`/v1/data/${type}`, { body: { records } });
        assertRefusal(reply, 400, new RegExp(`${MOST_RECORDS + 1} records.*${MOST_RECORDS}`));
        const id = Object.values(known)[0] as string;
        assert.equal((await api.read(type, id)).status, 404);
      });
    }

    it('is limited by HEADGATE_MAX_RECORDS if it is set', async () => {
      assert.equal((await smallApi.upload('shops', shops(FEW_RECORDS))).status, 200);
      const reply = await smallApi.request('/v1/data/shops', { body: { records: shops(FEW_RECORDS + 1) } });
      assertRefusal(reply, 400, new RegExp(`${FEW_RECORDS + 1} records.*${FEW_RECORDS}`));
    });
  });

  describe('a request refused as a whole', () => {
    const bodies: readonly { what: string; body: string; says: RegExp }[] = [
      { what: 'nothing at all', body: '', says: /JSON/ },
      { what: 'text that is no JSON', body: 'records=[]', says: /JSON/ },
      { what: 'JSON that stops half-way', body: '{"records":[{"shop_id":', says: /JSON/ },
      { what: 'null', body: 'null', says: /object/ },
      { what: 'a number', body: '7', says: /object/ },
      { what: 'a bare array of records', body: '[{}]', says: /object/ },
      { what: 'an object without records', body: '{}', says: /records/ },
      { what: 'records that are null', body: '{"records":null}', says: /records.*array/ },
      { what: 'records that are an object', body: '{"records":{}}', says: /records.*array/ },
      { what: 'records that are text', body: '{"records":"all"}', says: /records.*array/ },
      { what: 'no record', body: '{"records":[]}', says: /empty/ },
      { what: 'a field beside records', body: '{"records":[{}],"type":"shops"}', says: /type/ },
      { what: 'a key twice', body: '{"records":[{}],"records":[{}]}', says: /records.*twice/ },
    ];
    for (const { what, body, says } of bodies) {
      it(`is one with ${what}`, async () => {
        assertRefusal(await api.request('/v1/data/shops', { method: 'POST', body }), 400, says);
      });
    }

    it('is one to an unknown type: 404, naming the known ones', async () => {
      for (const type of [
        'shop',
        'Shops',
        'students',
        'shop_tags',
        'constructor',
        '__proto__',
        'a'.repeat(200),
      ]) {
        for (const options of [{ body: { records: [shop()] } }, {}]) {
          const reply = await api.request(`/v1/data/${type}`, options);
          assertRefusal(reply, 404, /record type/);
          assert.ok(reply.body.message.length < 500);
          for (const known of specTypes) {
            assert.match(
              reply.body.message,
              new RegExp(`[ ,]${known}[,.]`),
              `${type}: ${reply.body.message}`,
            );
          }
        }
      }
    });

    const methods: readonly { path: string; allowed: readonly string[] }[] = [
      { path: '/v1/data/shops', allowed: ['GET', 'HEAD', 'POST'] },
      { path: `/v1/data/shops/${randomUUID()}`, allowed: ['GET', 'HEAD'] },
      { path: '/user-interactions', allowed: ['GET', 'HEAD', 'POST'] },
      { path: `/user-interactions/${randomUUID()}`, allowed: ['GET', 'HEAD'] },
      { path: '/livez', allowed: ['GET', 'HEAD'] },
      { path: '/readyz', allowed: ['GET', 'HEAD'] },
    ];
    for (const { path, allowed } of methods) {
      it(`is one with a method that ${path.replace(/[0-9a-f-]{36}/, '{id}')} does not know: 405, with Allow`, async () => {
        const unknown = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter(
          (name) => !allowed.includes(name),
        );
        const bodies = [{}, { body: 'a text', headers: { 'Content-Type': 'no type' } }];
        for (const method of unknown) {
          for (const body of bodies) {
            const reply = await api.request(path, { method, ...body });
            assertRefusal(reply, 405, new RegExp(method));
            assert.deepEqual(reply.headers.get('allow')!.split(', ').sort(), allowed);
          }
        }
      });
    }

    it('is one to an unknown path: 404', async () => {
      for (const path of [
        '/v1',
        '/v1/',
        '/v1/data',
        '/v2/data/shops',
        '/v1/data/shops/a/b',
        '/',
        '/elsewhere',
      ]) {
        assertRefusal(await api.request(path), 404, /path/);
      }
    });

    it('is one to a malformed path: 400, with any valid key', async () => {
      const strangers = apiOf(running.headgate.url, null);
      for (const path of ['/v1/data/%zz', '/user-interactions/%E0%A4%A', `/v1/data/%zz${'x'.repeat(5000)}`]) {
        const reply = await api.request(path);
        assertRefusal(reply, 400, /percent-encoding/);
        assert.ok(reply.body.message.length < 300);
        assertRefusal(await strangers.request(path), 401, /key/);
      }
    });

    it('is one whose content type is not JSON: 415', async () => {
      const body = JSON.stringify({ records: [shop()] });
      for (const path of ['/v1/data/shops', '/user-interactions']) {
        for (const type of [
          'text/plain',
          'application/x-www-form-urlencoded',
          'application/jsonx',
          'application/json; charset=iso-8859-1',
          'text/json',
        ]) {
          const reply = await api.request(path, { body, headers: { 'Content-Type': type } });
          assertRefusal(reply, 415, /application\/json/);
        }
      }
    });

    it('is one without a content type: 415', async () => {
      const { key } = await running.headgate.newKey();
      const response = await fetch(`${running.headgate.url}/v1/data/shops`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}` },
        body: Buffer.from(JSON.stringify({ records: [shop()] })),
      });
      assert.equal(response.status, 415);
      assert.equal(((await response.json()) as { error: string }).error, 'Unsupported Media Type');
    });

    it('is not one whose content type names its charset', async () => {
      for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"']) {
        const { status } = await api.upload('shops', [shop()], { headers: { 'Content-Type': type } });
        assert.equal(status, 200);
      }
    });

    it('is one with an unknown query parameter', async () => {
      const record = shop();
      const id = randomUUID();
      const upload = { body: { records: [record] } };
      for (const [path, options] of [
        ['/v1/data/shops?dryrun=true', upload],
        ['/v1/data/shops?limit=5', upload],
        ['/v1/data/shops?dry_run=true&x=', upload],
        ['/v1/data/shops?dry_run=true', {}],
        ['/v1/data/shops?offset=3', {}],
        [`/v1/data/shops/${id}?include_deleted=true`, {}],
        ['/user-interactions?dry_run=true', { body: {} }],
        ['/user-interactions?studentid=x', {}],
        [`/user-interactions/${id}?limit=1`, {}],
      ] as const) {
        assertRefusal(await api.request(path, options), 400, /query parameter/);
      }
      assert.equal((await api.read('shops', record.shop_id as string)).status, 404);
    });
  });

  it('gives every refusal of a whole request a request id of its own', async () => {
    const strangers = apiOf(running.headgate.url, null);
    const replies = await Promise.all([
      api.request('/v1/data/nothing'),
      api.request('/v1/data/shops', { body: '{' }),
      strangers.request('/v1/data/shops'),
    ]);
    assert.equal(new Set(replies.map(({ body }) => body.request_id)).size, 3);
  });
});
