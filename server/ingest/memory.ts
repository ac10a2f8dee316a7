// Idempotency: an answer is kept together with what it answers, so that the same request sent again gets
// the first answer again instead of being carried out twice.

import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Memory, OrganisationNumber } from '../store/store.ts';

export interface IdempotencyKey {
  readonly path: string;
  readonly key: string;
}

/** The idempotency key already stands for another body, or for a request that is still being written. */
export interface KeyTaken {
  readonly kind: 'key_taken' | 'key_running';
}

const KEPT_FOR_MS = 24 * 60 * 60 * 1000;

export function memoryOf(
  { path, key }: IdempotencyKey,
  organisation: OrganisationNumber,
  fingerprint: string,
  answer: unknown,
  nowMs: number,
): Memory {
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

/** Tells one body, and one way of handling it, from another. */
export function fingerprintOf(body: Uint8Array, handling: string): string {
  return `${handling}:${hash('sha256', body)}`;
}

/** Compressed, because the errors of 5000 records say nearly the same thousands of times. */
function sealAnswer(answer: unknown): Uint8Array {
  return deflateRawSync(JSON.stringify(answer));
}

export function openAnswer<Answer>(sealed: Uint8Array): Answer {
  return JSON.parse(inflateRawSync(sealed).toString()) as Answer;
}
