// Which tables are distributed is tested without a cluster. All other tests need one: they do not exist unless
// HEADGATE_TEST_CITUS_URL names it. The contract suite runs there, too.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, before, describe, test } from 'node:test';
import { recordTypeNames } from '@headgate/catalogue/record-types.ts';
import type { IdempotencyRecord, Written } from '../idempotency-records.ts';
import type { NewApiKey } from '../keys.ts';
import type { EntryOrigin, LedgerPart } from '../ledger.ts';
import { migrateDatabase, openStore } from '../open-store.ts';
import type { OrganisationNumber, Row } from '../rows.ts';
import type { Store } from '../store.ts';
import { StoreUnavailable, StoreUnusable } from '../store.ts';
import { everyInteraction, everyRecord } from '../test-lists.ts';
import { interactionRow, recordRow } from '../test-rows.ts';
import { distributeSteps } from './citus.ts';
import type { Step } from './migrator.ts';
import { type TestCluster, testClusters } from './test-cluster.ts';
import type { TestDatabase } from './test-server.ts';

const local = ['api_keys', 'headgate_schema', 'organisations'];
const spread = [
  'idempotency_answers',
  'interactions',
  'ledger_entries',
  'ledgers',
  'segment_memberships',
  'segment_sets',
  'segments',
  'usage_days',
  ...recordTypeNames.map((type) => type.replaceAll('-', '_')),
].toSorted();

test('organisations and keys stay on the coordinator, and every other table is distributed by organisation', () => {
  for (const table of local) assert.deepEqual(distributeSteps(table), []);
  for (const table of spread) {
    const [{ doing, sql }, ...others] = distributeSteps(table) as [Step];
    assert.equal(doing, `distributing the table ${table}`);
    assert.ok(sql.startsWith(`SELECT create_distributed_table('${table}', 'organisation', `), sql);
    assert.match(sql, /THEN 'idempotency_answers' ELSE 'default' END\)$/);
    assert.deepEqual(others, []);
  }
});

