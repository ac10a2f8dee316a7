// An organisation is served as usual while the statements of others hang, as they do on a Citus cluster with a frozen
// worker. A list of their own is refused in time.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { issueKey } from '../server/access/keys.ts';
import { createOrganisation } from '../server/access/organisations.ts';
import { defaultScopes } from '../server/access/scopes.ts';
import { tooManyLists, tooManyLookUps, tooManyQueries } from '../server/http/fixed-refusals.ts';
import { listSlots, lookUpSlots, sqlSlots } from '../server/http/work-slots.ts';
import { openStore } from '../server/store/open-store.ts';
import { type TestDatabase, type TestServer, testServer } from '../server/store/postgres/test-server.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Api, apiOf, type RefusalBody, type Reply } from './harness/api.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { idOf, leastRecord } from './harness/records.ts';
import { assertRefusal } from './harness/refusal.ts';
import { waitUntil } from './harness/waiting.ts';

const HANGING_CONNECTIONS = 8;
const USUALLY_WATCHED_MS = times(2000, 1000);
const WATCHED_MS = times(8000, 4000);
const SERVED_WITHIN_MS = 1000;
const FEWEST_CALLS = 10;
/** The advisory lock that the triggers of hanging organisations wait for. Any number will do. */
const LOCK = 4711;

let postgres: TestServer;
let database: TestDatabase;
let headgate: Headgate;
let holder: pg.Client;

before(async () => {
  postgres = await testServer();
  database = await postgres.newDatabase();
  headgate = await startHeadgate(database.url);
  holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
});
after(async () => {
  await holder.end();
  await headgate.kill();
  await database.drop();
});

interface Member {
  readonly api: Api;
  readonly organisation: number;
}

let organisations = 0;

/** Creates the organisations at once, with one connection to the database. */
async function newMembers(count: number): Promise<readonly Member[]> {
  const store = await openStore(database.url);
  const members = await Promise.all(
    Array.from({ length: count }, async (): Promise<Member> => {
      const created = await createOrganisation(store, `organisation ${++organisations}`, Date.now());
      assert.ok(created.kind === 'created');
      const { organisation, orgId } = created.organisation;
      const { apiKey } = await issueKey(store, {
        organisation,
        orgId,
        scopes: defaultScopes,
        name: null,
        expiresAtMs: null,
        nowMs: Date.now(),
      });
      return { api: apiOf(headgate.url, apiKey), organisation };
    }),
  );
  await store.close();
  return members;
}

/** Makes every write of the organisations to the tables wait until `letGo`. */
async function hangWrites(organisations: readonly number[], tables: readonly string[]): Promise<void> {
  await holder.query(`SELECT pg_advisory_lock(${LOCK})`);
  await holder.query(`CREATE OR REPLACE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.organisation IN (${organisations.join(', ')}) THEN
        PERFORM pg_advisory_xact_lock_shared(${LOCK});
      END IF;
      RETURN NEW;
    END $$`);
  for (const table of tables) {
    await holder.query(
      `CREATE OR REPLACE TRIGGER hang BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION hang()`,
    );
  }
}

async function letGo(): Promise<void> {
  await holder.query('ROLLBACK; SELECT pg_advisory_unlock_all()');
}

function interactionOn(shopId: string): Record<string, unknown> {
  return { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shopId, event_timestamp: 1_700_000_000 };
}

/** Repeats the call and returns the durations, sorted. */
async function timed(
  status: number,
  isOver: () => boolean,
  call: () => Promise<Reply<unknown>>,
): Promise<number[]> {
  const tookMs: number[] = [];
  while (!isOver()) {
    const startMs = performance.now();
    const reply = await call();
    tookMs.push(performance.now() - startMs);
    assert.equal(reply.status, status, reply.text);
    await sleep(20);
  }
  return tookMs.sort((a, b) => a - b);
}

