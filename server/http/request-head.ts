// What HTTP requires of the head of every request. Node's parser lets through what is refused here.

import type { IncomingMessage } from 'node:http';
import { hostMissing, transferCoding } from './fixed-refusals.ts';
import type { Refusal } from './refusals.ts';

/**
 * Headers that may occur only once. Of two, Node uses the first or joins them; another server on the way may use the last.
 * The parser itself refuses a second Content-Length. Lists, such as X-Forwarded-Proto, may go on in a second header.
 */
const single = ['Host', 'Authorization', 'Content-Type', 'Idempotency-Key'];

/** Returns null if the head is good. */
export function headProblem(request: IncomingMessage): Refusal | null {
  const { rawHeaders, headers, httpVersion } = request;
  if (headers.host === undefined && httpVersion === '1.1') return hostMissing;
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked')) {
    return transferCoding;
  }
  // In most requests no header occurs twice; only for the others is it worth collecting the values of each.
  if (Object.keys(headers).length * 2 === rawHeaders.length) return null;
  const { headersDistinct } = request;
  const repeated = single.find((name) => (headersDistinct[name.toLowerCase()]?.length ?? 0) > 1);
  if (repeated === undefined) return null;
  return { refusal: 'bad_request', message: `The header ${repeated} may occur only once in a request.` };
}
