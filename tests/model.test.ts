// A seeded random workload against the real server. Every response is compared with a small model of what the service
// promises to do with uploads.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, problemsOf, type UploadBody } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { chosenSeed, Random } from './harness/random.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

type Value = string | number | boolean | null;
type Sent = Record<string, unknown>;
type Shown = Record<string, Value>;
type ModelType = 'shops' | 'tags' | 'branches';

interface Mistake {
  readonly index: number;
  readonly field: string | null;
  readonly code: string;
}

interface Counts {
  received: number;
  created: number;
  updated: number;
  unchanged: number;
  rejected: number;
}

interface ExpectedUpload {
  readonly status: number;
  readonly batches: readonly {
    readonly status: number;
    readonly counts: Counts;
    readonly mistakes: readonly Mistake[];
  }[];
}

/** A record of the workload, with the problems that the service must report and the values that it must show. */
interface Drawn {
  readonly sent: unknown;
  readonly mistakes: readonly { readonly field: string | null; readonly code: string }[];
  readonly shown: Shown;
}

const BATCH_SIZE = 7;
const MOST_RECORDS = 25;
const WORK_MS = times(8000, 3000);
const FEWEST_STEPS = 120;
const CLIENTS = 4;

const keys: Record<ModelType, string> = { shops: 'shop_id', tags: 'tag_id', branches: 'branch_id' };
const types = Object.keys(keys) as ModelType[];

class Model {
  readonly records: Record<ModelType, Map<string, Shown>> = {
    shops: new Map(),
    tags: new Map(),
    branches: new Map(),
  };
  readonly interactions: Shown[] = [];

  upload(type: ModelType, drawn: readonly Drawn[], dryRun: boolean): ExpectedUpload {
    const key = keys[type];
    const mistakes = drawn.map((record) => [...record.mistakes, ...this.danglingIn(type, record)]);
    const winners = new Map<string, number>();
    for (const [index, { shown }] of drawn.entries()) {
      if (mistakes[index]!.length > 0) continue;
      const rival = winners.get(shown[key] as string);
      if (rival === undefined || !isOlder(shown, drawn[rival]!.shown))
        winners.set(shown[key] as string, index);
    }
    const batches = [];
    for (let first = 0; first < drawn.length; first += BATCH_SIZE) {
      const last = Math.min(first + BATCH_SIZE, drawn.length) - 1;
      const counts: Counts = {
        received: last - first + 1,
        created: 0,
        updated: 0,
        unchanged: 0,
        rejected: 0,
      };
      for (let index = first; index <= last; index++) {
        if (mistakes[index]!.length > 0) counts.rejected++;
        else if (winners.get(drawn[index]!.shown[key] as string) !== index) counts.unchanged++;
        else counts[this.put(type, drawn[index]!.shown, dryRun)]++;
      }
      const status = counts.rejected === 0 ? 200 : counts.rejected < counts.received ? 207 : 400;
      const named = mistakes
        .slice(first, last + 1)
        .flatMap((found, at) => found.map(({ field, code }) => ({ index: first + at, field, code })));
      batches.push({ status, counts, mistakes: named });
    }
    const shared = new Set(batches.map(({ status }) => status));
    return { status: shared.size === 1 ? batches[0]!.status : 207, batches };
  }

  danglingIn(type: ModelType, { shown, mistakes }: Drawn): { field: string; code: string }[] {
    if (type !== 'branches' || typeof shown.shop_id !== 'string') return [];
    if (mistakes.some(({ field }) => field === 'shop_id' || field === null)) return [];
    return this.records.shops.has(shown.shop_id) ? [] : [{ field: 'shop_id', code: 'unknown_reference' }];
  }

  put(type: ModelType, shown: Shown, dryRun: boolean): 'created' | 'updated' | 'unchanged' {
    const stored = this.records[type].get(shown[keys[type]] as string);
    if (stored !== undefined && isOlder(shown, stored)) return 'unchanged';
    if (stored !== undefined && Object.keys(shown).every((name) => shown[name] === stored[name]))
      return 'unchanged';
    if (!dryRun) this.records[type].set(shown[keys[type]] as string, shown);
    return stored === undefined ? 'created' : 'updated';
  }
}

