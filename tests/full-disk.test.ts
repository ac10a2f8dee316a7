// The SQLite store on a full disk. Specific to SQLite: other databases have disks of their own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Api, apiOf, type RefusalBody, type Reply, type UploadBody } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { describeWithDisks } from './harness/mount-namespace.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord, type TestRecord } from './harness/records.ts';

const DISK_MIB = 24;
const RESERVE_MIB = 8;
const MIB = 1024 * 1024;
const BATCH_SIZE = 500;
const UPLOAD_RECORDS = 1200;
const MOST_UPLOADS = 400;
const MOST_SMALL_WRITES = 1000;

await describeWithDisks('the store on a full disk', import.meta.url, suite);

function suite(folder: string): void {
  const database = `sqlite:${join(folder, 'headgate.db')}`;
  const reserve = join(folder, 'reserve');
  const ballast = join(folder, 'ballast');
  let headgate: Headgate;
  let key: string;
  let api: Api;
  const stored = new Map<string, TestRecord>();
  const refused: (readonly TestRecord[])[] = [];
  const recorded: Record<string, unknown>[] = [];
  const shop = leastRecord('shops');

  const start = async (): Promise<void> => {
    headgate = await startHeadgate(database, { HEADGATE_BATCH_SIZE: String(BATCH_SIZE) });
    if (key !== undefined) api = apiOf(headgate.url, key);
  };
  const courses = (count: number): TestRecord[] =>
    Array.from({ length: count }, () => leastRecord('courses', { name: 'x'.repeat(200) }));
  const newInteraction = (city: string): TestRecord => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: idOf('shops', shop),
    event_timestamp: 1_700_000_000,
    city,
  });
  const upload = async (records: readonly TestRecord[]): Promise<Reply<UploadBody>> => {
    const reply = await api.upload('courses', records);
    if (reply.status === 200) for (const record of records) stored.set(idOf('courses', record), record);
    return reply;
  };
  const assertWhatIsThere = async (): Promise<void> => {
    const there = new Map(
      (await readAllRecords(api, 'courses')).map((shown) => [idOf('courses', shown), shown]),
    );
    for (const [id, record] of stored) assert.equal(there.get(id)?.name, record.name);
    assert.equal(there.size, stored.size);
    for (const record of refused.flat()) assert.equal(there.has(idOf('courses', record)), false);
    const byId = (one: Record<string, unknown>, other: Record<string, unknown>): number =>
      String(one.interaction_id) < String(other.interaction_id) ? -1 : 1;
    assert.deepEqual((await readAllInteractions(api)).sort(byId), recorded.sort(byId));
  };

  before(async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'headgate-test', folder]);
    fill(reserve, RESERVE_MIB);
    await start();
    ({ key } = await headgate.newKey());
    api = apiOf(headgate.url, key);
    assert.equal((await api.upload('shops', [shop])).status, 200);
    const { status, body } = await api.record(newInteraction('before'));
    assert.equal(status, 201);
    recorded.push(body);
  });
  after(() => headgate.kill());

  test('uploads succeed until the disk is full, and then every record is reported', async () => {
    for (let uploads = 0; refused.length === 0; uploads++) {
      assert.ok(uploads < MOST_UPLOADS, 'the disk does not get full');
      const records = courses(UPLOAD_RECORDS);
      const reply = await upload(records);
      if (reply.status === 200) continue;
      refused.push(records);
      assertUnavailable(reply, records);
    }
    assert.ok(stored.size >= UPLOAD_RECORDS);
  });

  test('smaller writes are accepted until there is no room for any', async () => {
    fill(ballast, DISK_MIB);
    // The log can still use the room that the refused upload had taken in it.
    for (const size of [UPLOAD_RECORDS / 10, UPLOAD_RECORDS / 100]) {
      for (let hasRoom = true; hasRoom; ) hasRoom = (await upload(courses(size))).status === 200;
    }
    for (let writes = 0, hasRoom = true; hasRoom; writes++) {
      assert.ok(writes < MOST_SMALL_WRITES, 'the disk does not get full');
      const uploaded = await upload(courses(1));
      const { status, body } = await api.record(newInteraction(`filling ${writes}`));
      if (status === 201) recorded.push(body);
      const ready = await api.request('/readyz');
      hasRoom = uploaded.status === 200 || status === 201 || ready.status === 200;
    }
  });

  test('an invalid record is reported with its own problem, beside those not stored', async () => {
    const good = courses(1);
    const { status, body, text } = await api.upload('courses', [...good, { course_id: 'none', name: 'bad' }]);
    assert.equal(status, 500, text);
    const { counts, errors } = body.batches[0]!.data;
    assert.deepEqual(counts, { received: 2, created: 0, updated: 0, unchanged: 0, rejected: 2 });
    assert.deepEqual(
      errors.map(({ index, field, code, retryable }) => ({ index, field, code, retryable })),
      [
        { index: 0, field: null, code: 'store_unavailable', retryable: true },
        { index: 1, field: 'course_id', code: 'invalid_format', retryable: false },
      ],
    );
    refused.push(good);
  });

  test('a record with an unknown reference is reported with that problem, too', async () => {
    const nowhere = leastRecord('offers');
    const { status, body, text } = await api.upload('offers', [
      nowhere,
      leastRecord('offers', { shop_id: idOf('shops', shop) }),
    ]);
    assert.equal(status, 500, text);
    assert.deepEqual(
      body.batches[0]!.data.errors.map(({ index, id, code }) => ({ index, id: id !== null, code })),
      [
        { index: 0, id: true, code: 'unknown_reference' },
        { index: 1, id: true, code: 'store_unavailable' },
      ],
    );
  });

  test('a batch of invalid records gets 400, beside one that could not be stored', async () => {
    const bad = Array.from({ length: BATCH_SIZE }, () => ({ name: 'bad' }));
    const good = courses(1);
    const { status, body, text } = await api.upload('courses', [...bad, ...good]);
    assert.equal(status, 207, text);
    assert.deepEqual(
      body.batches.map((batch) => batch.status),
      [400, 500],
    );
    assert.ok(body.batches[0]!.data.errors.every(({ retryable }) => !retryable));
    refused.push(good);
  });

  test('an interaction is answered 500 and can be sent again', async () => {
    const { status, headers, body, text } = await api.record<RefusalBody>(newInteraction('refused'));
    assert.equal(status, 500, text);
    assert.equal(body.error, 'Internal Server Error');
    assert.equal(body.request_id, headers.get('x-request-id'));
    assert.match(body.message, /send it again/);
    assert.deepEqual(
      body.details?.map(({ field, code }) => ({ field, code })),
      [{ field: null, code: 'store_unavailable' }],
    );
  });

  test('requests that store nothing are answered as usual', async () => {
    assert.equal((await api.request('/livez')).status, 200);
    assert.equal((await api.read('shops', idOf('shops', shop))).status, 200);
    assert.equal((await api.upload('courses', [leastRecord('courses', { name: '' })])).status, 400);
    assert.equal((await api.record({})).status, 400);
    assert.equal((await apiOf(headgate.url, 'hg_none_none').list('shops')).status, 401);
    await assertWhatIsThere();
  });

  test('/readyz responds with 503 and Retry-After', async () => {
    const { status, headers } = await api.request('/readyz');
    assert.equal(status, 503);
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  });

  test('/livez and reads succeed while uploads are refused', async () => {
    const refusals = Promise.all(
      Array.from({ length: 8 }, async () => {
        const records = courses(UPLOAD_RECORDS);
        const reply = await upload(records);
        refused.push(records);
        assertUnavailable(reply, records);
      }),
    );
    let isOver = false;
    void refusals.finally(() => {
      isOver = true;
    });
    do {
      assert.equal((await api.request('/livez')).status, 200);
      assert.equal((await api.list('courses', '?limit=10')).status, 200);
    } while (!isOver);
    await refusals;
  });

  test('a command that has to write fails with one sentence', async () => {
    const { exitCode, stderr } = await failedHeadgate(['orgs', 'create', 'one too many'], {
      HEADGATE_DATABASE: database,
    });
    assert.equal(exitCode, 1);
    assert.match(stderr, oneSentence);
  });

  test('once there is room, service resumes without a restart, and refusals are not replayed', async () => {
    const headers = { 'Idempotency-Key': 'after-the-flood' };
    const records = courses(UPLOAD_RECORDS);
    const interaction = newInteraction('after');
    assert.equal((await api.upload('courses', records, { headers })).status, 500);
    assert.equal((await api.record(interaction, headers)).status, 500);
    rmSync(reserve);
    rmSync(ballast);

    const uploaded = await api.upload('courses', records, { headers });
    assert.equal(uploaded.status, 200, uploaded.text);
    assert.equal(uploaded.headers.get('idempotency-replayed'), null);
    for (const record of records) stored.set(idOf('courses', record), record);
    const { status, body, text } = await api.record(interaction, headers);
    assert.equal(status, 201, text);
    recorded.push(body);
    assert.equal((await api.request('/readyz')).status, 200);
    const again = refused.shift()!;
    assert.equal((await upload(again)).status, 200);
    await assertWhatIsThere();
  });

  test('after a kill and a restart everything acknowledged exists, and nothing refused does', async () => {
    await headgate.kill();
    await start();
    await assertWhatIsThere();
    assert.equal(await headgate.stop(), 0);
  });
}

