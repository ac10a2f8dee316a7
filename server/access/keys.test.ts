import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import type { ApiKey } from '../store/keys.ts';
import type { Organisation } from '../store/organisations.ts';
import { endedBy, type IssuedKey, issueKey, parseKey, revokeKey, rotateKey, statusOf } from './keys.ts';
import { temporaryStore } from './temporary-store.ts';

const { store, folder, newOrganisation } = await temporaryStore({ after });

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-03-01T00:00:00Z');

function issueTo({ organisation, orgId }: Organisation, wish: Partial<ApiKey> = {}): Promise<IssuedKey> {
  const { scopes = ['data:read'], name = null, expiresAtMs = null, createdAtMs: nowMs = NOW_MS } = wish;
  return issueKey(store, { organisation, orgId, scopes, name, expiresAtMs, nowMs });
}

test('an issued key has the documented form, is unique, and is stored as it was returned', async () => {
  const acme = await newOrganisation();
  const first = await issueTo(acme, { name: 'nightly', expiresAtMs: NOW_MS + DAY_MS });
  const second = await issueTo(acme);
  assert.match(first.apiKey, /^hg_[0-9a-f]{12}_[0-9a-f]{48}$/);
  assert.notEqual(first.apiKey.slice(-48), second.apiKey.slice(-48));
  assert.notEqual(first.key.keyId, second.key.keyId);
  assert.deepEqual(await store.findKey(first.key.keyId), first.key);
  assert.deepEqual(first.key, {
    keyId: first.apiKey.slice(3, 15),
    organisation: acme.organisation,
    orgId: acme.orgId,
    secretHash: createHash('sha256').update(first.apiKey.slice(16)).digest('hex'),
    name: 'nightly',
    scopes: ['data:read'],
    createdAtMs: NOW_MS,
    expiresAtMs: NOW_MS + DAY_MS,
    revokedAtMs: null,
    lastUsedAtMs: null,
    replacedBy: null,
  });
});

test('no file of the database contains the secret', async () => {
  const acme = await newOrganisation();
  const { apiKey, key } = await issueTo(acme);
  const secret = apiKey.slice(16);
  const files = await Promise.all((await readdir(folder)).map((name) => readFile(`${folder}/${name}`)));
  assert.ok(
    files.some((bytes) => bytes.includes(key.keyId)),
    'no file contains the key id, so the wrong files were read',
  );
  for (const bytes of files) {
    assert.equal(bytes.includes(secret), false);
    assert.equal(bytes.includes(Buffer.from(secret, 'hex')), false);
  }
});

test('a text that does not have the form of a key is not parsed as one', () => {
  const whole = `hg_0123456789ab_${'0'.repeat(48)}`;
  assert.deepEqual(parseKey(whole), { keyId: '0123456789ab', secret: '0'.repeat(48) });
  for (const text of [
    '',
    'hg_',
    whole.toUpperCase(),
    `${whole}0`,
    whole.slice(0, -1),
    ` ${whole}`,
    `${whole}\n`,
  ]) {
    assert.equal(parseKey(text), null, JSON.stringify(text));
  }
});

test('a key is active until the moment it expires, and revoked from the moment it is revoked', async () => {
  const acme = await newOrganisation();
  const { key } = await issueTo(acme, { expiresAtMs: NOW_MS + 10 });
  assert.equal(statusOf(key, NOW_MS + 9), 'active');
  assert.equal(statusOf(key, NOW_MS + 10), 'expired');
  assert.equal(statusOf({ ...key, revokedAtMs: NOW_MS }, NOW_MS + 20), 'revoked');
});

test('a replaced key has the status "rotated" and is accepted until it expires', async () => {
  const acme = await newOrganisation();
  const { key } = await issueTo(acme, { expiresAtMs: NOW_MS + 10 });
  const replaced = { ...key, replacedBy: '0123456789ab' };
  assert.equal(statusOf(replaced, NOW_MS + 9), 'rotated');
  assert.equal(endedBy(replaced, NOW_MS + 9), null);
  assert.equal(statusOf(replaced, NOW_MS + 10), 'expired');
  assert.equal(statusOf({ ...replaced, revokedAtMs: NOW_MS }, NOW_MS + 9), 'revoked');
});

