// Idempotency: an answer is kept together with what it answers, so that the same request sent again gets
// the first answer again instead of being carried out twice.

import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import {
  type Memory,
  type OrganisationNumber,
  type Remembered,
  type Store,
  StoreUnavailable,
} from '../store/store.ts';

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

const KEPT_FOR_MS = 24 * 60 * 60 * 1000;

export function memoryOf(
  { path, key }: IdempotencyKey,
  organisation: OrganisationNumber,
  fingerprint: string,
  answer: unknown,
): Memory {
  const nowMs = Date.now();
  return {
    organisation,
    path,
    key,
    fingerprint,
    answer: sealAnswer(answer),
    keptAtMs: nowMs,
    expiresAtMs: nowMs + KEPT_FOR_MS,
  };
}

/** `unavailable`: whether the request was answered before cannot be known now. */
export type Recalled =
  | { readonly kind: 'first'; readonly fingerprint: string }
  | { readonly kind: 'again'; readonly remembered: Remembered }
  | { readonly kind: 'unavailable'; readonly reason: string }
  | KeyTaken;

/** Looks for an answer that was given to this very request before. Without a key every request is the first. */
export async function recallAnswer(
  { organisation, body, handling }: { organisation: OrganisationNumber; body: Uint8Array; handling: string },
  idempotency: IdempotencyKey | null,
  store: Pick<Store, 'recall'>,
): Promise<Recalled> {
  if (idempotency === null) return { kind: 'first', fingerprint: '' };
  const fingerprint = fingerprintOf(body, handling);
  try {
    const remembered = await store.recall({ ...idempotency, organisation }, Date.now());
    return remembered === null ? { kind: 'first', fingerprint } : answerAgain(remembered, fingerprint);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return { kind: 'unavailable', reason: error.message };
  }
}

/** What was kept under the key answers this request only if it is the same one. */
export function answerAgain(
  remembered: Remembered,
  fingerprint: string,
): { readonly kind: 'again'; readonly remembered: Remembered } | KeyTaken {
  return remembered.fingerprint === fingerprint ? { kind: 'again', remembered } : { kind: 'key_taken' };
}

/** Tells one body, and one way of handling it, from another. */
function fingerprintOf(body: Uint8Array, handling: string): string {
  return `${handling}:${hash('sha256', body)}`;
}

/** Compressed, because the errors of 5000 records say nearly the same thousands of times. */
function sealAnswer(answer: unknown): Uint8Array {
  return deflateRawSync(JSON.stringify(answer));
}

export function openAnswer<Answer>(sealed: Uint8Array): Answer {
  return JSON.parse(inflateRawSync(sealed).toString()) as Answer;
}