function assertUnavailable({ status, body, text }: Reply<UploadBody>, records: readonly TestRecord[]): void {
  assert.equal(status, 500, text);
  assert.equal(body.batches.length, Math.ceil(records.length / BATCH_SIZE));
  for (const [at, { batch, status, data }] of body.batches.entries()) {
    const first = at * BATCH_SIZE;
    const sent = records.slice(first, first + BATCH_SIZE);
    assert.equal(batch, at + 1);
    assert.equal(status, 500);
    assert.equal(data.status, 'error');
    assert.match(data.error ?? '', /Send it again as it is; that is safe/);
    const received = sent.length;
    assert.deepEqual(data.counts, { received, created: 0, updated: 0, unchanged: 0, rejected: received });
    assert.deepEqual(
      data.errors.map(({ index, id, field, code, retryable }) => ({ index, id, field, code, retryable })),
      sent.map((record, offset) => ({
        index: first + offset,
        id: idOf('courses', record),
        field: null,
        code: 'store_unavailable',
        retryable: true,
      })),
    );
  }
}

/** Writes this many mebibytes, or as much as there is room for. */
function fill(path: string, mebibytes: number): void {
  const file = openSync(path, 'w');
  try {
    const bytes = Buffer.alloc(64 * 1024, 1);
    // A write that fits only in part returns how much it wrote; the next one fails.
    for (let written = 0; written < mebibytes * MIB; ) written += writeSync(file, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}
