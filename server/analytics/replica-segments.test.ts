// Tests that the members of segments in a replica are those in the store.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openStore } from '../store/open-store.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { Replica } from './replica.ts';

const ORG_ID = randomUUID();
const PATIENCE_MS = 5000;
const [ada, ben, cem] = [randomUUID(), randomUUID(), randomUUID()];

let folder: string;
let store: Store & { close(): Promise<void> };
let organisation: OrganisationNumber;

const newStore = async (name: string) => {
  const opened = await openStore(join(folder, name));
  const made = await opened.createOrganisation(ORG_ID, 'acme', Date.now());
  return { opened, number: made!.organisation };
};

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-replica-segments-'));
  ({ opened: store, number: organisation } = await newStore('store.db'));
});
after(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const openReplica = (path: string, of: Store = store): Replica => {
  const options = {
    memoryMb: 200,
    temporaryMb: 500,
    threads: 1,
    temporaryFolder: join(folder, 'tmp'),
    exportFolder: join(folder, 'export'),
  };
  return new Replica(join(folder, path), options, of, organisation, () => {});
};

const save = async (name: string, to: Store = store): Promise<void> => {
  const { revision } = await to.segments(organisation);
  const definition = { name, note: null, conditionJson: '{}', uses: [] };
  assert.ok(await to.saveSegment(organisation, revision, definition, Date.now()));
};

const evaluate = async (
  name: string,
  entered: string[],
  left: string[],
  to: Store = store,
): Promise<void> => {
  const { segments } = await to.segments(organisation);
  const { segment, lastSeq } = segments.find((one) => one.name === name)!;
  const key = { organisation, segment, token: randomUUID() };
  assert.ok(await to.beginEvaluation(key, Date.now()));
  const changes = [
    ...entered.map((customerId) => ({ customerId, hasEntered: true })),
    ...left.map((customerId) => ({ customerId, hasEntered: false })),
  ];
  assert.ok(await to.writeMemberChanges(key, lastSeq + 1, changes, Date.now()));
  const counts = { entered: entered.length, left: left.length };
  assert.ok(await to.finishEvaluation(key, { atMs: Date.now(), ms: 1, ...counts }));
};

const membersIn = async (replica: Replica): Promise<unknown[][]> => {
  await replica.catchUp(await replica.wanted(), PATIENCE_MS);
  const connection = await replica.connect();
  try {
    const found = await connection.runAndReadAll(
      'SELECT segment, customer_id::VARCHAR FROM segment_members ORDER BY ALL',
    );
    return found.getRows();
  } finally {
    replica.disconnect(connection);
  }
};

const sorted = (...rows: [string, string][]): [string, string][] => rows.sort();

test('members enter and leave, and go with their segment', async () => {
  const replica = openReplica('follows.duckdb');
  await save('a');
  await save('b');
  await evaluate('a', [ada, ben], []);
  await evaluate('b', [ada], []);
  assert.deepEqual(await membersIn(replica), sorted(['a', ada], ['a', ben], ['b', ada]));
  await evaluate('a', [cem], [ada]);
  assert.deepEqual(await membersIn(replica), sorted(['a', ben], ['a', cem], ['b', ada]));
  const { revision } = await store.segments(organisation);
  assert.ok(await store.deleteSegment(organisation, revision, 'a'));
  await save('a');
  await evaluate('a', [ada], []);
  assert.deepEqual(await membersIn(replica), sorted(['a', ada], ['b', ada]));
  await replica.close();
});

test('a segment that is saved or deleted while the replica catches up is not waited for', async () => {
  for (const change of ['save', 'delete'] as const) {
    let calls = 0;
    const changing: Store = Object.assign(Object.create(store) as Store, {
      async segments(of: OrganisationNumber) {
        const set = await store.segments(of);
        calls++;
        if (calls > 1) return set;
        if (change === 'save') await save('during');
        else await store.deleteSegment(of, set.revision, 'during');
        return set;
      },
    });
    const replica = openReplica(`${change}.duckdb`, changing);
    await replica.catchUp(await replica.wanted(), PATIENCE_MS);
    assert.equal(calls, 2);
    await replica.close();
  }
});

test('a member leaves although the departure expires while the replica catches up', async () => {
  const replica = openReplica('expired.duckdb');
  await save('expiring');
  await evaluate('expiring', [ada, ben], []);
  const expiringMembers = async (): Promise<unknown[][]> =>
    (await membersIn(replica)).filter(([segment]) => segment === 'expiring');
  assert.deepEqual(await expiringMembers(), sorted(['expiring', ada], ['expiring', ben]));
  await evaluate('expiring', [], [ada]);
  await evaluate('expiring', [cem], []);
  const { memberChanges } = store;
  store.memberChanges = async (...args) => {
    await store.expireMemberships(Date.now() + 1000);
    return memberChanges.apply(store, args);
  };
  try {
    assert.deepEqual(await expiringMembers(), sorted(['expiring', ben], ['expiring', cem]));
  } finally {
    store.memberChanges = memberChanges;
  }
  await replica.close();
});

test('members are copied again if the store was restored from a backup', async () => {
  const { opened: original } = await newStore('original.db');
  await save('a', original);
  await evaluate('a', [ada, ben, cem], [], original);
  await save('b', original);
  await evaluate('b', [ben], [], original);
  const replica = openReplica('restored.duckdb', original);
  assert.equal((await membersIn(replica)).length, 4);
  await replica.close();
  await original.close();

  const { opened: restored } = await newStore('restored.db');
  await save('a', restored);
  await evaluate('a', [ada], [], restored);
  await save('c', restored);
  await evaluate('c', [ada], [], restored);
  const reopened = openReplica('restored.duckdb', restored);
  assert.deepEqual(await membersIn(reopened), sorted(['a', ada], ['c', ada]));
  await reopened.close();
  await restored.close();
});
