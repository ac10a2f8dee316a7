// Checks the head of every request for violations of HTTP that Node's parser accepts.

import type { IncomingMessage } from 'node:http';
import { hostMissing, transferCoding } from './fixed-refusals.ts';
import type { Refusal } from './refusals.ts';

/**
 * Headers that may occur only once. If one occurs twice, Node uses the first value or joins both, but a proxy in front
 * may use the last. Content-Length is not listed, because the parser itself refuses a second one. Headers that contain
 * lists, such as X-Forwarded-Proto, may be repeated.
 */
const single = ['Host', 'Authorization', 'Content-Type', 'Idempotency-Key'];

/** Returns a refusal if the head is invalid, otherwise null. */
export function headProblem(request: IncomingMessage): Refusal | null {
  const { rawHeaders, headers, httpVersion } = request;
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
