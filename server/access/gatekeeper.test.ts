import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { ApiKey } from '../store/keys.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { type Clock, Gatekeeper } from './gatekeeper.ts';
import { type IssuedKey, issueKey, revokeKey, rotateKey } from './keys.ts';
import { defaultScopes } from './scopes.ts';
import { temporaryStore } from './temporary-store.ts';

const { store, newOrganisation, openAgain } = await temporaryStore({ after });
const elsewhere = await openAgain();

/** A clock that advances only when a test moves it. */
class HandClock implements Clock {
  #nowMs = Date.parse('2026-03-01T00:00:00Z');
  nowMs = (): number => this.#nowMs;
  elapsedMs = (): number => this.#nowMs;
  forward(ms: number): void {
    this.#nowMs += ms;
  }
}

/** The real store. It counts reads, and is unavailable while `isDown` is set. */
class WatchedStore {
  reads = 0;
  isDown = false;
  #underway = new Set<Promise<unknown>>();
  readonly #store: Store;
  constructor(store: Store) {
    this.#store = store;
  }
  async findKey(keyId: string): Promise<ApiKey | null> {
    this.reads++;
    if (this.isDown) throw new StoreUnavailable('the disk is away');
    const read = this.#store.findKey(keyId);
    this.#underway.add(read);
    return read.finally(() => this.#underway.delete(read));
  }
  async quiet(): Promise<void> {
    while (this.#underway.size > 0) await Promise.all(this.#underway);
    await new Promise(setImmediate);
  }
  async noteKeysUsed(lastUsedAtMs: ReadonlyMap<string, number>): Promise<void> {
    if (this.isDown) throw new StoreUnavailable('the disk is away');
    await this.#store.noteKeysUsed(lastUsedAtMs);
  }
}

async function setUp() {
  const { organisation, orgId } = await newOrganisation();
  const clock = new HandClock();
  const watched = new WatchedStore(store);
  const errors: unknown[] = [];
  const gatekeeper = new Gatekeeper(watched, (error) => errors.push(error), clock);
  const issue = (expiresAtMs: number | null = null): Promise<IssuedKey> =>
    issueKey(elsewhere, {
      organisation,
      orgId,
      scopes: defaultScopes,
      name: null,
      expiresAtMs,
      nowMs: clock.nowMs(),
    });
  return { gatekeeper, clock, watched, errors, issue };
}

/** Asserts that a result came from memory: such a result is not a promise. */
function fromMemory(identified: ReturnType<Gatekeeper['identify']>): ApiKey | null {
  assert.ok(!(identified instanceof Promise), 'the key was read from the store');
  return identified;
}

/** Resolves when reads in the background have ended. Asserts that `reads` were made in total. */
async function settle(watched: WatchedStore, reads: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(watched.reads, reads);
  await watched.quiet();
}

function withOtherSecret(apiKey: string): string {
  return apiKey.slice(0, -1) + (apiKey.endsWith('0') ? '1' : '0');
}

test('a key that another process has just issued is accepted, and then served from memory', async () => {
  const { gatekeeper, watched, issue } = await setUp();
  const { apiKey, key } = await issue();
  assert.deepEqual(await gatekeeper.identify(apiKey), key);
  assert.deepEqual(fromMemory(gatekeeper.identify(apiKey)), key);
  assert.equal(watched.reads, 1);
});

test('a wrong secret is refused, before and after the key is in memory', async () => {
  const { gatekeeper, watched, issue } = await setUp();
  const { apiKey } = await issue();
  assert.equal(await gatekeeper.identify(withOtherSecret(apiKey)), null);
  assert.equal(fromMemory(gatekeeper.identify(withOtherSecret(apiKey))), null);
  assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null);
  assert.equal(watched.reads, 1);
});

test('a malformed key never reaches the store', async () => {
  const { gatekeeper, watched, issue } = await setUp();
  const { apiKey } = await issue();
  for (const text of ['', 'hg_', 'x'.repeat(100_000), apiKey.toUpperCase(), `${apiKey}0`, apiKey.slice(1)]) {
    assert.equal(fromMemory(gatekeeper.identify(text)), null);
  }
  assert.equal(watched.reads, 0);
});

test('simultaneous first requests of a key share one read', async () => {
  const { gatekeeper, watched, issue } = await setUp();
  const { apiKey, key } = await issue();
  const identified = await Promise.all(Array.from({ length: 50 }, () => gatekeeper.identify(apiKey)));
  assert.deepEqual(identified, Array(50).fill(key));
  assert.equal(watched.reads, 1);
});

test('a revocation by another process takes effect within five seconds under steady requests', async () => {
  const { gatekeeper, clock, watched, issue } = await setUp();
  const { apiKey, key } = await issue();
  await gatekeeper.identify(apiKey);
  await revokeKey(elsewhere, key.keyId, clock.nowMs());
  assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null);
  clock.forward(1000);
  assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null, 'the key is read again in the background');
  fromMemory(gatekeeper.identify(apiKey));
  await settle(watched, 2);
  assert.equal(fromMemory(gatekeeper.identify(apiKey)), null);
});

