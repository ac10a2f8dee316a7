// Checks the head of every request for violations of HTTP that Node's parser lets through.

import type { IncomingMessage } from 'node:http';
import { hostMissing, transferCoding } from './fixed-refusals.ts';
import type { Refusal } from './refusals.ts';

/**
 * Headers that may occur only once. Node uses the first of two or joins them; a proxy in front may use the last.
 * The parser itself refuses a second Content-Length. List headers, such as X-Forwarded-Proto, may be repeated.
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
  // Most requests repeat no header, so the cost of `headersDistinct` is paid only for those that do.
  if (Object.keys(headers).length * 2 === rawHeaders.length) return null;
  const { headersDistinct } = request;
  const repeated = single.find((name) => (headersDistinct[name.toLowerCase()]?.length ?? 0) > 1);
  if (repeated === undefined) return null;
  return { refusal: 'bad_request', message: `The header ${repeated} may occur only once in a request.` };
}
