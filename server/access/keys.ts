// API keys: `hg_<key id>_<secret>`. The id finds the key; only the secret's SHA-256 is stored. A fast hash
// is enough here, where it would not be for a password: nobody can guess 192 random bits.

import { hash, randomBytes } from 'node:crypto';
import type { ApiKey, NewApiKey } from '../store/keys.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { Store } from '../store/store.ts';

const KEY_ID_BYTES = 6;
const SECRET_BYTES = 24;
const form = new RegExp(`^hg_([0-9a-f]{${2 * KEY_ID_BYTES}})_([0-9a-f]{${2 * SECRET_BYTES}})$`);
const keyIdForm = new RegExp(`^[0-9a-f]{${2 * KEY_ID_BYTES}}$`);

export interface PresentedKey {
  readonly keyId: string;
  readonly secret: string;
}

/** Null where the text cannot be a key of ours. */
export function parseKey(presented: string): PresentedKey | null {
  const parts = form.exec(presented);
  return parts === null ? null : { keyId: parts[1]!, secret: parts[2]! };
}

export function isKeyId(text: string): boolean {
  return keyIdForm.test(text);
}

export const HASH_CHARACTERS = 64;

/** In hex, as the store keeps it; it comes from the hash function three times as fast as bytes do. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Null while the key is accepted. */
export function endedBy(key: ApiKey, nowMs: number): 'expired' | 'revoked' | null {
  if (key.revokedAtMs !== null) return 'revoked';
  return key.expiresAtMs !== null && key.expiresAtMs <= nowMs ? 'expired' : null;
}

/** A `rotated` key is still accepted, beside its successor. */
export type KeyStatus = 'active' | 'rotated' | 'expired' | 'revoked';

export function statusOf(key: ApiKey, nowMs: number): KeyStatus {
  return endedBy(key, nowMs) ?? (key.replacedBy === null ? 'active' : 'rotated');
}

export interface IssuedKey {
  /** The whole key in plain text. It exists only here: show it, and let go of it. */
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
 * Issues a successor with the same name and scopes, and lets the old key live for the overlap, though never
 * past its own expiry. The successor lives as long as the old key was meant to, counted from now: a key made
 * for 90 days is followed by one of 90 days. With the old key's own last day it would soon have to be rotated
 * again, and without any it would quietly outlive what the operator had decided.
 *
 * A key is rotated once. From then on its expiry is the end of the overlap and no longer tells how long it was
 * meant to live.
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
  // Another rotation was a moment faster.
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
