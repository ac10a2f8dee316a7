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

/** Time that stands still until it is moved. */
class HandClock implements Clock {
  #nowMs = Date.parse('2026-03-01T00:00:00Z');
  nowMs = (): number => this.#nowMs;
  elapsedMs = (): number => this.#nowMs;
  forward(ms: number): void {
    this.#nowMs += ms;
  }
}

/** The real store, its reads counted, and unavailable on demand. */
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
  const gatekeeper = new Gatekeeper(watched, { clock, onError: (error) => errors.push(error) });
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

/** What comes from memory is no promise. */
function fromMemory(identified: ReturnType<Gatekeeper['identify']>): ApiKey | null {
  assert.ok(!(identified instanceof Promise), 'the store was asked');
  return identified;
}

/** Until reads in the background have ended; they must be this many by now. */
async function settle(watched: WatchedStore, reads: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(watched.reads, reads);
  await watched.quiet();
}

function withOtherSecret(apiKey: string): string {
  return apiKey.slice(0, -1) + (apiKey.endsWith('0') ? '1' : '0');
}

test('a key issued by another process a moment ago is known at once, and then without a wait', async () => {
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

test('a revocation elsewhere holds within five seconds under steady requests', async () => {
  const { gatekeeper, clock, watched, issue } = await setUp();
  const { apiKey, key } = await issue();
  await gatekeeper.identify(apiKey);
  await revokeKey(elsewhere, key.keyId, clock.nowMs());
  assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null);
  clock.forward(1000);
  assert.notEqual(fromMemory(gatekeeper.identify(apiKey)), null, 'it is read again in the background');
  fromMemory(gatekeeper.identify(apiKey));
  await settle(watched, 2);
  assert.equal(fromMemory(gatekeeper.identify(apiKey)), null);
});

test('a revocation elsewhere holds for a key that was not used meanwhile', async () => {
  const { gatekeeper, clock, issue } = await setUp();
  const { apiKey, key } = await issue();
  await gatekeeper.identify(apiKey);
  await revokeKey(elsewhere, key.keyId, clock.nowMs());
  clock.forward(4000);
  const identified = gatekeeper.identify(apiKey);
  assert.ok(identified instanceof Promise, 'an entry of this age is not used');
  assert.equal(await identified, null);
});

test('after a rotation elsewhere both keys work through the overlap, then only the successor', async () => {
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
  assert.equal(fromMemory(gatekeeper.identify(old.apiKey)), null, 'its end is checked at use');
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

test('an unknown key id is asked for once a second at most', async () => {
  const { gatekeeper, clock, watched } = await setUp();
  const madeUp = `hg_0123456789ab_${'0'.repeat(48)}`;
  assert.equal(await gatekeeper.identify(madeUp), null);
  for (let i = 0; i < 100; i++) assert.equal(fromMemory(gatekeeper.identify(madeUp)), null);
  assert.equal(watched.reads, 1);
  clock.forward(1000);
  assert.equal(await gatekeeper.identify(madeUp), null);
  assert.equal(watched.reads, 2);
});

test('a flood of made-up key ids refuses neither a known key nor the first use of another', async () => {
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

test('while the store is away a key in memory works for four seconds, then its failure is told', async () => {
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

/** A gatekeeper whose store answers when the test says so. */
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
  const gatekeeper = new Gatekeeper(slow, { clock, onError: assert.ifError });
  return { gatekeeper, clock, answers, apiKey, key };
}

test('a read that began too long ago is not trusted, however late it answers', async () => {
  const { gatekeeper, clock, answers, apiKey, key } = await setUpSlow();
  const early = gatekeeper.identify(apiKey);
  clock.forward(4000);
  const late = gatekeeper.identify(apiKey);
  assert.equal(answers.length, 2);
  answers[1]!({ ...key, revokedAtMs: clock.nowMs() });
  assert.equal(await late, null);
  answers[0]!(key);
  assert.equal(await early, null, 'the newer answer is the one that counts');
  assert.equal(fromMemory(gatekeeper.identify(apiKey)), null);
});

test('a slow store is read by one request at a time, and the one that must wait joins it', async () => {
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

test('the last use of a key is noted, also at the close, and refusals are not', async () => {
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

test('a last use that could not be written is reported and written later', async () => {
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
