// Makes, rotates and revokes API keys, which have the form `hg_<key id>_<secret>`. Only the SHA-256 hash of the secret
// is stored. Unlike a password, the secret needs no slow hash, because its 192 random bits cannot be guessed.

import { hash, randomBytes } from 'node:crypto';
import type { ApiKey, NewApiKey } from '../store/keys.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { Store } from '../store/store.ts';

const KEY_ID_BYTES = 6;
const SECRET_BYTES = 24;
const form = new RegExp(`^hg_([0-9a-f]{${2 * KEY_ID_BYTES}})_([0-9a-f]{${2 * SECRET_BYTES}})$`);
const keyIdForm = new RegExp(`^[0-9a-f]{${2 * KEY_ID_BYTES}}$`);

/** Returns the two parts of a key, or null if the text does not have the form of a key. */
export function parseKey(presented: string): { readonly keyId: string; readonly secret: string } | null {
  const parts = form.exec(presented);
  return parts === null ? null : { keyId: parts[1]!, secret: parts[2]! };
}

export function isKeyId(text: string): boolean {
  return keyIdForm.test(text);
}

export const HASH_CHARACTERS = 64;

/** Returns the hash in hexadecimal, as it is stored. Node's `hash` returns it three times as fast as bytes. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Returns why the key is no longer accepted, or null if the key is still accepted. */
export function endedBy(key: ApiKey, nowMs: number): 'expired' | 'revoked' | null {
  if (key.revokedAtMs !== null) return 'revoked';
  return key.expiresAtMs !== null && key.expiresAtMs <= nowMs ? 'expired' : null;
}

/** A `rotated` key has a successor, but is itself still accepted until it expires. */
export function statusOf(key: ApiKey, nowMs: number): 'active' | 'rotated' | 'expired' | 'revoked' {
  return endedBy(key, nowMs) ?? (key.replacedBy === null ? 'active' : 'rotated');
}

export interface IssuedKey {
  /** The whole key in plain text. It is never stored: show it once and discard it. */
  readonly apiKey: string;
  readonly key: ApiKey;
}

export interface KeyWish {
  readonly organisation: OrganisationNumber;
  readonly orgId: string;
  readonly scopes: readonly string[];
  readonly name: string | null;
  readonly expiresAtMs: number | null;
  readonly nowMs: number;
}

export async function issueKey(store: Pick<Store, 'addKey'>, wish: KeyWish): Promise<IssuedKey> {
  const issued = makeKey(wish);
  await store.addKey(withoutOrgId(issued.key));
  return issued;
}

export type RotatedKey =
  | ({ readonly kind: 'rotated'; readonly oldEndsAtMs: number } & IssuedKey)
  | { readonly kind: 'unknown' | 'revoked' | 'expired' }
  | { readonly kind: 'replaced'; readonly successorId: string };

/**
 * Issues a successor with the same name and scopes. The old key stays valid for `overlapMs`, but never past its own
 * expiry. The successor has the original lifetime of the old key, counted from now: the successor of a key that was
 * issued for 90 days is valid for 90 days.
 *
 * A key can be rotated only once, because rotation changes its expiry, and its original lifetime is then no longer
 * known.
 */
export async function rotateKey(
  store: Pick<Store, 'findKey' | 'replaceKey'>,
  keyId: string,
  overlapMs: number,
  nowMs: number,
): Promise<RotatedKey> {
  const old = await store.findKey(keyId);
  if (old === null) return { kind: 'unknown' };
  if (old.replacedBy !== null) return { kind: 'replaced', successorId: old.replacedBy };
  const ended = endedBy(old, nowMs);
  if (ended !== null) return { kind: ended };
  const issued = makeKey({
    organisation: old.organisation,
    orgId: old.orgId,
    scopes: old.scopes,
    name: old.name,
    expiresAtMs: old.expiresAtMs === null ? null : nowMs + (old.expiresAtMs - old.createdAtMs),
    nowMs,
  });
  const oldEndsAtMs = Math.min(nowMs + overlapMs, old.expiresAtMs ?? Number.POSITIVE_INFINITY);
  if (await store.replaceKey(keyId, oldEndsAtMs, withoutOrgId(issued.key))) {
    return { kind: 'rotated', oldEndsAtMs, ...issued };
  }
  // Another rotation of the same key was faster.
  const replaced = await store.findKey(keyId);
  return { kind: 'replaced', successorId: replaced!.replacedBy! };
}

export type RevokedKey =
  | { readonly kind: 'revoked' | 'already'; readonly key: ApiKey; readonly revokedAtMs: number }
  | { readonly kind: 'unknown' };

export async function revokeKey(
  store: Pick<Store, 'findKey' | 'revokeKey'>,
  keyId: string,
  nowMs: number,
): Promise<RevokedKey> {
  const key = await store.findKey(keyId);
  if (key === null) return { kind: 'unknown' };
  if (key.revokedAtMs !== null) return { kind: 'already', key, revokedAtMs: key.revokedAtMs };
  await store.revokeKey(keyId, nowMs);
  return { kind: 'revoked', key, revokedAtMs: nowMs };
}

function makeKey({ organisation, orgId, scopes, name, expiresAtMs, nowMs }: KeyWish): IssuedKey {
  const keyId = randomBytes(KEY_ID_BYTES).toString('hex');
  const secret = randomBytes(SECRET_BYTES).toString('hex');
  return {
    apiKey: `hg_${keyId}_${secret}`,
    key: {
      keyId,
      organisation,
      orgId,
      secretHash: hashSecret(secret),
      name,
      scopes,
      createdAtMs: nowMs,
      expiresAtMs,
      revokedAtMs: null,
      lastUsedAtMs: null,
      replacedBy: null,
    },
  };
}

function withoutOrgId({ orgId: _, ...key }: ApiKey): NewApiKey {
  return key;
}
