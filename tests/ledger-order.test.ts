// The order of the ledger: whoever has seen an entry has seen every earlier one. Eight writers in two server processes
// upload records and interactions and send single interactions, while servers and databases are killed and transactions are held open.
// All the time, a follower of each organisation reads the changes. In the end it must have everything that was
// acknowledged, and everything that is stored.
//
// HEADGATE_TEST_SEED repeats the choices of a run; how the writers meet still depends on the machine.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { INTERACTIONS, type UploadTypeName } from '@headgate/catalogue/record-types.ts';
import pg from 'pg';
import { issueKey } from '../server/access/keys.ts';
import { defaultScopes } from '../server/access/scopes.ts';
import { openStore } from '../server/store/open-store.ts';
import type { Run } from '../server/store/postgres/connections.ts';
import { appendEntries } from '../server/store/postgres/ledger.ts';
import { testClusters } from '../server/store/postgres/test-cluster.ts';
import { askOn, startTestServer } from '../server/store/postgres/test-server.ts';
import { upsert } from '../server/store/postgres/upserts.ts';
import type { OrganisationNumber } from '../server/store/rows.ts';
import type { Store } from '../server/store/store.ts';
import { catalogueTables, tableOf } from '../server/store/tables.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { recordRow } from '../server/store/test-rows.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type Reply, type UploadBody } from './harness/api.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { LedgerFollower } from './harness/ledger-follower.ts';
import { chosenSeed, Random } from './harness/random.ts';
import { idOf, leastRecord } from './harness/records.ts';

const SERVERS = 2;
const WRITERS = 8;
const KILLS = times(12, 1);
const LONGEST_LIFE_MS = 700;
const OUTAGE_MS = 300;
const HELD_MS = times(3000, 1500);
const RETRY_AFTER_MS = 20;
const MOST_INTERACTIONS = 6;
/** From 100 new records on, PostgreSQL copies them. */
const uploadSizes = [1, 1, 20, 150];
const loadTypes = ['tags', 'keywords'] as const;

interface Disturbable {
  readonly database: string;
  /** Kills the database and starts it again. Null if the database has no process. */
  readonly interrupt: (() => Promise<void>) | null;
  remove(): Promise<void>;
}

/** Databases of servers that only these tests use, because they are killed. */
const databases: Readonly<Record<string, () => Promise<Disturbable>>> = {
  async SQLite() {
    return undisturbed('SQLite');
  },
  async PostgreSQL() {
    const server = await startTestServer();
    const { url, drop } = await server.newDatabase();
    const interrupt = async (): Promise<void> => {
      await server.kill();
      await sleep(OUTAGE_MS);
      await server.start();
    };
    return { database: url, remove: drop, interrupt };
  },
  ...Object.fromEntries(
    testClusters.map((testCluster) => [
      'Citus',
      async (): Promise<Disturbable> => {
        const cluster = await testCluster();
        const { name, url, drop } = await cluster.newDatabase();
        const interrupt = async (): Promise<void> => {
          await cluster.stopWorker(name);
          await sleep(OUTAGE_MS);
          await cluster.startWorker(name);
          // Completes what was committed on the coordinator when the worker stopped. Citus does so from time to time.
          await cluster.ask(name, 'SELECT recover_prepared_transactions()');
        };
        return { database: url, remove: drop, interrupt };
      },
    ]),
  ),
};

async function undisturbed(name: string): Promise<Disturbable> {
  const { newDatabase } = testDatabases.find((kind) => kind.name === name)!;
  return { ...(await newDatabase()), interrupt: null };
}

interface Acknowledged {
  readonly type: UploadTypeName;
  readonly ids: readonly string[];
  /** Null if the response does not have the number. */
  readonly seq: number | null;
}