test('a revocation by another process takes effect for a key that was not used since', async () => {
  const { gatekeeper, clock, issue } = await setUp();
  const { apiKey, key } = await issue();
  await gatekeeper.identify(apiKey);
  await revokeKey(elsewhere, key.keyId, clock.nowMs());
  clock.forward(4000);
  const identified = gatekeeper.identify(apiKey);
  assert.ok(identified instanceof Promise, 'an entry that is four seconds old is not used');
  assert.equal(await identified, null);
});

test('after a rotation by another process both keys work until the overlap ends', async () => {
  const { gatekeeper, clock, watched, issue } = await setUp();
  const old = await issue();
  await gatekeeper.identify(old.apiKey);
  const rotated = await rotateKey(elsewhere, old.key.keyId, 3000, clock.nowMs());
  assert.ok(rotated.kind === 'rotated');
  assert.deepEqual(await gatekeeper.identify(rotated.apiKey), rotated.key);
  clock.forward(1000);
  assert.notEqual(fromMemory(gatekeeper.identify(old.apiKey)), null);
  await settle(watched, 3);
  clock.forward(1999);
  assert.notEqual(fromMemory(gatekeeper.identify(old.apiKey)), null);
  await settle(watched, 4);
  clock.forward(1);
  assert.equal(fromMemory(gatekeeper.identify(old.apiKey)), null, 'the expiry is checked at each use');
  assert.notEqual(await gatekeeper.identify(rotated.apiKey), null);
});

test('an expired key is refused at the moment it expires, without another read', async () => {
  const { gatekeeper, clock, watched, issue } = await setUp();
  const { apiKey } = await issue(clock.nowMs() + 500);
  assert.notEqual(await gatekeeper.identify(apiKey), null);
  clock.forward(499);
  assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null);
  clock.forward(1);
  assert.equal(fromMemory(gatekeeper.identify(apiKey)), null);
  assert.equal(watched.reads, 1);
});

test('an unknown key id is looked up at most once a second', async () => {
  const { gatekeeper, clock, watched } = await setUp();
  const madeUp = `hg_0123456789ab_${'0'.repeat(48)}`;
  assert.equal(await gatekeeper.identify(madeUp), null);
  for (let i = 0; i < 100; i++) assert.equal(fromMemory(gatekeeper.identify(madeUp)), null);
  assert.equal(watched.reads, 1);
  clock.forward(1000);
  assert.equal(await gatekeeper.identify(madeUp), null);
  assert.equal(watched.reads, 2);
});

test('during a flood of made-up key ids, known keys and newly used keys are accepted', async () => {
  const { gatekeeper, clock, issue } = await setUp();
  const { apiKey } = await issue();
  const { apiKey: unusedKey } = await issue();
  await gatekeeper.identify(apiKey);
  const madeUp = (i: number): string => `hg_${i.toString(16).padStart(12, '0')}_${'0'.repeat(48)}`;
  const flood = Array.from({ length: 1000 }, (_, i) => gatekeeper.identify(madeUp(i)));
  assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null);
  clock.forward(4000);
  assert.notEqual(await gatekeeper.identify(apiKey), null, 'a known key is read again in spite of the flood');
  assert.notEqual(
    await gatekeeper.identify(unusedKey),
    null,
    'a key is read for the first time in spite of the flood',
  );
  assert.ok((await Promise.all(flood)).every((found) => found === null));
});

