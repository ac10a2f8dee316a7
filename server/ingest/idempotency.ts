// Idempotency: a response is stored together with what its request wrote, so that the same request gets the same
// response again instead of being carried out twice.

import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { IdempotencyRecord, StoredResponse } from '../store/idempotency-records.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';

export interface IdempotencyKey {
  readonly path: string;
  readonly key: string;
}

/** The idempotency key already stands for another request. */
export interface KeyTaken {
  readonly kind: 'key_taken';
}

/** A request under the same idempotency key is being written at this moment. */
export interface KeyRunning {
  readonly kind: 'key_running';
}

const STORED_FOR_MS = 24 * 60 * 60 * 1000;

export function idempotencyRecordOf(
  { path, key }: IdempotencyKey,
  organisation: OrganisationNumber,
  fingerprint: string,
  response: unknown,
): IdempotencyRecord {
  const nowMs = Date.now();
  return {
    organisation,
    path,
    key,
    fingerprint,
    response: packResponse(response),
    storedAtMs: nowMs,
    expiresAtMs: nowMs + STORED_FOR_MS,
  };
}

/** `unavailable`: it cannot be known now whether the request has a response. */
export type EarlierResponse =
  | { readonly kind: 'first'; readonly fingerprint: string }
  | { readonly kind: 'replay'; readonly stored: StoredResponse }
  | { readonly kind: 'unavailable'; readonly reason: string }
  | KeyTaken;

/** Looks for a response that this very request got earlier. Without a key every request is the first. */
export async function findEarlierResponse(
  { organisation, body, handling }: { organisation: OrganisationNumber; body: Uint8Array; handling: string },
  idempotency: IdempotencyKey | null,
  store: Pick<Store, 'storedResponse'>,
): Promise<EarlierResponse> {
  if (idempotency === null) return { kind: 'first', fingerprint: '' };
  const fingerprint = fingerprintOf(body, handling);
  try {
    const stored = await store.storedResponse({ ...idempotency, organisation }, Date.now());
    return stored === null ? { kind: 'first', fingerprint } : matchEarlierResponse(stored, fingerprint);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return { kind: 'unavailable', reason: error.message };
  }
}

/** What is stored under the key is the response to this request only if it is the same request. */
export function matchEarlierResponse(
  stored: StoredResponse,
  fingerprint: string,
): { readonly kind: 'replay'; readonly stored: StoredResponse } | KeyTaken {
  return stored.fingerprint === fingerprint ? { kind: 'replay', stored } : { kind: 'key_taken' };
}

/** Differs between different bodies, and between ways of handling the same one. */
function fingerprintOf(body: Uint8Array, handling: string): string {
  return `${handling}:${hash('sha256', body)}`;
}

/** Compressed, because the errors of 5000 records say nearly the same thousands of times. */
function packResponse(response: unknown): Uint8Array {
  return deflateRawSync(JSON.stringify(response));
}

export function unpackResponse<Response>(packed: Uint8Array): Response {
  return JSON.parse(inflateRawSync(packed).toString()) as Response;
}
