// A load of uploads and interactions that records what it sent and what was acknowledged. After a disturbance it finds
// acknowledged data that is lost and batches that are stored in part.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import { type Api, type Reply, totals, type UploadBody } from './api.ts';
import type { Random } from './random.ts';
import { readAllInteractions, readAllRecords } from './read-all.ts';
import { idOf, leastRecord, type TestRecord } from './records.ts';

const MOST_RECORDS = 300;
const LONGEST_PAUSE_MS = 40;
const UPLOAD_CLIENTS = 3;
const INTERACTION_CLIENTS = 2;

/** The types of the load, and the text field that names the batch of a record. */
const markedBy = {
  shops: 'name',
  courses: 'name',
  categories: 'name',
  branches: 'name',
  transactions: 'source',
} as const satisfies Partial<Record<RecordTypeName, string>>;
type LoadType = keyof typeof markedBy;
const loadTypes = Object.keys(markedBy) as LoadType[];

interface SentUpload {
  readonly type: LoadType;
  readonly records: readonly TestRecord[];
  readonly idempotencyKey: string | null;
  acknowledged: Reply<UploadBody> | null;
}

interface SentInteraction {
  readonly interaction: TestRecord;
  readonly idempotencyKey: string | null;
  acknowledged: Reply<Record<string, unknown>> | null;
}

/** Resolves to the reply, or to null if the disturbance explains a missing or failed one. Rejects otherwise. */
export type Judge = <Body>(reply: Promise<Reply<Body>>) => Promise<Reply<Body> | null>;

export interface RunningLoad {
  /** Resolves when all replies have been judged; rejects if one is missing or failed and the disturbance does not explain it. */
  readonly ended: Promise<void>;
  stop(): void;
}

export class WatchedLoad {
  readonly #random: Random;
  readonly #shopId: string;
  readonly #batchSize: number;
  readonly #uploads: SentUpload[] = [];
  readonly #interactions: SentInteraction[] = [];
  /** The ids of records that are uploaded repeatedly, in a new version each time. */
  readonly #revisedIds: readonly string[];
  #sentVersion = 0;
  #acknowledgedVersion = 0;

  private constructor(random: Random, shopId: string, batchSize: number) {
    this.#random = random;
    this.#shopId = shopId;
    this.#batchSize = batchSize;
    this.#revisedIds = Array.from({ length: batchSize }, () => randomUUID());
  }

  static async create(api: Api, random: Random, batchSize: number): Promise<WatchedLoad> {
    const shop = leastRecord('shops', { name: 'the shop of all' });
    assert.equal((await api.upload('shops', [shop])).status, 200);
    return new WatchedLoad(random, idOf('shops', shop), batchSize);
  }

  get acknowledgedUploads(): number {
    return this.#uploads.filter(({ acknowledged }) => acknowledged !== null).length;
  }

  get acknowledgedInteractions(): number {
    return this.#interactions.filter(({ acknowledged }) => acknowledged !== null).length;
  }

  get acknowledgedRevisions(): number {
    return this.#acknowledgedVersion;
  }

  toString(): string {
    return (
      `${this.acknowledgedUploads} of ${this.#uploads.length} uploads, ${this.acknowledgedInteractions} of ` +
      `${this.#interactions.length} interactions acknowledged; ${this.#acknowledgedVersion} revisions`
    );
  }

