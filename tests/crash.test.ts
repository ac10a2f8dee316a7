// A server that is killed again and again under load, always on the same database: what it acknowledged is
// there, with the values it acknowledged, and no batch is there in part.
//
// HEADGATE_TEST_SEED repeats the choices of a run; the moments of the kills still depend on the machine.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import { type Api, apiOf, type Reply, totals, type UploadBody } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { chosenSeed, Random } from './harness/random.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord, type TestRecord } from './harness/records.ts';

const KILLS = 22;
const LONGEST_LIFE_MS = 700;
const BATCH_SIZE = 40;
const MOST_RECORDS = 300;
const LONGEST_PAUSE_MS = 40;

/** The types of the load, and the text field that tells to which batch a record belongs. */
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

/** The same records again and again, in a new version each time. */
interface Revised {
  readonly ids: readonly string[];
  sentVersion: number;
  acknowledgedVersion: number;
}

interface Sent {
  readonly uploads: SentUpload[];
  readonly interactions: SentInteraction[];
  readonly revised: Revised;
}

forEachStore((store) => {
  test('what is acknowledged survives every SIGKILL, and batches are all there or not at all', async (t) => {
    const seed = chosenSeed();
    t.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const { database, remove } = await store.newDatabase();
    const start = () => startHeadgate(database, { HEADGATE_BATCH_SIZE: String(BATCH_SIZE) });
    let headgate = await start();
    try {
      const { key } = await headgate.newKey();
      const shop = leastRecord('shops', { name: 'the shop of all' });
      assert.equal((await apiOf(headgate.url, key).upload('shops', [shop])).status, 200);
      const shopId = idOf('shops', shop);
      const sent: Sent = {
        uploads: [],
        interactions: [],
        revised: {
          ids: Array.from({ length: BATCH_SIZE }, () => randomUUID()),
          sentVersion: 0,
          acknowledgedVersion: 0,
        },
      };
      for (let kill = 0; kill < KILLS; kill++) {
        await killUnderLoad(headgate, key, shopId, sent, random);
        headgate = await start();
        const api = apiOf(headgate.url, key);
        await retryUnanswered(api, sent);
        await assertAllThere(api, sent);
      }
      const acknowledged = sent.uploads.filter((upload) => upload.acknowledged !== null).length;
      t.diagnostic(
        `${KILLS} kills; ${acknowledged} of ${sent.uploads.length} uploads acknowledged, ` +
          `${sent.interactions.length} interactions, ${sent.revised.acknowledgedVersion} revisions`,
      );
      assert.ok(acknowledged >= KILLS && sent.revised.acknowledgedVersion >= KILLS, 'the load was no load');
      await headgate.kill();
      assert.deepEqual(await store.damages(database), []);
    } finally {
      await headgate.kill();
      await remove();
    }
  });
});

async function killUnderLoad(
  headgate: Headgate,
  key: string,
  shopId: string,
  sent: Sent,
  random: Random,
): Promise<void> {
  const api = apiOf(headgate.url, key);
  let isOver = false;
  const repeat = async (act: () => Promise<void>): Promise<void> => {
    while (!isOver) {
      await act();
      await sleep(random.integer(0, LONGEST_PAUSE_MS));
    }
  };
  // A request that the kill cut off has no answer; any other failure is one.
  const answerOf = async <Body>(reply: Promise<Reply<Body>>): Promise<Reply<Body> | null> =>
    reply.catch((error: unknown) => {
      if (isOver) return null;
      throw error;
    });

  const uploadOne = async (): Promise<void> => {
    const upload = newUpload(random, shopId);
    sent.uploads.push(upload);
    const headers = keyHeader(upload.idempotencyKey);
    upload.acknowledged = await answerOf(api.upload(upload.type, upload.records, { headers }));
    if (upload.acknowledged !== null) assertAllCreated(upload.acknowledged, upload);
  };
  const recordOne = async (): Promise<void> => {
    const interaction: SentInteraction = {
      interaction: {
        interaction_type: 'PAGE_VIEW',
        item_type: 'SHOP',
        item_id: shopId,
        event_timestamp: random.integer(1_600_000_000, 1_700_000_000),
        user_id: randomUUID(),
      },
      idempotencyKey: random.isLuckier(0.5) ? randomUUID() : null,
      acknowledged: null,
    };
    sent.interactions.push(interaction);
    const headers = keyHeader(interaction.idempotencyKey);
    interaction.acknowledged = await answerOf(api.record(interaction.interaction, headers));
    if (interaction.acknowledged !== null) assert.equal(interaction.acknowledged.status, 201);
  };
  const reviseOnce = async (): Promise<void> => {
    const version = ++sent.revised.sentVersion;
    const records = sent.revised.ids.map((keyword_id) => ({ keyword_id, name: `version ${version}` }));
    const reply = await answerOf(api.upload('keywords', records));
    if (reply === null) return;
    assert.equal(reply.status, 200, reply.text);
    sent.revised.acknowledgedVersion = version;
  };

  const clients = [uploadOne, uploadOne, uploadOne, recordOne, recordOne, reviseOnce].map(repeat);
  const load = Promise.all(clients);
  await Promise.race([sleep(random.integer(1, LONGEST_LIFE_MS)), load]);
  isOver = true;
  await headgate.kill();
  await load;
}

