// The store interface for API keys.

import type { OrganisationNumber } from './rows.ts';

export interface ApiKey {
  readonly keyId: string;
  readonly organisation: OrganisationNumber;
  readonly orgId: string;
  /** SHA-256 of the secret, in hex. The secret itself is not stored. */
  readonly secretHash: string;
  readonly name: string | null;
  readonly scopes: readonly string[];
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  /** The id of the key that replaced this one. A key has at most one successor. */
  readonly replacedBy: string | null;
}

/** A key to be added. It has no `orgId`, because its `organisation` determines that. */
export type NewApiKey = Omit<ApiKey, 'orgId'>;

export interface KeyStore {
  addKey(key: NewApiKey): Promise<void>;
  /** With `isKnown`, a key that was found before does not wait behind look-ups of keys that may not exist. */
  findKey(keyId: string, isKnown?: boolean): Promise<ApiKey | null>;
  /** Returns the organisation's keys, oldest first. */
  keysOf(organisation: OrganisationNumber): Promise<readonly ApiKey[]>;
  /**
   * Adds the successor and stores its id in the old key. The old key then expires at `endsAtMs`, or at its own expiry
   * if that is sooner. Returns false and changes nothing if the old key already has a successor, so that only one of
   * two concurrent calls succeeds.
   */
  replaceKey(keyId: string, endsAtMs: number, successor: NewApiKey): Promise<boolean>;
  /** Revokes the key. A key that was already revoked keeps the time of its first revocation. */
  revokeKey(keyId: string, revokedAtMs: number): Promise<void>;
  /** Sets the last-used time of each key, unless a later time is already stored. */
  noteKeysUsed(lastUsedAtMs: ReadonlyMap<string, number>): Promise<void>;
}