/** Returns the durations of the neighbour's calls, which are repeated for a while. */
async function watch(neighbour: Api, shopId: string, forMs: number): Promise<ReadonlyMap<string, number[]>> {
  const deadlineMs = performance.now() + forMs;
  const isOver = (): boolean => performance.now() > deadlineMs;
  const calls: Record<string, readonly [number, () => Promise<Reply<unknown>>]> = {
    upload: [200, () => neighbour.upload('tags', [leastRecord('tags')])],
    get: [200, () => neighbour.read('shops', shopId)],
    list: [200, () => neighbour.list('shops')],
    interaction: [201, () => neighbour.record(interactionOn(shopId))],
    readiness: [200, () => neighbour.request('/readyz')],
  };
  return new Map(
    await Promise.all(
      Object.entries(calls).map(
        async ([name, [status, call]]) => [name, await timed(status, isOver, call)] as const,
      ),
    ),
  );
}

/** Fails unless the durations are the same as `usual`, apart from what a busy machine may add. */
function assertServed(
  usual: ReadonlyMap<string, number[]>,
  during: ReadonlyMap<string, number[]>,
  report: (message: string) => void,
): void {
  for (const [name, tookMs] of during) {
    const [median, p95, longest] = [0.5, 0.95, 1].map((part) => partOf(tookMs, part)) as [
      number,
      number,
      number,
    ];
    const shown = [median, p95, longest].map((ms) => ms.toFixed()).join(', ');
    report(`${name}: ${tookMs.length} calls, median, 95 % and longest ${shown} ms`);
    assert.ok(tookMs.length >= FEWEST_CALLS, `${name} was served ${tookMs.length} times`);
    const boundMs = SERVED_WITHIN_MS + 3 * partOf(usual.get(name)!, 0.95);
    assert.ok(p95 < boundMs, `${name} took ${p95} ms, not less than ${boundMs}`);
  }
}

function partOf(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!;
}

/** Sends without pause until it is over, whatever the responses are. */
function hammer(isOver: () => boolean, call: () => Promise<unknown>): Promise<void>[] {
  return Array.from({ length: HANGING_CONNECTIONS }, async () => {
    while (!isOver()) {
      await call();
      await sleep(50);
    }
  });
}

