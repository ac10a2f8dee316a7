// The port for API keys.

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
  /** The id of the successor that it was rotated to. A key has at most one. */
  readonly replacedBy: string | null;
}

/** A key as it is added: the organisation's id comes from the organisation. */
export type NewApiKey = Omit<ApiKey, 'orgId'>;

export interface KeyStore {
  addKey(key: NewApiKey): Promise<void>;
  findKey(keyId: string): Promise<ApiKey | null>;
  /** Returns the oldest first. */
  keysOf(organisation: OrganisationNumber): Promise<readonly ApiKey[]>;
  /**
   * Adds the successor, and notes it on the old key, which ends at the given moment or at its own end, whichever
   * is sooner. Returns false and changes nothing if the key already has a successor: of two calls at once, one wins.
   */
  replaceKey(keyId: string, endsAtMs: number, successor: NewApiKey): Promise<boolean>;
  /** Keeps the first moment if the key was already revoked. */
  revokeKey(keyId: string, revokedAtMs: number): Promise<void>;
  /** Moves last-used times forward, never back. */
  noteKeysUsed(lastUsedAtMs: ReadonlyMap<string, number>): Promise<void>;
}
