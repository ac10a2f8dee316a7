// The port for idempotency records: a response that is stored in the transaction of the request that it belongs to, so
// that the same request gets it again instead of being carried out twice.

import type { OrganisationNumber, Tally } from './rows.ts';

/** What an idempotency key stands for: one organisation's key on one path. */
export interface IdempotencyRecordKey {
  readonly organisation: OrganisationNumber;
  readonly path: string;
  readonly key: string;
}

export interface IdempotencyRecord extends IdempotencyRecordKey {
  /** Differs between different request bodies. */
  readonly fingerprint: string;
  /** The response without the tallies. */
  readonly response: Uint8Array;
  readonly storedAtMs: number;
  readonly expiresAtMs: number;
}

/** A response that was stored, with the tallies of the write that it was stored with. */
export interface StoredResponse {
  readonly fingerprint: string;
  readonly response: Uint8Array;
  readonly tallies: readonly Tally[];
}

/**
 * What a write under an idempotency key came to. `replay`: the key had already been used. `running`: another request
 * under the same key is being written at this moment, perhaps by another process. In both cases nothing was stored.
 */
export type Written =
  | { readonly kind: 'written'; readonly tallies: readonly Tally[] }
  | { readonly kind: 'running' }
  | { readonly kind: 'replay'; readonly stored: StoredResponse };

export interface IdempotencyStore {
  /** Returns what is stored under the key and has not expired by the given moment. */
  storedResponse(key: IdempotencyRecordKey, nowMs: number): Promise<StoredResponse | null>;
  /** Deletes what has expired by the given moment. */
  deleteExpiredResponses(nowMs: number): Promise<void>;
}
