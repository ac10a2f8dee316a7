// Reads the request headers that change how a request is handled.

import type { IncomingHttpHeaders } from 'node:http';
import { alternatives } from '@headgate/catalogue/alternatives.ts';
import type { Handling } from '../ingest/check-fields.ts';
import type { Refusal } from './refusals.ts';

export const LONGEST_IDEMPOTENCY_KEY_CHARACTERS = 255;
const bearer = /^ *bearer +([^ ]+) *$/i;
const visibleAscii = /^[\x21-\x7e]+$/;
/** Means that the range is not accepted. */
const zeroWeight = /;\s*q=0(?:\.0*)?\s*(?:;|$)/i;
const lenient = /(?:^|,)\s*handling\s*=\s*"?lenient"?\s*(?:$|[,;])/i;

/** Returns the key of `Authorization: Bearer <key>`, or null if there is none. */
export function presentedKey({ authorization }: IncomingHttpHeaders): string | null {
  const parts = bearer.exec(authorization ?? '');
  return parts === null ? null : parts[1]!;
}

/**
 * Returns the content type for a response: the first type in the Accept header that is offered, or else the first offered
 * one that it allows with a star. The narrowest range decides whether a type is allowed. Of the weights, only zero counts.
 */
export function acceptedType<Type extends string>(
  { accept }: IncomingHttpHeaders,
  offered: readonly Type[],
): Type | Refusal {
  const ranges = new Map(
    (accept || '*/*').split(',').map((range) => [mediaType(range), !zeroWeight.test(range)]),
  );
  const allowed = offered.filter((type) => {
    const name = mediaType(type);
    return ranges.get(name) ?? ranges.get(name.replace(/\/.*/, '/*')) ?? ranges.get('*/*') ?? false;
  });
  const named = [...ranges.keys()].flatMap((range) => allowed.filter((type) => mediaType(type) === range));
  return named[0] ?? allowed[0] ?? notAcceptable(offered);
}

export function notAcceptable(offered: readonly string[]): Refusal {
  const known = alternatives(offered.map(mediaType));
  return { refusal: 'not_acceptable', message: `The header Accept must name ${known}, or be left out.` };
}

/** Returns the media type without its parameters, such as the character set. */
export function mediaType(text: string): string {
  return text.split(';', 1)[0]!.trim().toLowerCase();
}

export function preferredHandling({ prefer }: IncomingHttpHeaders): Handling {
  const text = Array.isArray(prefer) ? prefer.join(',') : prefer;
  return text !== undefined && lenient.test(text) ? 'lenient' : 'strict';
}

export function preferenceApplied(handling: Handling): Readonly<Record<string, string>> {
  return handling === 'lenient' ? { 'Preference-Applied': 'handling=lenient' } : {};
}

export function idempotencyKey(headers: IncomingHttpHeaders): string | null | Refusal {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && key.length <= LONGEST_IDEMPOTENCY_KEY_CHARACTERS && visibleAscii.test(key)) {
    return key;
  }
  return {
    refusal: 'bad_request',
    message: `Idempotency-Key must be 1 to ${LONGEST_IDEMPOTENCY_KEY_CHARACTERS} visible ASCII characters.`,
  };
}

/**
 * Returns whether all entries of X-Forwarded-Proto are `https`. One such entry is not enough, because the client itself
 * may have sent the first entry.
 */
export function cameByHttps(headers: IncomingHttpHeaders): boolean {
  const protocols = String(headers['x-forwarded-proto'] ?? '').split(',');
  return protocols.every((protocol) => protocol.trim().toLowerCase() === 'https');
}