test('while the store is unavailable, a key in memory works for four seconds, then fails', async () => {
  const { gatekeeper, clock, watched, issue } = await setUp();
  const { apiKey, key } = await issue();
  await gatekeeper.identify(apiKey);
  watched.isDown = true;
  clock.forward(3000);
  for (let i = 0; i < 10; i++) {
    assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null);
    await new Promise(setImmediate);
  }
  assert.equal(watched.reads, 2, 'a failed read in the background is not repeated at once');
  clock.forward(1000);
  await assert.rejects(async () => gatekeeper.identify(apiKey), StoreUnavailable);
  await assert.rejects(async () => gatekeeper.identify(apiKey), StoreUnavailable);
  watched.isDown = false;
  assert.deepEqual(await gatekeeper.identify(apiKey), key);
});

/** Returns a gatekeeper whose reads of keys resolve when the test resolves them. */
async function setUpSlow() {
  const { organisation, orgId } = await newOrganisation();
  const clock = new HandClock();
  const { apiKey, key } = await issueKey(store, {
    organisation,
    orgId,
    scopes: defaultScopes,
    name: null,
    expiresAtMs: null,
    nowMs: clock.nowMs(),
  });
  const answers: ((key: ApiKey | null) => void)[] = [];
  const slow = {
    findKey: () => new Promise<ApiKey | null>((resolve) => answers.push(resolve)),
    noteKeysUsed: store.noteKeysUsed,
  };
  const gatekeeper = new Gatekeeper(slow, assert.ifError, clock);
  return { gatekeeper, clock, answers, apiKey, key };
}

test('the result of a read that began too long ago is not used', async () => {
  const { gatekeeper, clock, answers, apiKey, key } = await setUpSlow();
  const early = gatekeeper.identify(apiKey);
  clock.forward(4000);
  const late = gatekeeper.identify(apiKey);
  assert.equal(answers.length, 2);
  answers[1]!({ ...key, revokedAtMs: clock.nowMs() });
  assert.equal(await late, null);
  answers[0]!(key);
  assert.equal(await early, null, 'the result of the newer read counts');
  assert.equal(fromMemory(gatekeeper.identify(apiKey)), null);
});

test('a slow store has one read of a key at a time, and a request that must wait shares it', async () => {
  const { gatekeeper, clock, answers, apiKey, key } = await setUpSlow();
  const first = gatekeeper.identify(apiKey);
  answers[0]!(key);
  await first;
  for (const _ of [1, 2, 3]) {
    clock.forward(1000);
    assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null);
    assert.equal(answers.length, 2);
  }
  clock.forward(1000);
  const waiting = gatekeeper.identify(apiKey);
  assert.equal(answers.length, 2);
  answers[1]!(key);
  assert.deepEqual(await waiting, key);
});

test('the last use of a key is stored, also at close, and a refused request does not count', async () => {
  const { gatekeeper, clock, issue } = await setUp();
  const used = await issue();
  const refused = await issue();
  const lastUse = async ({ key }: IssuedKey) => (await elsewhere.findKey(key.keyId))?.lastUsedAtMs;
  await gatekeeper.identify(used.apiKey);
  await gatekeeper.identify(withOtherSecret(refused.apiKey));
  await gatekeeper.noteUse();
  assert.equal(await lastUse(used), clock.nowMs());
  assert.equal(await lastUse(refused), null);
  clock.forward(10);
  gatekeeper.identify(used.apiKey);
  await gatekeeper.close();
  assert.equal(await lastUse(used), clock.nowMs());
});

test('if the last use of a key cannot be stored, the error is reported and it is stored later', async () => {
  const { gatekeeper, clock, watched, errors, issue } = await setUp();
  const { apiKey, key } = await issue();
  await gatekeeper.identify(apiKey);
  watched.isDown = true;
  await gatekeeper.noteUse();
  assert.equal(errors.length, 1);
  assert.ok(errors[0] instanceof StoreUnavailable);
  watched.isDown = false;
  await gatekeeper.noteUse();
  assert.equal((await elsewhere.findKey(key.keyId))?.lastUsedAtMs, clock.nowMs());
  assert.equal(errors.length, 1);
});
