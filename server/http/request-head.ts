// What HTTP requires of the head of every request. Node's parser lets through what is refused here.

import type { IncomingMessage } from 'node:http';
import { hostMissing, transferCoding } from './fixed-refusals.ts';
import type { Refusal } from './refusals.ts';

/**
 * Headers that may occur only once. Of two, Node uses the first or joins them; another server on the way may use the last.
 * The parser itself refuses a second Content-Length. Lists, such as X-Forwarded-Proto, may go on in a second header.
 */
const single = ['Host', 'Authorization', 'Content-Type', 'Idempotency-Key'] as const;

/** By the length of their names, which differ: most headers are passed over by comparing a number. */
const singleByLength: { readonly lowerCase: string; readonly repeated: Refusal }[] = [];
for (const name of single) {
  singleByLength[name.length] = {
    lowerCase: name.toLowerCase(),
    repeated: { refusal: 'bad_request', message: `The header ${name} may occur only once in a request.` },
  };
}

/** Null if the head is good. */
export function headProblem({ rawHeaders, headers, httpVersion }: IncomingMessage): Refusal | null {
  if (headers.host === undefined && httpVersion === '1.1') return hostMissing;
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked')) {
    return transferCoding;
  }
  let seenLengths = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    const header = singleByLength[name.length];
    if (header === undefined || name.toLowerCase() !== header.lowerCase) continue;
    const bit = 1 << name.length;
    if ((seenLengths & bit) !== 0) return header.repeated;
    seenLengths |= bit;
  }
  return null;
}
