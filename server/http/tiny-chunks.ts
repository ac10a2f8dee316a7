// Refuses bodies that are sent in very many tiny chunks. Each chunk takes the serving thread some microseconds and some
// hundred bytes, however small it is, and Node reads on as long as their content is small.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from './refusals.ts';
import { skipReceived } from './skip-received.ts';

const FREE_CHUNKS = 500;
const LEAST_CHUNK_BYTES = 64;

export const chunksTooSmall: Refusal = {
  refusal: 'bad_request',
  message: `The body is sent in chunks of less than ${LEAST_CHUNK_BYTES} bytes on average; send larger ones.`,
};

const refused = new WeakSet<IncomingMessage>();
/** What a request emits when its body is refused. */
export const TINY_CHUNKS = 'tiny chunks';

export function hasTinyChunks(request: IncomingMessage): boolean {
  return refused.has(request);
}

/** To be called before the first chunk of the body arrives. */
export function refuseTinyChunks(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers['transfer-encoding'] === undefined) return;
  let chunks = 0;
  let bytes = 0;
  const push = request.push.bind(request);
  request.push = (chunk: Buffer | null): boolean => {
    // False makes Node stop reading from the connection.
    if (refused.has(request)) return false;
    if (chunk === null) return push(null);
    chunks++;
    bytes += chunk.length;
    if (chunks <= FREE_CHUNKS || bytes >= chunks * LEAST_CHUNK_BYTES) return push(chunk);
    refused.add(request);
    skipReceived(request.socket);
    // The rest is never read, so the connection is of no further use.
    response.shouldKeepAlive = false;
    if (response.writableFinished) request.socket.destroy();
    else response.once('finish', () => request.socket.destroySoon());
    request.emit(TINY_CHUNKS);
    return false;
  };
}