test('a successor copies name, scopes and organisation; the old key expires after the overlap', async () => {
  const acme = await newOrganisation();
  const old = await issueTo(acme, { name: 'nightly', scopes: ['data:write:shops', 'data:read'] });
  const rotated = await rotateKey(store, old.key.keyId, DAY_MS, NOW_MS + 5);
  assert.ok(rotated.kind === 'rotated');
  const { keyId, secretHash, ...rest } = rotated.key;
  assert.notEqual(keyId, old.key.keyId);
  assert.notEqual(secretHash, old.key.secretHash);
  const { keyId: _, secretHash: __, ...oldRest } = old.key;
  assert.deepEqual(rest, { ...oldRest, createdAtMs: NOW_MS + 5 });
  assert.deepEqual(await store.findKey(keyId), rotated.key);
  assert.equal(rotated.oldEndsAtMs, NOW_MS + 5 + DAY_MS);
  assert.deepEqual(await store.findKey(old.key.keyId), {
    ...old.key,
    expiresAtMs: NOW_MS + 5 + DAY_MS,
    replacedBy: keyId,
  });
});

test('the successor of a 90-day key is valid for 90 days, and an earlier expiry is kept', async () => {
  const acme = await newOrganisation();
  const old = await issueTo(acme, { expiresAtMs: NOW_MS + 90 * DAY_MS });
  const nearTheEndMs = NOW_MS + 90 * DAY_MS - 1000;
  const rotated = await rotateKey(store, old.key.keyId, DAY_MS, nearTheEndMs);
  assert.ok(rotated.kind === 'rotated');
  assert.equal(rotated.key.expiresAtMs, nearTheEndMs + 90 * DAY_MS);
  assert.equal(rotated.oldEndsAtMs, NOW_MS + 90 * DAY_MS);
  assert.equal((await store.findKey(old.key.keyId))?.expiresAtMs, NOW_MS + 90 * DAY_MS);
});

test('a second rotation of a key names its successor, which can be rotated in turn', async () => {
  const acme = await newOrganisation();
  const old = await issueTo(acme, { expiresAtMs: NOW_MS + 90 * DAY_MS });
  const first = await rotateKey(store, old.key.keyId, DAY_MS, NOW_MS + 5);
  assert.ok(first.kind === 'rotated');
  const before = await store.keysOf(acme.organisation);
  const { keyId } = first.key;
  for (const laterMs of [6, 2 * DAY_MS]) {
    assert.deepEqual(await rotateKey(store, old.key.keyId, DAY_MS, NOW_MS + laterMs), {
      kind: 'replaced',
      successorId: keyId,
    });
  }
  assert.deepEqual(await store.keysOf(acme.organisation), before);
  const second = await rotateKey(store, keyId, DAY_MS, NOW_MS + 10);
  assert.ok(second.kind === 'rotated');
  assert.equal(second.key.expiresAtMs, NOW_MS + 10 + 90 * DAY_MS);
});

test('of two simultaneous rotations one succeeds, and the other names the successor', async () => {
  const acme = await newOrganisation();
  const { key } = await issueTo(acme);
  const rotations = await Promise.all([1, 2].map(() => rotateKey(store, key.keyId, DAY_MS, NOW_MS)));
  const won = rotations.find((rotation) => rotation.kind === 'rotated');
  assert.ok(won?.kind === 'rotated');
  assert.deepEqual(
    rotations.filter((rotation) => rotation !== won),
    [{ kind: 'replaced', successorId: won.key.keyId }],
  );
  assert.equal((await store.keysOf(acme.organisation)).length, 2);
});

test('an unknown, revoked or expired key is not rotated, and nothing is issued', async () => {
  const acme = await newOrganisation();
  const revoked = await issueTo(acme);
  await revokeKey(store, revoked.key.keyId, NOW_MS);
  const expired = await issueTo(acme, { expiresAtMs: NOW_MS + 1 });
  assert.deepEqual(await rotateKey(store, '000000000000', 0, NOW_MS), { kind: 'unknown' });
  assert.deepEqual(await rotateKey(store, revoked.key.keyId, 0, NOW_MS + 1), { kind: 'revoked' });
  assert.deepEqual(await rotateKey(store, expired.key.keyId, 0, NOW_MS + 1), { kind: 'expired' });
  assert.equal((await store.keysOf(acme.organisation)).length, 2);
});

test('a second revocation keeps the time of the first, and an unknown key is reported', async () => {
  const acme = await newOrganisation();
  const { key } = await issueTo(acme);
  assert.deepEqual(await revokeKey(store, key.keyId, NOW_MS + 1), {
    kind: 'revoked',
    key,
    revokedAtMs: NOW_MS + 1,
  });
  const again = await revokeKey(store, key.keyId, NOW_MS + 2);
  assert.ok(again.kind === 'already');
  assert.equal(again.revokedAtMs, NOW_MS + 1);
  assert.equal((await store.findKey(key.keyId))?.revokedAtMs, NOW_MS + 1);
  assert.deepEqual(await revokeKey(store, '000000000000', NOW_MS), { kind: 'unknown' });
});
