// Checks the head of every request for violations of HTTP that Node's parser accepts.

import type { IncomingMessage } from 'node:http';
import { hostMissing, tooManyHeaders, transferCoding } from './fixed-refusals.ts';
import type { Refusal } from './refusals.ts';

/**
 * Headers that may occur only once. If one occurs twice, Node uses the first value or joins both, but a proxy in front
 * may use the last. Content-Length is not listed, because the parser itself refuses a second one. Headers that contain
 * lists, such as X-Forwarded-Proto, may be repeated.
 */
const single = ['Host', 'Authorization', 'Content-Type', 'Idempotency-Key'];

/** A head of 16 KiB has room for 16,000 headers, which would take milliseconds to read. */
export const MOST_HEADERS = 200;

/** Returns a refusal if the head is invalid, otherwise null. */
export function headProblem(request: IncomingMessage): Refusal | null {
  const { rawHeaders, headers, httpVersion } = request;
  if (rawHeaders.length > 2 * MOST_HEADERS) return tooManyHeaders;
  if (headers.host === undefined && httpVersion === '1.1') return hostMissing;
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked')) {
    return transferCoding;
  }
  // `headersDistinct` costs time, so it is used only if some header is repeated, which is the case for few requests.
  if (Object.keys(headers).length * 2 === rawHeaders.length) return null;
  const { headersDistinct } = request;
  const repeated = single.find((name) => (headersDistinct[name.toLowerCase()]?.length ?? 0) > 1);
  if (repeated === undefined) return null;
  return { refusal: 'bad_request', message: `The header ${repeated} may occur only once in a request.` };
}