/** Returns null if the server or its database was killed, or if the request is to be sent again. */
async function replyOf<Body>(sent: Promise<Reply<Body>>): Promise<Reply<Body> | null> {
  try {
    const reply = await sent;
    if (reply.status < 400) return reply;
    assert.ok(reply.status >= 500 || reply.status === 409, `${reply.status}: ${reply.text}`);
  } catch (error) {
    // A connection that ends is a TypeError, or a SyntaxError if the end of the JSON is missing.
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
  }
  return null;
}

class Organisation {
  readonly number: OrganisationNumber;
  readonly follower: LedgerFollower;
  readonly acknowledged: Acknowledged[] = [];
  readonly #keys: readonly string[];
  readonly #tagId = randomUUID();
  readonly #interaction = {
    interaction_type: 'PAGE_VIEW',
    item_type: 'TAG',
    item_id: this.#tagId,
    event_timestamp: 1_714_555_800,
  };
  /** The ids of records that every writer changes again and again. */
  readonly #changingIds = Array.from({ length: 30 }, () => randomUUID());

  constructor(number: OrganisationNumber, keys: readonly string[], follower: LedgerFollower) {
    this.number = number;
    this.#keys = keys;
    this.follower = follower;
  }

  async begin(url: string): Promise<void> {
    const tag = leastRecord('tags', { tag_id: this.#tagId });
    const { status, text } = await apiOf(url, this.#keys[0]!).upload('tags', [tag]);
    assert.equal(status, 200, text);
  }

  /** Writes until `isOver`. `urlOf` returns the address of a server, which may be down. */
  async write(random: Random, urlOf: (isRetry: boolean) => string, isOver: () => boolean): Promise<void> {
    const apiFor = (isRetry: boolean): Api => apiOf(urlOf(isRetry), random.oneOf(this.#keys));
    const acts = [this.#upload, this.#upload, this.#change, this.#interact, this.#interact];
    while (!isOver()) await random.oneOf(acts).call(this, random, apiFor, isOver);
  }

  /** Uploads new records. Repeats the request, with its idempotency key, until there is a response. */
  async #upload(random: Random, apiFor: (isRetry: boolean) => Api, isOver: () => boolean): Promise<void> {
    const type = random.oneOf([...loadTypes, INTERACTIONS]);
    const records = Array.from({ length: random.oneOf(uploadSizes) }, () =>
      type === INTERACTIONS ? { interaction_id: randomUUID(), ...this.#interaction } : leastRecord(type),
    );
    const headers = { 'Idempotency-Key': randomUUID() };
    const send = (isRetry: boolean): Promise<Reply<UploadBody> | null> =>
      replyOf(apiFor(isRetry).upload(type, records, { headers }));
    let reply = await send(false);
    while (reply === null) {
      if (isOver()) return;
      await sleep(RETRY_AFTER_MS);
      reply = await send(true);
    }
    const { seq } = reply.body as UploadBody & { seq: number };
    assert.ok(Number.isSafeInteger(seq), reply.text);
    const { key } = tableOf(catalogueTables, type);
    this.acknowledged.push({ type, ids: records.map((record) => String(record[key])), seq });
  }

  async #change(random: Random, apiFor: (isRetry: boolean) => Api): Promise<void> {
    const ids = this.#changingIds.filter(() => random.isLuckier(0.3));
    const records = [...ids, randomUUID()].map((id) =>
      leastRecord('tags', { tag_id: id, name: randomUUID() }),
    );
    const reply = await replyOf(apiFor(false).upload('tags', records));
    if (reply === null) await sleep(RETRY_AFTER_MS);
    else this.acknowledged.push({ type: 'tags', ids: [idOf('tags', records.at(-1)!)], seq: null });
  }

  async #interact(random: Random, apiFor: (isRetry: boolean) => Api): Promise<void> {
    const count = random.integer(1, MOST_INTERACTIONS);
    const replies = await Promise.all(
      Array.from({ length: count }, () => replyOf(apiFor(false).record(this.#interaction))),
    );
    if (replies.includes(null)) await sleep(RETRY_AFTER_MS);
    const ids = replies.flatMap((reply) => (reply === null ? [] : [String(reply.body.interaction_id)]));
    this.acknowledged.push({ type: INTERACTIONS, ids, seq: null });
  }

  async assertFollowed(): Promise<void> {
    for (const { type, ids, seq } of this.acknowledged) this.follower.assertSeenOnce(type, ids, seq);
    await this.follower.assertComplete();
  }
}

/** Creates an organisation with two keys. */
async function newOrganisation(store: Store, random: Random): Promise<Organisation> {
  const nowMs = Date.now();
  const made = await store.createOrganisation(`organisation ${randomUUID()}`, randomUUID(), nowMs);
  const { organisation, orgId } = made!;
  const wish = { organisation, orgId, scopes: defaultScopes, name: null, expiresAtMs: null, nowMs };
  const keys = [await issueKey(store, wish), await issueKey(store, wish)].map(({ apiKey }) => apiKey);
  return new Organisation(organisation, keys, new LedgerFollower(store, organisation, random, loadTypes));
}

/** What happens while the writers write. */
type Disturbance = (load: {
  readonly store: Store;
  readonly database: string;
  readonly organisation: Organisation;
  readonly random: Random;
  /** Sends SIGKILL to the server and starts another on the same database. */
  restart(server: number): Promise<void>;
  readonly interrupt: (() => Promise<void>) | null;
}) => Promise<void>;

/** Fails unless the followers see everything, in order, whatever happens meanwhile. */
async function assertOrder(
  t: TestContext,
  newDatabase: () => Promise<Disturbable>,
  disturb: Disturbance,
): Promise<void> {
  const seed = chosenSeed();
  t.diagnostic(`HEADGATE_TEST_SEED=${seed}`);
  const random = new Random(seed);
  const { database, interrupt, remove } = await newDatabase();
  const servers: Headgate[] = [];
  let store: Store | null = null;
  try {
    while (servers.length < SERVERS) servers.push(await startHeadgate(database));
    store = await openStore(database);
    const organisations = [await newOrganisation(store, random), await newOrganisation(store, random)];
    for (const organisation of organisations) await organisation.begin(servers[0]!.url);

    let isOver = false;
    const following = Promise.all(organisations.map(({ follower }) => follower.follow()));
    const writing = Promise.all(
      Array.from({ length: WRITERS }, (_, n) =>
        organisations[n < WRITERS - 2 ? 0 : 1]!.write(
          new Random(seed + n),
          (isRetry) => servers[(n + (isRetry ? random.integer(0, 1) : 0)) % SERVERS]!.url,
          () => isOver,
        ),
      ),
    );
    const restart = async (server: number): Promise<void> => {
      await servers[server]!.kill();
      servers[server] = await startHeadgate(database);
    };
    const [organisation] = organisations as [Organisation];
    const disturbing = disturb({ store, database, organisation, random, restart, interrupt });
    try {
      await Promise.race([disturbing, Promise.all([writing, following])]);
    } finally {
      isOver = true;
      await Promise.allSettled([disturbing, writing]);
      for (const { follower } of organisations) follower.end();
      await Promise.allSettled([following]);
    }
    await Promise.all([writing, following]);
    for (const organisation of organisations) {
      await organisation.assertFollowed();
      const { acknowledged, follower } = organisation;
      const ids = acknowledged.reduce((sum, one) => sum + one.ids.length, 0);
      t.diagnostic(`${ids} ids in ${acknowledged.length} acknowledged writes, ${follower.entries} entries`);
      assert.ok(acknowledged.length > WRITERS, 'the load was no load');
    }
  } finally {
    await Promise.all(servers.map((server) => server.kill()));
    await store?.close();
    await remove();
  }
}

for (const [name, newDatabase] of Object.entries(databases)) {
  describe(`the ledger on ${name}`, () => {
    test('is in order and complete although servers and databases are killed', async (t) => {
      await assertOrder(t, newDatabase, async ({ random, restart, interrupt }) => {
        for (let kill = 0; kill < KILLS; kill++) {
          await sleep(random.integer(1, LONGEST_LIFE_MS));
          await restart(kill % SERVERS);
          if (interrupt === null || kill % SERVERS === 1) continue;
          await sleep(random.integer(1, LONGEST_LIFE_MS));
          await interrupt();
        }
        await sleep(LONGEST_LIFE_MS);
      });
    });

    if (name === 'SQLite') return;

    /** Runs the statements that the store runs for an upload of one new tag, with a pause before or after its number. */
    const holdUpload = async (
      { database, store, organisation }: Parameters<Disturbance>[0],
      isNumberTaken: boolean,
      whileHeld: () => Promise<void>,
    ): Promise<void> => {
      await sleep(LONGEST_LIFE_MS);
      const client = new pg.Client(database);
      await client.connect();
      const types = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;
      const run: Run = async ({ text, values }) =>
        (await client.query<(string | null)[]>({ text, types, rowMode: 'array' }, [...values])).rows;
      const row = recordRow('tags');
      const ids = [row[0] as string];
      const { number } = organisation;
      const received = { receivedAtMs: Date.now(), received: 1, rejected: 0, causesJson: null, bytes: 1 };
      const entry = { ...received, requestId: randomUUID(), keyId: 'held' };
      const tally = { created: 1, updated: 0 };
      const appended = { organisation: number, type: 'tags', entry, tally, ids } as const;
      const pause = async (): Promise<void> => {
        await sleep(HELD_MS);
        await whileHeld();
      };
      try {
        await client.query('BEGIN');
        await upsert(run, tableOf(catalogueTables, 'tags'), [{ organisation: number, row }]);
        if (!isNumberTaken) await pause();
        const [seq] = await appendEntries(run, [appended]);
        if (isNumberTaken) await pause();
        const latest = await store.latestEntry(number);
        assert.equal(latest, seq! - 1, 'no later entry is visible before this one');
        await client.query('COMMIT');
        organisation.acknowledged.push({ type: 'tags', ids, seq: seq! });
      } finally {
        await client.end();
      }
    };

    test('waits seconds for an upload that has its number, and goes on beside one that has none yet', async (t) => {
      await assertOrder(
        t,
        () => undisturbed(name),
        async (load) => {
          await holdUpload(load, true, async () => {});
          const { store, organisation } = load;
          const before = await store.latestEntry(organisation.number);
          await holdUpload(load, false, async () => {
            const added = (await store.latestEntry(organisation.number)) - before;
            assert.ok(added > 20, `only ${added} entries were added meanwhile`);
          });
        },
      );
    });

    if (name !== 'Citus') return;

    test('stays in order while its organisation gets a shard, and then a worker, of its own', async (t) => {
      await assertOrder(t, newDatabase, async ({ database, organisation: { number } }) => {
        const ask = (sql: string) => askOn({ connectionString: database }, sql);
        await sleep(LONGEST_LIFE_MS);
        await ask(`SELECT isolate_tenant_to_new_shard('transactions', ${number}, 'CASCADE', 'block_writes')`);
        for (const mode of ['block_writes', 'force_logical']) {
          await sleep(LONGEST_LIFE_MS);
          await ask(`SELECT citus_move_shard_placement(shardid, source.nodename, source.nodeport,
              target.nodename, target.nodeport, '${mode}')
            FROM citus_shards AS source, LATERAL (SELECT nodename, nodeport FROM pg_dist_node
              WHERE groupid > 0 AND nodeport <> source.nodeport ORDER BY nodeport LIMIT 1) AS target
            WHERE table_name = 'transactions'::regclass
              AND shardid = get_shard_id_for_distribution_column('transactions', ${number})`);
        }
        await sleep(LONGEST_LIFE_MS);
      });
    });
  });
}
