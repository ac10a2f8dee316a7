// Implements idempotency keys. A response is stored together with the data that its request wrote, so that a repeated
// request gets the same response and does not run twice.

import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib';
import type { IdempotencyRecord, StoredResponse } from '../store/idempotency-records.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';

export interface IdempotencyKey {
  readonly path: string;
  readonly key: string;
}

/** The idempotency key was already used for a different request. */
export interface KeyTaken {
  readonly kind: 'key_taken';
}

/** Another request with the same idempotency key is being stored at the moment. */
export interface KeyRunning {
  readonly kind: 'key_running';
}

const STORED_FOR_MS = 24 * 60 * 60 * 1000;

/** From this length on, a response is compressed in the background, because this would take up to 0.2 s. */
const BACKGROUND_LENGTH = 256 * 1024;
const deflateInBackground = promisify(deflateRaw);

export async function idempotencyRecordOf(
  { path, key }: IdempotencyKey,
  organisation: OrganisationNumber,
  fingerprint: string,
  response: unknown,
): Promise<IdempotencyRecord> {
  const packed = await packResponse(response);
  const nowMs = Date.now();
  return {
    organisation,
    path,
    key,
    fingerprint,
    response: packed,
    storedAtMs: nowMs,
    expiresAtMs: nowMs + STORED_FOR_MS,
  };
}

/** `unavailable` means that the store could not be read, so it is not known whether a response exists. */
export type EarlierResponse =
  | { readonly kind: 'first'; readonly fingerprint: string }
  | { readonly kind: 'replay'; readonly stored: StoredResponse }
  | { readonly kind: 'unavailable'; readonly reason: string }
  | KeyTaken;

/** Looks for the response that the same request got earlier. Without a key, every request counts as the first. */
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

/** Returns the stored response if it belongs to the same request, otherwise `key_taken`. */
export function matchEarlierResponse(
  stored: StoredResponse,
  fingerprint: string,
): { readonly kind: 'replay'; readonly stored: StoredResponse } | KeyTaken {
  return stored.fingerprint === fingerprint ? { kind: 'replay', stored } : { kind: 'key_taken' };
}

/** Returns a fingerprint of the body and the handling. Requests with the same fingerprint count as the same request. */
function fingerprintOf(body: Uint8Array, handling: string): string {
  return `${handling}:${hash('sha256', body)}`;
}

/** Compresses a response, because the errors of 5000 records are thousands of nearly identical texts. */
function packResponse(response: unknown): Uint8Array | Promise<Uint8Array> {
  const json = JSON.stringify(response);
  return json.length < BACKGROUND_LENGTH ? deflateRawSync(json) : deflateInBackground(json);
}

export function unpackResponse<Response>(packed: Uint8Array): Response {
  return JSON.parse(inflateRawSync(packed).toString()) as Response;
}