async function untilHanging(count: number): Promise<void> {
  await waitUntil(`${count} calls hang`, async () => {
    const [row] = await postgres.ask(
      database.name,
      `SELECT count(*)::integer AS hanging FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return (row!.hanging as number) >= count;
  });
}

describe('while the statements of another organisation hang', () => {
  test('uploads, reads, interactions and readiness of an organisation are served as usual', async (t) => {
    const [hanging, neighbour] = (await newMembers(2)) as [Member, Member];
    const shop = leastRecord('shops');
    for (const { api } of [hanging, neighbour]) assert.equal((await api.upload('shops', [shop])).status, 200);
    const shopId = idOf('shops', shop);
    const usual = await watch(neighbour.api, shopId, USUALLY_WATCHED_MS);
    await hangWrites([hanging.organisation], ['tags', 'interactions']);
    // Reading courses hangs, too. Only the hanging organisation uses them.
    await holder.query('BEGIN; LOCK TABLE courses IN ACCESS EXCLUSIVE MODE');
    let isOver = false;
    const load = [
      ...hammer(
        () => isOver,
        () => hanging.api.upload('tags', [leastRecord('tags')]),
      ),
      ...hammer(
        () => isOver,
        () => hanging.api.list('courses'),
      ),
      ...hammer(
        () => isOver,
        () => hanging.api.read('courses', shopId),
      ),
      ...hammer(
        () => isOver,
        () => hanging.api.record(interactionOn(shopId)),
      ),
    ];
    await untilHanging(6);
    const during = await watch(neighbour.api, shopId, WATCHED_MS).finally(async () => {
      isOver = true;
      await letGo();
      await Promise.all(load);
    });
    assertServed(usual, during, (message) => t.diagnostic(message));
    const records = [leastRecord('tags')];
    await waitUntil(
      'it is served again',
      async () => (await hanging.api.upload('tags', records)).status === 200,
    );
  });

  const segmentRequests = {
    'GET /v1/segments/a': [lookUpSlots, tooManyLookUps],
    'DELETE /v1/segments/a': [lookUpSlots, tooManyLookUps],
    'POST /v1/segments/a/refresh': [sqlSlots, tooManyQueries],
    'GET /v1/segments/a/members': [listSlots, tooManyLists],
    'GET /v1/segments/a/members/5f0c7a4e-2f0e-4a55-9d0c-0f3a6b1c2d3e': [sqlSlots, tooManyQueries],
    'GET /v1/segments/a/changes': [listSlots, tooManyLists],
    'GET /v1/reports/recommendations?holdout=a': [sqlSlots, tooManyQueries],
  } as const;
  for (const [name, [{ slots, mostWaiting }, { message }]] of Object.entries(segmentRequests)) {
    test(`only some requests of an organisation wait, and further ones are refused: ${name}`, async () => {
      const FURTHER = 5;
      const [hanging] = (await newMembers(1)) as [Member];
      await holder.query('BEGIN; LOCK TABLE segment_sets, segments IN ACCESS EXCLUSIVE MODE');
      const [method, path] = name.split(' ') as [string, string];
      let refused = 0;
      const requests = Array.from({ length: slots + mostWaiting + FURTHER }, async () => {
        const { body } = await hanging.api.request<RefusalBody>(path, { method });
        if (body.message === message) refused++;
      });
      await waitUntil('further requests are refused', () => refused >= FURTHER).finally(letGo);
      await Promise.all(requests);
    });
  }

  test('or the largest uploads of two others, an organisation uploads hundreds of records as usual', async (t) => {
    const [neighbour, ...hanging] = (await newMembers(3)) as [Member, Member, Member];
    await hangWrites(
      hanging.map(({ organisation }) => organisation),
      ['tags'],
    );
    const largest = Array.from({ length: 3000 }, () => leastRecord('tags', { name: 'x'.repeat(10_000) }));
    const uploads = hanging.map(({ api }) => api.upload('tags', largest));
    await untilHanging(hanging.length);
    const records = Array.from({ length: 500 }, () => leastRecord('tags'));
    const startedAtMs = performance.now();
    const reply = await neighbour.api.upload('tags', records).finally(letGo);
    const tookMs = performance.now() - startedAtMs;
    await Promise.all(uploads);
    t.diagnostic(`it took ${tookMs.toFixed()} ms`);
    assert.equal(reply.status, 200, reply.text);
    assert.ok(tookMs < SERVED_WITHIN_MS, `it took ${tookMs} ms`);
  });

  test('or of twenty others, an organisation is served once their first calls have timed out', async (t) => {
    const [neighbour, ...hanging] = (await newMembers(21)) as [Member, ...Member[]];
    const shop = leastRecord('shops');
    for (const { api } of [...hanging, neighbour])
      assert.equal((await api.upload('shops', [shop])).status, 200);
    const usual = await watch(neighbour.api, idOf('shops', shop), USUALLY_WATCHED_MS);
    await hangWrites(
      hanging.map(({ organisation }) => organisation),
      ['tags', 'interactions'],
    );
    let isOver = false;
    const statuses = new Map<number, number>();
    const load = hanging.map(async ({ api }) => {
      while (!isOver) {
        const { status } = await api.upload('tags', [leastRecord('tags')]);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        await sleep(50);
      }
    });
    await untilHanging(4);
    await waitUntil('the first calls are given up', () => (statuses.get(500) ?? 0) >= hanging.length);
    const during = await watch(neighbour.api, idOf('shops', shop), WATCHED_MS).finally(async () => {
      isOver = true;
      await letGo();
      await Promise.all(load);
    });
    t.diagnostic(`those that hang: ${JSON.stringify([...statuses])}`);
    assertServed(usual, during, (message) => t.diagnostic(message));
  });
});

test('a list that cannot be read in time gets 503, and can be requested again later', async () => {
  const [member] = (await newMembers(1)) as [Member];
  await holder.query('BEGIN; LOCK TABLE courses IN ACCESS EXCLUSIVE MODE');
  const reply = await member.api.request<RefusalBody>('/v1/data/courses').finally(letGo);
  assertRefusal(reply, 503, /^The list could not be read in time because the store is busy; try again/);
  assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.equal((await member.api.list('courses')).status, 200);
});