for (const testCluster of testClusters) {
  describe('a database on a Citus cluster', () => {
    let cluster: TestCluster;
    let database: TestDatabase;
    let name: string;
    let store: Store;

    before(async () => {
      cluster = await testCluster();
    });

    const use = async (made: TestDatabase): Promise<void> => {
      database = made;
      name = new URL(made.url).pathname.slice(1);
      store = await openStore(made.url);
    };
    afterEach(async () => {
      await store.close();
      await database.drop();
    });

    const ask = (sql: string) => cluster.ask(name, sql);

    const distribution = async (): Promise<Record<string, unknown>> => {
      const rows = await ask(`SELECT logicalrelid::text AS name,
          CASE WHEN repmodel = 't' THEN 'on every node'
            ELSE column_to_column_name(logicalrelid, partkey) || ', with ' || colocationid END AS spread
        FROM pg_dist_partition ORDER BY 1`);
      return Object.fromEntries(rows.map((row) => [row.name, row.spread]));
    };

    const newOrganisations = async (count: number): Promise<readonly OrganisationNumber[]> => {
      const organisations: OrganisationNumber[] = [];
      for (let n = 0; n < count; n++) {
        organisations.push((await store.createOrganisation(randomUUID(), randomUUID(), 1))!.organisation);
      }
      return organisations;
    };

    const write = (
      organisation: OrganisationNumber,
      rows: readonly Row[],
      idempotencyRecord: IdempotencyRecord | null = null,
    ): Promise<Written> => {
      const entry = { ...originOf(organisation), received: rows.length, rejected: 0, causesJson: null };
      return store.write({ organisation, type: 'shops', batches: [rows], idempotencyRecord, entry });
    };

    const writeInteraction = (organisation: OrganisationNumber, row: Row): Promise<Written> => {
      const entry = originOf(organisation);
      return store.writeInteraction({ organisation, row, idempotencyRecord: null, entry });
    };

    const originOf = (organisation: OrganisationNumber): EntryOrigin => ({
      requestId: randomUUID(),
      keyId: `key of ${organisation}`,
      receivedAtMs: 1,
      bytes: 1,
    });

    /** Asserts that the numbers of the entries have no gaps, and returns how many rows the entries have created. */
    const createdInLedger = async (organisation: OrganisationNumber): Promise<number> => {
      let created = 0;
      let lastSeq = 0;
      for (let part: LedgerPart | null = null; part?.isLast !== true; ) {
        part = await store.ledgerPart(organisation, lastSeq);
        for (const entry of part.entries) {
          assert.equal(entry.seq, ++lastSeq);
          created += entry.created;
        }
      }
      assert.equal(await store.latestEntry(organisation), lastSeq);
      return created;
    };

    const idempotencyRecordOf = (organisation: OrganisationNumber): IdempotencyRecord => ({
      organisation,
      path: '/v1/data/shops',
      key: 'key',
      fingerprint: 'body',
      response: Buffer.from('answer'),
      storedAtMs: 1,
      expiresAtMs: 1000,
    });

    const keyOf = (organisation: OrganisationNumber): NewApiKey => ({
      keyId: randomUUID(),
      organisation,
      secretHash: 'hash',
      name: null,
      scopes: ['data:write'],
      createdAtMs: 1,
      expiresAtMs: null,
      revokedAtMs: null,
      lastUsedAtMs: null,
      replacedBy: null,
    });

    /** Turns the local tables into reference tables, as an earlier release did. */
    const copyToEveryNode = async (): Promise<void> => {
      for (const table of local) await ask(`SELECT create_reference_table('${table}')`);
    };

    test('has all tables distributed by organisation from the start, in one colocation group', async () => {
      await use(await cluster.newDatabase());
      const tables = await distribution();
      assert.deepEqual(Object.keys(tables).toSorted(), spread);
      assert.match(String(tables.shops), /^organisation, with \d+$/);
      for (const table of spread) assert.equal(tables[table], tables.shops);
    });

    test('stores the records of its organisations on all workers', async () => {
      await use(await cluster.newDatabase());
      const organisations = await newOrganisations(24);
      for (const organisation of organisations) await write(organisation, [recordRow('shops')]);
      const rowsOnNodes = await cluster.askEveryNode(
        name,
        `SELECT xpath('/row/count/text()', query_to_xml('SELECT count(*) FROM ' || relname, false, true, ''))::text[] AS counts
          FROM pg_class WHERE relkind = 'r' AND relname ~ '^shops_[0-9]+$'`,
      );
      const counts = rowsOnNodes.map((rows) =>
        rows.reduce((sum, row) => sum + Number((row.counts as string[])[0]), 0),
      );
      assert.equal(counts[0], 0);
      assert.ok(counts.slice(1).every((count) => count > 0));
      assert.equal(
        counts.reduce((sum, count) => sum + count),
        24,
      );
    });

    test('that was created without Citus keeps working, and is distributed by a migration', async () => {
      const plain = await cluster.newPlainDatabase();
      await use(plain);
      const [organisation, other] = (await newOrganisations(2)) as [number, number];
      const rows = Array.from({ length: 50 }, () => recordRow('shops'));
      await write(organisation, rows, idempotencyRecordOf(organisation));
      await plain.addCitus();

      const later = recordRow('shops');
      await write(organisation, [later]);
      const reopened = await openStore(database.url);
      await reopened.close();
      assert.deepEqual(await distribution(), {});

      const reported: string[] = [];
      const migrated = await migrateDatabase(database.url, {
        onDistributed: (table) => reported.push(table),
      });
      assert.deepEqual(reported.toSorted(), spread);
      assert.deepEqual(migrated.distribution, {
        distributed: reported,
        madeLocal: [],
        nodes: cluster.workers,
      });
      assert.deepEqual(Object.keys(await distribution()).toSorted(), reported.toSorted());
      assert.deepEqual(await ask(`SELECT pg_relation_size('shops')::integer AS bytes`), [{ bytes: 0 }]);

      const stored = await everyRecord(store, organisation, 'shops', { includeDeleted: false });
      assert.deepEqual(
        stored,
        [...rows, later].toSorted((a, b) => (a[0]! < b[0]! ? -1 : 1)),
      );
      assert.equal((await store.storedResponse(idempotencyRecordOf(organisation), 2))?.fingerprint, 'body');
      const [third] = await newOrganisations(1);
      assert.ok(third! > other, 'the number of a new organisation is higher than the last one');
      assert.deepEqual(await write(third!, [rows[0]!]), {
        kind: 'written',
        tallies: [{ created: 1, updated: 0, unchanged: 0 }],
        seq: 1,
      });

      const again = await migrateDatabase(database.url, {
        onDistributed: () => assert.fail('a table was distributed a second time'),
      });
      assert.deepEqual(again.distribution, {
        distributed: [],
        madeLocal: [],
        nodes: cluster.workers,
      });
    });

    test('is distributed during uploads, none of which fails or is lost', async () => {
      const plain = await cluster.newPlainDatabase();
      await use(plain);
      const organisations = await newOrganisations(4);
      await plain.addCitus();
      let isMigrating = true;
      const uploading = organisations.map(async (organisation) => {
        const ids: string[] = [];
        while (isMigrating) {
          const shop = recordRow('shops');
          await write(organisation, [shop], {
            ...idempotencyRecordOf(organisation),
            key: `key ${ids.length}`,
          });
          ids.push(shop[0] as string);
        }
        assert.deepEqual(await store.existing(organisation, 'shops', ids), new Set(ids));
        return ids.length;
      });
      await migrateDatabase(plain.url).finally(() => {
        isMigrating = false;
      });
      for (const count of await Promise.all(uploading)) assert.ok(count > 0);
    });

    test('is distributed once by several simultaneous migrations', async () => {
      const plain = await cluster.newPlainDatabase();
      await use(plain);
      await plain.addCitus();
      const migrated = await Promise.all([1, 2, 3].map(() => migrateDatabase(database.url)));
      const distributed = migrated.flatMap((one) => one.distribution!.distributed);
      assert.deepEqual(distributed.toSorted(), spread);
    });

    test('that lacks a type, a field and an index gets them on every node', async () => {
      await use(await cluster.newDatabase());
      const [organisation] = (await newOrganisations(1)) as [number];
      const shop = recordRow('shops', { is_deleted: false });
      await write(organisation, [shop]);
      await ask('ALTER TABLE shops DROP COLUMN is_deleted');
      await ask('DROP TABLE tags');
      await ask('DROP INDEX interactions_by_user');
      const reopened = await openStore(database.url);
      assert.deepEqual(await reopened.record(organisation, 'shops', shop[0] as string), shop);
      await reopened.close();
      assert.deepEqual(Object.keys(await distribution()).toSorted(), spread);
      const indexes = await cluster.askEveryNode(
        name,
        `SELECT 1 FROM pg_class WHERE relkind = 'i' AND relname ~ '^interactions_by_user_[0-9]+$'`,
      );
      assert.deepEqual(
        indexes.map((rows) => rows.length > 0),
        [false, ...Array.from({ length: cluster.workers }, () => true)],
      );
    });

    /** Makes the database like those of releases without a ledger. */
    const dropLedger = async (): Promise<void> => {
      await ask(
        'DROP TABLE ledgers, ledger_entries, usage_days, segment_sets, segments, segment_memberships',
      );
      await ask('UPDATE headgate_schema SET version = 2');
    };

    test('gets new tables beside the others, however their shards have changed', async () => {
      await use(await cluster.newDatabase());
      const [organisation] = (await newOrganisations(1)) as [number];
      const rows = [recordRow('shops'), recordRow('shops')] as const;
      await write(organisation, [rows[0]]);
      await ask(`SELECT isolate_tenant_to_new_shard('shops', ${organisation}, 'CASCADE', 'block_writes')`);
      await ask(`ALTER DATABASE ${name} SET citus.shard_count = 7`);
      await dropLedger();
      await ask('DROP TABLE tags');
      const reopened = await openStore(database.url);
      await reopened.close();
      const tables = await distribution();
      assert.deepEqual(Object.keys(tables).toSorted(), spread);
      assert.equal(new Set(Object.values(tables)).size, 1);
      const written = await write(organisation, [rows[1]]);
      assert.equal(written.kind === 'written' && written.seq, 2);
    });

    test('gets a ledger before its other tables are distributed', async () => {
      const plain = await cluster.newPlainDatabase();
      await use(plain);
      const [organisation] = (await newOrganisations(1)) as [number];
      await write(organisation, [recordRow('shops')]);
      await dropLedger();
      await plain.addCitus();
      const reopened = await openStore(database.url);
      await reopened.close();
      const written = await write(organisation, [recordRow('shops')]);
      assert.equal(written.kind === 'written' && written.seq, 2);
      await migrateDatabase(database.url);
      const tables = await distribution();
      assert.deepEqual(Object.keys(tables).toSorted(), spread);
      assert.equal(new Set(Object.values(tables)).size, 1);
      assert.equal(await store.latestEntry(organisation), 2);
    });

    test('issues, replaces, revokes and looks up keys while a worker is down', async () => {
      await use(await cluster.newDatabase());
      const [organisation] = (await newOrganisations(1)) as [number];
      const key = keyOf(organisation);
      await store.addKey(key);
      await cluster.stopWorker(name);
      try {
        const [later] = (await newOrganisations(1)) as [number];
        await store.addKey(keyOf(later));
        await store.noteKeysUsed(new Map([[key.keyId, 5]]));
        const successor = keyOf(organisation);
        assert.equal(await store.replaceKey(key.keyId, 1000, successor), true);
        await store.revokeKey(successor.keyId, 7);
        assert.equal((await store.findKey(successor.keyId))!.revokedAtMs, 7);
        assert.equal((await store.findKey(key.keyId))!.lastUsedAtMs, 5);
        const reopened = await openStore(database.url);
        assert.equal((await reopened.keysOf(organisation)).length, 2);
        await reopened.close();
      } finally {
        await cluster.startWorker(name);
      }
    });

    test('with keys on every node has them moved to the coordinator when it is opened', async () => {
      await use(await cluster.newDatabase());
      const organisations = await newOrganisations(3);
      const key = keyOf(organisations[0]!);
      await store.addKey(key);
      const role = `reader_${name}`;
      await ask(`CREATE ROLE ${role}`);
      await ask(`GRANT SELECT ON api_keys TO ${role}`);
      await copyToEveryNode();
      assert.deepEqual(Object.keys(await distribution()).toSorted(), [...local, ...spread].toSorted());
      let isMoving = true;
      let lookups = 0;
      const looking = (async () => {
        while (isMoving) {
          assert.equal((await store.findKey(key.keyId))!.organisation, organisations[0]);
          await store.noteKeysUsed(new Map([[key.keyId, ++lookups]]));
        }
      })();
      // On a slow machine the move may be left for the next opening.
      for (let tries = 0; tries < 5 && Object.keys(await distribution()).length > spread.length; tries++) {
        const reopened = await Promise.all([1, 2].map(() => openStore(database.url)));
        for (const one of reopened) await one.close();
      }
      isMoving = false;
      await looking;
      assert.deepEqual(Object.keys(await distribution()).toSorted(), spread);
      assert.equal((await store.findKey(key.keyId))!.lastUsedAtMs, lookups);
      const [later] = (await newOrganisations(1)) as [number];
      assert.deepEqual(organisations.concat(later), [1, 2, 3, 4]);
      assert.deepEqual(await ask(`SELECT has_table_privilege('${role}', 'api_keys', 'SELECT') AS may_read`), [
        { may_read: true },
      ]);
      assert.deepEqual(
        (
          await cluster.askEveryNode(name, `SELECT 1 FROM pg_class WHERE relname ~ '^api_keys(_[0-9]+)?$'`)
        ).map((rows) => rows.length),
        [1, ...Array.from({ length: cluster.workers }, () => 0)],
      );
      await ask(`DROP OWNED BY ${role}`);
      await ask(`DROP ROLE ${role}`);
    });

    test('with keys on every node opens without a worker, and is repaired by a migration', async () => {
      await use(await cluster.newDatabase());
      const [organisation] = (await newOrganisations(1)) as [number];
      const key = keyOf(organisation);
      await store.addKey(key);
      await copyToEveryNode();
      await cluster.stopWorker(name);
      const troubles: string[] = [];
      try {
        const reopened = await openStore(database.url, (trouble) => troubles.push(trouble));
        assert.equal((await reopened.findKey(key.keyId))!.organisation, organisation);
        await reopened.close();
        assert.equal(troubles.length, 1);
        assert.match(
          troubles[0]!,
          /keys cannot be issued or revoked while a worker is down.*headgate migrate/,
        );
        await assert.rejects(migrateDatabase(database.url));
      } finally {
        await cluster.startWorker(name);
      }
      const migrated = await migrateDatabase(database.url);
      assert.deepEqual(migrated.distribution?.madeLocal.toSorted(), local);
      assert.deepEqual(Object.keys(await distribution()).toSorted(), spread);
      assert.equal((await store.findKey(key.keyId))!.organisation, organisation);
    });

    test('stores a whole write or nothing if a worker fails at the commit', async () => {
      await use(await cluster.newDatabase());
      await cluster.askEveryNode(
        name,
        `DO $body$ DECLARE shard text; BEGIN
          IF (SELECT groupid FROM pg_dist_local_group) = (SELECT max(groupid) FROM pg_dist_node) THEN
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
              AS $$ BEGIN RAISE EXCEPTION 'this worker fails'; END $$;
            FOR shard IN SELECT relname FROM pg_class
              WHERE relkind = 'r' AND relname ~ '^(idempotency_answers|interactions)_[0-9]+$' LOOP
              EXECUTE format('CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON %I
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()', shard);
            END LOOP;
          END IF;
        END $body$`,
      );
      const organisations = await newOrganisations(12);
      const isAcknowledged = async (work: Promise<Written>): Promise<boolean> => {
        const [outcome] = await Promise.allSettled([work]);
        if (outcome!.status === 'rejected') assert.match(String(outcome!.reason), /this worker fails/);
        return outcome!.status === 'fulfilled';
      };
      const uploads: boolean[] = [];
      const interactions: boolean[] = [];
      await Promise.all(
        organisations.map(async (organisation) => {
          const [shop, interaction] = [recordRow('shops'), interactionRow()];
          const [isUploaded, isRecorded] = await Promise.all([
            isAcknowledged(write(organisation, [shop], idempotencyRecordOf(organisation))),
            isAcknowledged(writeInteraction(organisation, interaction)),
          ]);
          assert.deepEqual(
            {
              shop: await store.record(organisation, 'shops', shop[0] as string),
              idempotencyRecord: (await store.storedResponse(idempotencyRecordOf(organisation), 2)) !== null,
              interactions: await everyInteraction(store, organisation),
            },
            {
              shop: isUploaded ? shop : null,
              idempotencyRecord: isUploaded,
              interactions: isRecorded ? [interaction] : [],
            },
          );
          assert.equal(await createdInLedger(organisation), Number(isUploaded) + Number(isRecorded));
          uploads.push(isUploaded);
          interactions.push(isRecorded);
        }),
      );
      assert.deepEqual([new Set(uploads).size, new Set(interactions).size], [2, 2]);
    });

    test('accepts all writes while shards are moved and organisations are isolated', async () => {
      await use(await cluster.newDatabase());
      const organisations = await newOrganisations(4);
      let isMoving = true;
      /** Whether a call timed out, which happens on slow machines. It is then repeated, as by a client. */
      const hasWaitedTooLong = (error: unknown): boolean =>
        error instanceof StoreUnavailable &&
        /connections to PostgreSQL were busy|took too long|not serve the last calls|statement timeout|read timeout/.test(
          error.message,
        );
      const insist = async (work: () => Promise<unknown>): Promise<void> => {
        for (;;) {
          try {
            await work();
            return;
          } catch (error) {
            if (!hasWaitedTooLong(error)) throw error;
          }
        }
      };
      /** Repeats the work during the moves, which must not make it fail. Returns how often it was done. */
      const repeat = async (next: (n: number) => () => Promise<unknown>): Promise<number> => {
        let done = 0;
        while (isMoving) await insist(next(done++));
        return done;
      };
      const shops = (count: number): readonly Row[] =>
        Array.from({ length: count }, () => recordRow('shops'));
      const working = organisations.map(async (organisation) => {
        const [single, copied, interactions] = await Promise.all([
          repeat(() => {
            const rows = shops(1);
            return () => write(organisation, rows);
          }),
          // 100 rows are written with COPY, and with an idempotency record in a longer transaction.
          repeat((n) => {
            const rows = shops(100);
            const idempotencyRecord =
              n % 2 === 0 ? null : { ...idempotencyRecordOf(organisation), key: `key ${n}` };
            return () => write(organisation, rows, idempotencyRecord);
          }),
          repeat(() => {
            const row = interactionRow();
            return () => writeInteraction(organisation, row);
          }),
        ]);
        return { organisation, single, copied, interactions };
      });
      const allDone = Promise.all(working);
      // Errors are reported below. This only prevents an unhandled rejection until then.
      allDone.catch(() => {});

      try {
        for (const [n, mode] of ['block_writes', 'force_logical'].entries()) {
          const [moved, isolated] = [organisations[n]!, organisations[n + 2]!];
          await ask(`SELECT citus_move_shard_placement(shardid, source.nodename, source.nodeport,
              target.nodename, target.nodeport, '${mode}')
            FROM citus_shards AS source, LATERAL (SELECT nodename, nodeport FROM pg_dist_node
              WHERE groupid > 0 AND nodeport <> source.nodeport ORDER BY nodeport LIMIT 1) AS target
            WHERE table_name = 'shops'::regclass
              AND shardid = get_shard_id_for_distribution_column('shops', ${moved})`);
          // With logical replication, Citus never finishes if a row is updated while it copies the rows.
          await ask(`SELECT isolate_tenant_to_new_shard('shops', ${isolated}, 'CASCADE', 'block_writes')`);
        }
      } finally {
        isMoving = false;
        await Promise.allSettled(working);
      }
      for (const { organisation, single, copied, interactions } of await allDone) {
        assert.ok(single > 0 && copied > 1 && interactions > 0);
        assert.equal(await store.countRecords(organisation, 'shops'), single + 100 * copied);
        assert.equal(await store.countInteractions(organisation), interactions);
        assert.equal(await createdInLedger(organisation), single + 100 * copied + interactions);
      }
    });

    for (const [how, column, alterations] of [
      ['by its own key', 'shop_id', `distribution_column := 'shop_id', shard_count := 8`],
      ['apart from the others', 'organisation', `colocate_with := 'none'`],
    ] as const) {
      test(`is refused while a table is distributed ${how}, until the named statement has run`, async () => {
        await use(await cluster.newDatabase());
        const [organisation] = await newOrganisations(1);
        const rows = Array.from({ length: 200 }, () => recordRow('shops'));
        await write(organisation!, rows);
        await ask(`SELECT alter_distributed_table('shops', ${alterations}, cascade_to_colocated := false)`);
        for (const open of [migrateDatabase, openStore]) {
          await assert.rejects(
            open(database.url),
            (error) =>
              error instanceof StoreUnusable &&
              error.message.includes(` has its table shops distributed by ${column}, `),
          );
        }
        const { message } = (await openStore(database.url).catch((error: unknown) => error)) as StoreUnusable;
        await ask(message.slice(message.indexOf('SELECT alter_distributed_table')));
        await migrateDatabase(database.url);
        const tables = await distribution();
        assert.equal(tables.shops, tables.transactions);
        assert.equal(await store.countRecords(organisation!, 'shops'), rows.length);
      });
    }

    test('is refused if the address names one of its workers', async () => {
      await use(await cluster.newDatabase());
      const [, worker] = (await ask(
        `SELECT nodename AS host, nodeport AS port FROM pg_dist_node ORDER BY groupid`,
      )) as { host: string; port: number }[];
      const url = Object.assign(new URL(database.url), {
        hostname: worker!.host,
        port: String(worker!.port),
      });
      await assert.rejects(
        openStore(url.href),
        (error) =>
          error instanceof StoreUnusable &&
          error.message.endsWith('is a worker of a Citus cluster: name the coordinator'),
      );
    });
  });
}