  start(api: Api, judge: Judge): RunningLoad {
    let isOver = false;
    const repeat = async (act: () => Promise<void>): Promise<void> => {
      while (!isOver) {
        await act();
        await sleep(this.#random.integer(0, LONGEST_PAUSE_MS));
      }
    };
    const clients = [
      ...Array.from({ length: UPLOAD_CLIENTS }, () => repeat(() => this.#upload(api, judge))),
      ...Array.from({ length: INTERACTION_CLIENTS }, () => repeat(() => this.#record(api, judge))),
      repeat(() => this.#revise(api, judge)),
    ];
    return {
      ended: Promise.all(clients).then(() => {}),
      stop() {
        isOver = true;
      },
    };
  }

  async #upload(api: Api, judge: Judge): Promise<void> {
    const upload = this.#newUpload();
    this.#uploads.push(upload);
    const headers = keyHeader(upload.idempotencyKey);
    const reply = await judge(api.upload(upload.type, upload.records, { headers }));
    if (reply === null) return;
    this.#assertAllCreated(reply, upload);
    upload.acknowledged = reply;
  }

  async #record(api: Api, judge: Judge): Promise<void> {
    const sent: SentInteraction = {
      interaction: {
        interaction_type: 'PAGE_VIEW',
        item_type: 'SHOP',
        item_id: this.#shopId,
        event_timestamp: this.#random.integer(1_600_000_000, 1_700_000_000),
        user_id: randomUUID(),
      },
      idempotencyKey: this.#random.isLuckier(0.5) ? randomUUID() : null,
      acknowledged: null,
    };
    this.#interactions.push(sent);
    const reply = await judge(
      api.record<Record<string, unknown>>(sent.interaction, keyHeader(sent.idempotencyKey)),
    );
    if (reply === null) return;
    assert.equal(reply.status, 201, reply.text);
    sent.acknowledged = reply;
  }

  async #revise(api: Api, judge: Judge): Promise<void> {
    const version = ++this.#sentVersion;
    const records = this.#revisedIds.map((keyword_id) => ({ keyword_id, name: `version ${version}` }));
    const reply = await judge(api.upload('keywords', records));
    if (reply === null) return;
    assert.equal(reply.status, 200, reply.text);
    this.#acknowledgedVersion = version;
  }

  #newUpload(): SentUpload {
    const type = this.#random.oneOf(loadTypes);
    const mark = randomUUID();
    const records = Array.from({ length: this.#random.integer(1, MOST_RECORDS) }, (_, index) =>
      leastRecord(type, {
        ...(type === 'branches' || type === 'transactions' ? { shop_id: this.#shopId } : {}),
        [markedBy[type]]: `${mark} batch ${Math.floor(index / this.#batchSize)}`,
      }),
    );
    const idempotencyKey = this.#random.isLuckier(0.5) ? randomUUID() : null;
    return { type, records, idempotencyKey, acknowledged: null };
  }

  #assertAllCreated(reply: Reply<UploadBody>, { records }: SentUpload): void {
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.batches.length, Math.ceil(records.length / this.#batchSize));
    assert.deepEqual(totals(reply.body), {
      received: records.length,
      created: records.length,
      updated: 0,
      unchanged: 0,
      rejected: 0,
    });
  }

  /** Sends unacknowledged requests with an idempotency key twice more, and checks that the second is replayed. */
  async retryUnacknowledged(api: Api): Promise<void> {
    for (const upload of this.#uploads) {
      if (upload.acknowledged !== null || upload.idempotencyKey === null) continue;
      const headers = keyHeader(upload.idempotencyKey);
      const send = () => api.upload(upload.type, upload.records, { headers });
      const reply = await send();
      this.#assertAllCreated(reply, upload);
      assertReplayed(reply, await send());
      upload.acknowledged = reply;
    }
    for (const sent of this.#interactions) {
      if (sent.acknowledged !== null || sent.idempotencyKey === null) continue;
      const send = () => api.record(sent.interaction, keyHeader(sent.idempotencyKey));
      const reply = await send();
      assert.equal(reply.status, 201, reply.text);
      assertReplayed(reply, await send());
      sent.acknowledged = reply;
    }
  }

  /** Fails unless everything acknowledged is stored with its values, and every batch is stored whole or not at all. */
  async assertAllThere(api: Api): Promise<void> {
    for (const type of loadTypes) {
      const stored = new Map((await readAllRecords(api, type)).map((record) => [idOf(type, record), record]));
      for (const upload of this.#uploads.filter((candidate) => candidate.type === type)) {
        for (let first = 0; first < upload.records.length; first += this.#batchSize) {
          const batch = upload.records.slice(first, first + this.#batchSize);
          const there = batch.filter((record) => stored.has(idOf(type, record)));
          const isWhole = there.length === batch.length;
          assert.ok(isWhole || there.length === 0, `${there.length} of a batch of ${batch.length} ${type}`);
          assert.ok(isWhole || upload.acknowledged === null, `an acknowledged batch of ${type} is lost`);
          for (const record of there) {
            const shown = stored.get(idOf(type, record))!;
            for (const [field, value] of Object.entries(record)) assert.equal(shown[field], value);
          }
        }
      }
    }

    const byUser = Map.groupBy(await readAllInteractions(api), ({ user_id }) => user_id);
    for (const { interaction, acknowledged } of this.#interactions) {
      const found = byUser.get(interaction.user_id) ?? [];
      if (acknowledged === null) {
        assert.ok(found.length <= 1, `one interaction was stored ${found.length} times`);
        for (const [field, value] of Object.entries(interaction)) {
          if (found.length === 1) assert.equal(found[0]![field], value);
        }
      } else assert.deepEqual(found, [acknowledged.body]);
    }

    const names = new Set((await readAllRecords(api, 'keywords')).map(({ name }) => name));
    assert.ok(names.size <= 1, `a batch is stored in part: ${[...names]}`);
    const version = names.size === 0 ? 0 : Number(String([...names][0]).replace('version ', ''));
    assert.ok(version >= this.#acknowledgedVersion, `version ${version} is older than the acknowledged`);
    assert.ok(version <= this.#sentVersion);
  }
}

function keyHeader(idempotencyKey: string | null): Record<string, string> {
  return idempotencyKey === null ? {} : { 'Idempotency-Key': idempotencyKey };
}

function assertReplayed(first: Reply, again: Reply): void {
  assert.equal(again.text, first.text);
  assert.equal(again.headers.get('idempotency-replayed'), 'true');
}
