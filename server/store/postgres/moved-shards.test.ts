// Tests that statements are retried when Citus reports that it has moved or split a shard.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, before, beforeEach, describe, test } from 'node:test';
import pg from 'pg';
import { type OpenedStore, openStore } from '../open-store.ts';
import { StoreUnavailable } from '../store.ts';
import { interactionRow, recordRow } from '../test-rows.ts';
import { asStoreError, isConflict } from './errors.ts';
import { type TestDatabase, type TestServer, testServer } from './test-server.ts';

const MOVED = 'could not find valid entry for shard 102032';

describe('an error of the server', () => {
  const errors: readonly { readonly state: string; readonly message: string; readonly isRetried: boolean }[] =
    [
      { state: 'XX000', message: MOVED, isRetried: true },
      { state: 'XX000', message: 'could not find valid entry for shard placement 271', isRetried: true },
      {
        state: '22023',
        message: 'could not find any healthy placement for shard 102032',
        isRetried: true,
      },
      { state: '40001', message: 'shard for the given value does not exist', isRetried: true },
      { state: '42P01', message: 'relation "public.shops_102032" does not exist', isRetried: true },
      { state: '42P01', message: 'Relation »public.shops_102032« existiert nicht', isRetried: true },
      {
        state: '40P01',
        message: 'canceling the transaction since it was involved in a distributed deadlock',
        isRetried: true,
      },
      { state: 'XX000', message: 'cache lookup failed for relation 16999', isRetried: false },
      { state: 'XX000', message: `failure on connection: ${MOVED}`, isRetried: false },
      { state: '42P01', message: 'relation "shops" does not exist', isRetried: false },
      { state: '22023', message: 'invalid value for parameter "TimeZone": "102032"', isRetried: false },
      { state: '57014', message: 'canceling statement due to statement timeout', isRetried: false },
    ];
  for (const { state, message, isRetried } of errors) {
    test(`${state} "${message}" is ${isRetried ? '' : 'not '}retried`, () => {
      const error = Object.assign(new pg.DatabaseError(message, message.length, 'error'), { code: state });
      assert.equal(isConflict(asStoreError(error)), isRetried);
    });
  }
});

describe('a shard that was moved', () => {
  let server: TestServer;
  let database: TestDatabase;
  let store: OpenedStore;
  let organisation: number;

  before(async () => {
    server = await testServer();
  });
  beforeEach(async () => {
    database = await server.newDatabase();
    store = await openStore(database.url);
    organisation = (await store.createOrganisation('one', randomUUID(), 1))!.organisation;
  });
  afterEach(async () => {
    await store.close();
    await database.drop();
  });

  const ask = (sql: string) => server.ask(database.name, sql);

  /** Makes the first `times` inserts into the table fail. A sequence counts them, also across rollbacks. */
  const failInserts = (table: string, times: number): Promise<unknown> =>
    ask(`CREATE SEQUENCE tries_of_${table};
      CREATE FUNCTION fail_${table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('tries_of_${table}') <= ${times} THEN
          RAISE EXCEPTION USING ERRCODE = 'XX000', MESSAGE = '${MOVED}';
        END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER fail AFTER INSERT ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION fail_${table}()`);

  const triesOf = async (table: string): Promise<number> => {
    const [row] = await ask(`SELECT last_value FROM tries_of_${table}`);
    return Number(row!.last_value);
  };

  const idempotencyRecord = () => ({
    organisation,
    path: '/v1/data/shops',
    key: 'key',
    fingerprint: 'body',
    response: Buffer.from('answer'),
    storedAtMs: 1,
    expiresAtMs: 1000,
  });

  test('does not cause an upload or an interaction to fail', async () => {
    await failInserts('shops', 3);
    await failInserts('interactions', 3);
    const rows = [recordRow('shops'), recordRow('shops')];
    const written = await store.write({
      organisation,
      type: 'shops',
      batches: [rows],
      idempotencyRecord: null,
      entry: null,
    });
    assert.deepEqual(written, {
      kind: 'written',
      tallies: [{ created: 2, updated: 0, unchanged: 0 }],
      seq: null,
    });
    await store.writeInteraction({
      organisation,
      row: interactionRow(),
      idempotencyRecord: null,
      entry: null,
    });
    assert.equal(await store.countInteractions(organisation), 1);
  });

  // Below and above the number of rows from which COPY is used.
  for (const count of [2, 150]) {
    test(`during a transaction causes a retry of the whole transaction, with ${count} records`, async () => {
      await failInserts('shops', 0);
      await failInserts('idempotency_answers', 2);
      const rows = Array.from({ length: count }, () => recordRow('shops'));
      const written = await store.write({
        organisation,
        type: 'shops',
        batches: [rows],
        idempotencyRecord: idempotencyRecord(),
        entry: null,
      });
      assert.deepEqual(written, {
        kind: 'written',
        tallies: [{ created: count, updated: 0, unchanged: 0 }],
        seq: null,
      });
      assert.deepEqual([await triesOf('shops'), await triesOf('idempotency_answers')], [3, 3]);
      assert.equal(await store.countRecords(organisation, 'shops'), count);
      assert.equal((await store.storedResponse(idempotencyRecord(), 2))!.fingerprint, 'body');
    });
  }

  test('is reported with its cause if retries do not help', async () => {
    await failInserts('shops', 1_000_000);
    const upload = store.write({
      organisation,
      type: 'shops',
      batches: [[recordRow('shops')]],
      idempotencyRecord: null,
      entry: null,
    });
    await assert.rejects(
      upload,
      (error) => error instanceof StoreUnavailable && error.message.includes(MOVED),
    );
    assert.ok((await triesOf('shops')) <= 10);
    await store.ping();
  });
});