/** In the order of time. */
const moments = [
  '2024-01-01T00:00:00Z',
  '2024-06-01T12:00:00Z',
  '2024-06-01T12:00:00.000001Z',
  '2025-01-01T00:00:00Z',
];

function isOlder(incoming: Shown, stored: Shown): boolean {
  if (incoming.updated === null || stored.updated === null) return false;
  return moments.indexOf(incoming.updated as string) < moments.indexOf(stored.updated as string);
}

/** The ids that one client uses, few enough to be used repeatedly. */
class Ids {
  readonly #random: Random;
  readonly #client: number;

  constructor(random: Random, client: number) {
    this.#random = random;
    this.#client = client;
  }

  draw(type: ModelType): string {
    const kind = types.indexOf(type);
    const number = this.#random.integer(0, 39).toString(16).padStart(12, '0');
    return `a${this.#client}b${kind}c0de-0000-4000-8000-${number}`;
  }
}

function drawRecord(random: Random, ids: Ids, type: ModelType): Drawn {
  const id = ids.draw(type);
  const sent: Sent = { [keys[type]]: random.isLuckier(0.2) ? id.toUpperCase() : id };
  const shown: Shown = { [keys[type]]: id };
  const give = (name: string, sentValue: unknown, shownValue: Value): void => {
    sent[name] = sentValue;
    shown[name] = shownValue;
  };
  const omit = (name: string, shownValue: Value = null): void => {
    if (random.isLuckier(0.5)) sent[name] = null;
    shown[name] = shownValue;
  };
  const name = random.oneOf(['Kiosk', 'Bakery', 'Ťňž 中 😀', "O'Hara; --"]);
  give('name', name, name);
  if (type === 'shops') {
    give('region', random.oneOf(['gb', 'GB']), 'GB');
    if (random.isLuckier(0.5)) give('is_public', true, true);
    else omit('is_public');
  }
  if (type === 'branches') {
    const shopId = ids.draw('shops');
    give('shop_id', shopId, shopId);
    give('region', 'fr', 'FR');
    const latitude = random.integer(-90, 90) / 2;
    give('latitude', latitude, latitude);
    omit('longitude');
  }
  omit('created');
  if (random.isLuckier(0.6)) {
    const updated = random.oneOf(moments);
    give('updated', updated, updated);
  } else omit('updated');
  if (random.isLuckier(0.15)) give('is_deleted', true, true);
  else if (random.isLuckier(0.5)) give('is_deleted', false, false);
  else omit('is_deleted', false);
  return random.isLuckier(0.15) ? spoil(random, type, sent, shown) : { sent, mistakes: [], shown };
}

function spoil(random: Random, type: ModelType, sent: Sent, shown: Shown): Drawn {
  const { name: _, ...nameless } = sent;
  const keyless = { ...sent, [keys[type]]: 'not a UUID' };
  const options: readonly (readonly [sent: unknown, ...mistakes: (readonly [string | null, string])[]])[] = [
    [null, [null, 'not_an_object']],
    [[sent], [null, 'not_an_object']],
    [nameless, ['name', 'required']],
    [{ ...sent, name: '' }, ['name', 'required']],
    [{ ...sent, name: 7 }, ['name', 'wrong_type']],
    [{ ...sent, name: 'x'.repeat(10_001) }, ['name', 'too_long']],
    [{ ...sent, name: 'a\0' }, ['name', 'invalid_format']],
    [keyless, [keys[type], 'invalid_format']],
    [{ ...sent, updated: '2024-02-30T00:00:00Z' }, ['updated', 'invalid_format']],
    [{ ...sent, is_deleted: 'true' }, ['is_deleted', 'wrong_type']],
    [{ ...sent, colour: 'red' }, ['colour', 'unknown_field']],
    [{ ...keyless, colour: null }, [keys[type], 'invalid_format'], ['colour', 'unknown_field']],
    ...(type === 'branches'
      ? ([
          [{ ...sent, latitude: 91 }, ['latitude', 'out_of_range']],
          [{ ...sent, shop_id: 'nowhere' }, ['shop_id', 'invalid_format']],
        ] as const)
      : []),
  ];
  const [flawed, ...mistakes] = random.oneOf(options);
  return { sent: flawed, mistakes: mistakes.map(([field, code]) => ({ field, code })), shown };
}

