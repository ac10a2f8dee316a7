// Refuses bodies that arrive in very many tiny chunks, whether these are chunks of HTTP or records of TLS. Every chunk,
// even of one byte, costs the serving thread some microseconds and some hundred bytes of memory. Node's backpressure does
// not help, because it counts only the content of the chunks.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from '../refusals.ts';
import { hasBody } from './connection-state.ts';
import { skipReceived } from './skip-received.ts';

const FREE_CHUNKS = 500;
const LEAST_CHUNK_BYTES = 64;

export const chunksTooSmall: Refusal = {
  refusal: 'bad_request',
  message: `The body is sent in chunks of less than ${LEAST_CHUNK_BYTES} bytes on average; send larger ones.`,
};

const refused = new WeakSet<IncomingMessage>();
/** The event that a request emits when its body is refused because of tiny chunks. */
export const TINY_CHUNKS = 'tiny chunks';

export function hasTinyChunks(request: IncomingMessage): boolean {
  return refused.has(request);
}

/** Counts the chunks of a body and refuses it if they are too small. Call this before the first chunk arrives. */
export function refuseTinyChunks(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request)) return;
  let chunks = 0;
  let bytes = 0;
  const push = request.push.bind(request);
  request.push = (chunk: Buffer | null): boolean => {
    // Returning false makes Node stop reading from the connection.
    if (refused.has(request)) return false;
    if (chunk === null) return push(null);
    chunks++;
    bytes += chunk.length;
    if (chunks <= FREE_CHUNKS || bytes >= chunks * LEAST_CHUNK_BYTES) return push(chunk);
    refused.add(request);
    skipReceived(request.socket);
    // The rest of the body is never read, so the connection cannot be reused.
    response.shouldKeepAlive = false;
    if (response.writableFinished) request.socket.destroy();
    else response.once('finish', () => request.socket.destroySoon());
    request.emit(TINY_CHUNKS);
    return false;
  };
}
