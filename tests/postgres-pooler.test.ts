// The service on a PostgreSQL behind PgBouncer, as Debian ships it: every transaction may run in another session of
// the server, and prepared statements are not kept.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { hasPooler, type PoolMode, startPooler } from '../server/store/postgres/test-pooler.ts';
import { type TestDatabase, type TestServer, testServer } from '../server/store/postgres/test-server.ts';
import { apiOf } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord } from './harness/records.ts';

const ROUNDS = 5;
/** Enough new records to be written with COPY. */
const LARGE = 200;

describe('behind PgBouncer', { skip: !hasPooler() && 'this machine has no pgbouncer' }, () => {
  let server: TestServer;
  let database: TestDatabase;

  before(async () => {
    server = await testServer();
    database = await server.newDatabase();
    // Server settings on which Headgate must not depend.
    await server.ask(
      database.name,
      `ALTER DATABASE ${database.name} SET synchronous_commit = off;
      ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`,
    );
  });
  after(() => database.drop());

  /** Makes writes fail that would be acknowledged before they are on disk, or that are not read committed. */
  async function refuseCareless(): Promise<void> {
    await server.ask(
      database.name,
      `CREATE OR REPLACE FUNCTION refuse_careless() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF current_setting('synchronous_commit') = 'off'
          OR current_setting('transaction_isolation') <> 'read committed'
          OR current_setting('statement_timeout') <> '30s'
          OR current_setting('TimeZone') <> 'UTC' THEN
          RAISE EXCEPTION 'a careless write';
        END IF;
        RETURN NULL;
      END $$`,
    );
    for (const table of [
      'tags',
      'shops',
      'interactions',
      'idempotency_answers',
      'api_keys',
      'organisations',
    ]) {
      await server.ask(
        database.name,
        `CREATE OR REPLACE TRIGGER refuse_careless AFTER INSERT OR UPDATE ON ${table}
          FOR EACH STATEMENT EXECUTE FUNCTION refuse_careless()`,
      );
    }
  }

  for (const mode of ['transaction', 'session'] satisfies PoolMode[]) {
    test(`everything works in ${mode} mode, every write is on disk, and no setting leaks`, async (t) => {
      const pooler = await startPooler(server, mode);
      const url = pooler.urlOf(database.name);
      const headgate: Headgate = await startHeadgate(url);
      t.after(() => headgate.kill());
      await refuseCareless();
      const { key } = await headgate.newKey();
      const api = apiOf(headgate.url, key);
      const shop = leastRecord('shops');
      assert.equal((await api.upload('shops', [shop])).status, 200);
      const interaction = {
        interaction_type: 'SHARE',
        item_type: 'SHOP',
        item_id: idOf('shops', shop),
        event_timestamp: 1_700_000_000,
      };
      for (let round = 0; round < ROUNDS; round++) {
        const large = Array.from({ length: LARGE }, () => leastRecord('tags'));
        const changed = large.map((tag) => ({ ...tag, name: 'changed' }));
        const headers = { 'Idempotency-Key': randomUUID() };
        const copied = await api.upload('tags', large);
        const merged = await api.upload('tags', changed, { headers });
        const again = await api.upload('tags', changed, { headers });
        assert.deepEqual(
          [copied, merged, again].map(({ status, body }) => [status, body.batches[0]?.data.counts]),
          [
            [200, { received: LARGE, created: LARGE, updated: 0, unchanged: 0, rejected: 0 }],
            [200, { received: LARGE, created: 0, updated: LARGE, unchanged: 0, rejected: 0 }],
            [200, { received: LARGE, created: 0, updated: LARGE, unchanged: 0, rejected: 0 }],
          ],
        );
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
        const together = await Promise.all([
          ...Array.from({ length: 10 }, () => api.record(interaction)),
          ...Array.from({ length: 4 }, () => api.record(interaction, { 'Idempotency-Key': randomUUID() })),
          ...Array.from({ length: 4 }, () => api.upload('tags', [leastRecord('tags')])),
        ]);
        assert.deepEqual(
          together.map(({ status }) => status),
          [...Array.from({ length: 14 }, () => 201), ...Array.from({ length: 4 }, () => 200)],
        );
      }
      assert.equal((await readAllRecords(api, 'tags')).length, ROUNDS * (LARGE + 4));
      assert.equal((await readAllInteractions(api)).length, ROUNDS * 14);
      assert.equal((await api.request('/readyz')).status, 200);
      // Before it stops, because its sessions can still be reused by other clients then.
      const settings = await settingsThrough(url);
      assert.equal(await headgate.stop(), 0);
      assert.deepEqual(settings, new Set(['off 0 serializable']));
    });
  }

  test('a start in statement mode is refused in one sentence that says what to change', async () => {
    const pooler = await startPooler(server, 'statement');
    const { exitCode, stderr } = await failedHeadgate(['serve', '--port', '0'], {
      HEADGATE_DATABASE: pooler.urlOf(database.name),
    });
    assert.equal(exitCode, 1);
    assert.match(stderr, oneSentence);
    assert.match(stderr, /cannot be used through this pooler, .*set it to session or transaction pooling/);
  });
});

/** Returns the settings that other clients find in the pooler's sessions. Several connect at once to get several. */
async function settingsThrough(url: string): Promise<ReadonlySet<string>> {
  const found = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query<{ settings: string }>(
        `SELECT concat_ws(' ', current_setting('synchronous_commit'), current_setting('statement_timeout'),
          current_setting('default_transaction_isolation')) AS settings, pg_sleep(0.05)`,
      );
      await client.end();
      return rows[0]!.settings;
    }),
  );
  return new Set(found);
}