function keyHeader(idempotencyKey: string | null): Record<string, string> {
  return idempotencyKey === null ? {} : { 'Idempotency-Key': idempotencyKey };
}

function newUpload(random: Random, shopId: string): SentUpload {
  const type = random.oneOf(loadTypes);
  const mark = randomUUID();
  const records = Array.from({ length: random.integer(1, MOST_RECORDS) }, (_, index) =>
    leastRecord(type, {
      ...(type === 'branches' || type === 'transactions' ? { shop_id: shopId } : {}),
      [markedBy[type]]: `${mark} batch ${Math.floor(index / BATCH_SIZE)}`,
    }),
  );
  return { type, records, idempotencyKey: random.isLuckier(0.5) ? randomUUID() : null, acknowledged: null };
}

function assertAllCreated(reply: Reply<UploadBody>, { records }: SentUpload): void {
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.batches.length, Math.ceil(records.length / BATCH_SIZE));
  assert.deepEqual(totals(reply.body), {
    received: records.length,
    created: records.length,
    updated: 0,
    unchanged: 0,
    rejected: 0,
  });
}

/** What had an idempotency key and no answer is sent again, twice: it is carried out once, whenever that was. */
async function retryUnanswered(api: Api, sent: Sent): Promise<void> {
  const assertReplayed = (first: Reply, again: Reply): void => {
    assert.equal(again.text, first.text);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
  };
  for (const upload of sent.uploads) {
    if (upload.acknowledged !== null || upload.idempotencyKey === null) continue;
    const send = () => api.upload(upload.type, upload.records, { headers: keyHeader(upload.idempotencyKey) });
    upload.acknowledged = await send();
    assertAllCreated(upload.acknowledged, upload);
    assertReplayed(upload.acknowledged, await send());
  }
  for (const sentOne of sent.interactions) {
    if (sentOne.acknowledged !== null || sentOne.idempotencyKey === null) continue;
    const send = () => api.record(sentOne.interaction, keyHeader(sentOne.idempotencyKey));
    sentOne.acknowledged = await send();
    assert.equal(sentOne.acknowledged.status, 201, sentOne.acknowledged.text);
    assertReplayed(sentOne.acknowledged, await send());
  }
}

async function assertAllThere(api: Api, { uploads, interactions, revised }: Sent): Promise<void> {
  for (const type of loadTypes) {
    const stored = new Map((await readAllRecords(api, type)).map((record) => [idOf(type, record), record]));
    for (const upload of uploads.filter((candidate) => candidate.type === type)) {
      for (let first = 0; first < upload.records.length; first += BATCH_SIZE) {
        const batch = upload.records.slice(first, first + BATCH_SIZE);
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
  for (const { interaction, acknowledged } of interactions) {
    const found = byUser.get(interaction.user_id) ?? [];
    if (acknowledged === null) {
      assert.ok(found.length <= 1, `one interaction was stored ${found.length} times`);
      for (const [field, value] of Object.entries(interaction)) {
        if (found.length === 1) assert.equal(found[0]![field], value);
      }
    } else assert.deepEqual(found, [acknowledged.body]);
  }

  const names = new Set((await readAllRecords(api, 'keywords')).map(({ name }) => name));
  assert.ok(names.size <= 1, `a batch is there in part: ${[...names]}`);
  const version = names.size === 0 ? 0 : Number(String([...names][0]).replace('version ', ''));
  assert.ok(version >= revised.acknowledgedVersion, `version ${version} is older than the acknowledged`);
  assert.ok(version <= revised.sentVersion);
}
