// The store interface for idempotency records. A response is stored in the transaction of its request, so that a
// repeated request gets the same response instead of running twice.

import type { OrganisationNumber, Tally } from './rows.ts';

/** Identifies an idempotency record. A key is unique only within one organisation and one path. */
export interface IdempotencyRecordKey {
  readonly organisation: OrganisationNumber;
  readonly path: string;
  readonly key: string;
}

export interface IdempotencyRecord extends IdempotencyRecordKey {
  /**
   * A hash of the request's body and handling. A repeated request has the same hash, and any other request has a
   * different one.
   */
  readonly fingerprint: string;
  /** The response without its tallies, which are stored separately because only the write determines them. */
  readonly response: Uint8Array;
  readonly storedAtMs: number;
  readonly expiresAtMs: number;
}

/** A stored response, with the tallies of its write. */
export interface StoredResponse {
  readonly fingerprint: string;
  readonly response: Uint8Array;
  readonly tallies: readonly Tally[];
}

/**
 * The result of a write. `replay`: a response is already stored under the idempotency key. `running`: another request
 * with the same key is being written now, perhaps by another process. In both cases nothing was stored.
 */
export type Written =
  | {
      readonly kind: 'written';
      readonly tallies: readonly Tally[];
      /** The number of the upload's ledger entry. Null if the write has none of its own. */
      readonly seq: number | null;
    }
  | { readonly kind: 'running' }
  | { readonly kind: 'replay'; readonly stored: StoredResponse };

export interface IdempotencyStore {
  /**
   * Returns the response stored under the key. Returns null if no response is stored or the stored one has expired at
   * `nowMs`.
   */
  storedResponse(key: IdempotencyRecordKey, nowMs: number): Promise<StoredResponse | null>;
  /** Deletes the records that have expired at `nowMs`. */
  deleteExpiredResponses(nowMs: number): Promise<void>;
}