function byPlace(a: Mistake, b: Mistake): number {
  return a.index - b.index || String(a.field).localeCompare(String(b.field)) || a.code.localeCompare(b.code);
}

function seen(status: number, body: UploadBody): ExpectedUpload {
  return {
    status,
    batches: body.batches.map(({ status: batchStatus, data }) => ({
      status: batchStatus,
      counts: { ...data.counts },
      mistakes: data.errors.map(({ index, field, code }) => ({ index, field, code })).sort(byPlace),
    })),
  };
}

function sorted({ status, batches }: ExpectedUpload): ExpectedUpload {
  return {
    status,
    batches: batches.map((batch) => ({ ...batch, mistakes: [...batch.mistakes].sort(byPlace) })),
  };
}

/** One client and the part of the model that only it changes. */
class Client {
  readonly #api: Api;
  readonly #model: Model;
  readonly #random: Random;
  readonly #ids: Ids;
  readonly #name: string;
  #requests = 0;

  constructor(api: Api, model: Model, random: Random, number: number, name: string) {
    this.#api = api;
    this.#model = model;
    this.#random = random;
    this.#ids = new Ids(random, number);
    this.#name = name;
  }

  async step(): Promise<void> {
    if (this.#random.isLuckier(0.2)) await this.#interact();
    else await this.#upload();
  }

  async #upload(): Promise<void> {
    const random = this.#random;
    const type = random.oneOf(types);
    const drawn = Array.from({ length: random.integer(1, MOST_RECORDS) }, () =>
      drawRecord(random, this.#ids, type),
    );
    if (random.isLuckier(0.3)) drawn.push(random.oneOf(drawn));
    const records = drawn.map(({ sent }) => sent);
    if (random.isLuckier(0.2)) {
      const dry = await this.#api.upload(type, records, { query: '?dry_run=true' });
      assert.deepEqual(seen(dry.status, dry.body), sorted(this.#model.upload(type, drawn, true)));
    }
    const idempotencyKey = random.isLuckier(0.4) ? `${this.#name}-${++this.#requests}` : null;
    const headers: Record<string, string> =
      idempotencyKey === null ? {} : { 'Idempotency-Key': idempotencyKey };
    const first = await this.#api.upload(type, records, { headers });
    assert.deepEqual(seen(first.status, first.body), sorted(this.#model.upload(type, drawn, false)));
    assert.equal(first.headers.get('idempotency-replayed'), null);
    if (random.isLuckier(0.4)) {
      const again = await this.#api.upload(type, records, { headers });
      if (idempotencyKey === null) {
        assert.deepEqual(seen(again.status, again.body), sorted(this.#model.upload(type, drawn, false)));
        assert.ok(again.body.batches.every(({ data }) => data.counts.created + data.counts.updated === 0));
      } else {
        assert.deepEqual([again.status, again.body], [first.status, first.body]);
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
      }
    }
    if (idempotencyKey !== null && random.isLuckier(0.2)) {
      const other = await this.#api.upload(type, [...records, {}], { headers });
      assert.equal(other.status, 422);
    }
    assert.deepEqual(
      problemsOf(first.body).filter(({ retryable }) => retryable),
      [],
    );
  }

  async #interact(): Promise<void> {
    const random = this.#random;
    const itemType = random.oneOf(['SHOP', 'TAG']);
    const target = itemType === 'SHOP' ? 'shops' : 'tags';
    const itemId = this.#ids.draw(target);
    const city = random.oneOf(['Athens', null]);
    const event = random.oneOf([
      [1_700_000_000, '2023-11-14T22:13:20Z'],
      [1_700_000_000_123, '2023-11-14T22:13:20.123Z'],
      ['2024-05-01T09:30:00+02:00', '2024-05-01T07:30:00Z'],
    ] as const);
    const sent = {
      interaction_type: random.oneOf(['SHARE', 'PAGE_VIEW']),
      item_type: itemType,
      item_id: itemId.toUpperCase(),
      city,
      event_timestamp: event[0],
    };
    const idempotencyKey = random.isLuckier(0.5) ? `${this.#name}-${++this.#requests}` : null;
    const headers: Record<string, string> =
      idempotencyKey === null ? {} : { 'Idempotency-Key': idempotencyKey };
    const reply = await this.#api.record<Shown & { details?: { field: string; code: string }[] }>(
      sent,
      headers,
    );
    if (!this.#model.records[target].has(itemId)) {
      assert.equal(reply.status, 400);
      const [found, ...others] = reply.body.details!;
      assert.deepEqual([found?.field, found?.code, others.length], ['item_id', 'unknown_reference', 0]);
    } else {
      assert.equal(reply.status, 201);
      const { interaction_id, created, ...rest } = reply.body;
      assert.deepEqual(rest, {
        interaction_type: sent.interaction_type,
        user_id: null,
        student_id: null,
        item_type: itemType,
        item_id: itemId,
        city,
        country: null,
        platform: null,
        event_timestamp: event[0],
        source: null,
        recommendation_id: null,
        occurred_at: event[1],
      });
      assert.ok(typeof interaction_id === 'string' && typeof created === 'string');
      this.#model.interactions.push(reply.body);
    }
    if (idempotencyKey !== null) {
      const again = await this.#api.record(sent, headers);
      assert.deepEqual([again.status, again.body], [reply.status, reply.body]);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
    }
  }
}

async function assertStored(api: Api, model: Model): Promise<void> {
  for (const type of types) {
    const expected = [...model.records[type].values()].sort((a, b) =>
      a[keys[type]]! < b[keys[type]]! ? -1 : 1,
    );
    assert.deepEqual(await readAllRecords(api, type, '&include_deleted=true'), expected);
    assert.deepEqual(
      await readAllRecords(api, type),
      expected.filter(({ is_deleted }) => is_deleted === false),
    );
  }
  const newestFirst = (a: Shown, b: Shown): number => {
    const place = ({ occurred_at, interaction_id }: Shown): string =>
      `${new Date(occurred_at as string).toISOString()} ${interaction_id}`;
    return place(a) < place(b) ? 1 : -1;
  };
  assert.deepEqual(await readAllInteractions(api), [...model.interactions].sort(newestFirst));
}

forEachStore((store) => {
  describe('a random workload', () => {
    const running = runningHeadgate(store, { HEADGATE_BATCH_SIZE: String(BATCH_SIZE) });

    test('gets the responses and leaves the state that the model predicts', async (context) => {
      const seed = chosenSeed();
      context.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
      const random = new Random(seed);
      const organisations = [
        { api: await running.newApi(), model: new Model() },
        { api: await running.newApi(), model: new Model() },
      ];
      try {
        const sequential = organisations.flatMap(({ api, model }, at) =>
          [0, 1].map((number) => new Client(api, model, random, at, `${at}-${number}`)),
        );
        const endMs = performance.now() + WORK_MS / 2;
        let steps = 0;
        for (; steps < FEWEST_STEPS || (performance.now() < endMs && steps < 1000); steps++) {
          await random.oneOf(sequential).step();
        }
        for (const { api, model } of organisations) await assertStored(api, model);

        // Now the clients run concurrently. They share the records of their organisation; each has ids of its own.
        const concurrent = organisations.flatMap(({ api, model }, at) =>
          Array.from({ length: CLIENTS }, (_, number) => {
            const own = new Random(random.integer(0, 2 ** 32 - 1));
            return new Client(api, model, own, 2 + number, `concurrent-${at}-${number}`);
          }),
        );
        const concurrentEndMs = performance.now() + WORK_MS / 2;
        await Promise.all(
          concurrent.map(async (client) => {
            for (let step = 0; step < 20 || (performance.now() < concurrentEndMs && step < 150); step++) {
              await client.step();
            }
          }),
        );
        for (const { api, model } of organisations) await assertStored(api, model);
        context.diagnostic(`${steps} sequential steps`);
        for (const { model } of organisations) {
          assert.ok(types.every((type) => model.records[type].size > 20));
          assert.ok(model.interactions.length > 5);
        }
      } catch (error) {
        throw new Error(`failed with HEADGATE_TEST_SEED=${seed}`, { cause: error });
      }
    });
  });
});
