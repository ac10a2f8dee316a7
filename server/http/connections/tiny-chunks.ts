// Joins the tiny chunks of bodies, and refuses bodies that have very many of them, whether these are chunks of HTTP or
// records of TLS. Every chunk that reaches a stream, even of one byte, costs the serving thread some microseconds and
// some hundred bytes of memory. Node's backpressure does not help, because it counts only the content of the chunks.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Refusal } from '../refusals.ts';
import { hasBody, unfinishedResponses } from './connection-state.ts';
import { skipReceived } from './skip-received.ts';

const FREE_CHUNKS = 500;
const LEAST_CHUNK_BYTES = 64;
/** Smaller chunks that arrive in the same turn of the event loop are joined into one. */
const LEAST_UNJOINED_BYTES = 1024;
const MOST_JOINED_BYTES = 32 * 1024;

export const chunksTooSmall: Refusal = {
  refusal: 'bad_request',
  message: `The body is sent in chunks of less than ${LEAST_CHUNK_BYTES} bytes on average; send larger ones.`,
};

/** The event that a request emits when its body is refused because of tiny chunks. */
export const TINY_CHUNKS = 'tiny chunks';

interface Received {
  chunks: number;
  bytes: number;
}

const refused = new WeakSet<IncomingMessage>();
const receivedBy = new WeakMap<Socket, Received>();

export function hasTinyChunks(request: IncomingMessage): boolean {
  return refused.has(request);
}

/**
 * Returns in how many chunks the body has arrived so far. The bodies of requests that were sent before it without
 * waiting for a response are included.
 */
export function chunksReceived({ socket }: IncomingMessage): number {
  return receivedBy.get(socket)?.chunks ?? 0;
}

/**
 * Counts the chunks of a body, joins tiny ones and refuses too many. Call this before the first chunk arrives. Calls
 * `onChunk` for every chunk.
 */
export function limitTinyChunks(
  request: IncomingMessage,
  response: ServerResponse,
  onChunk: () => void,
): void {
  if (!hasBody(request)) return;
  const { socket } = request;
  const received = receivedBefore(socket);
  const push = request.push.bind(request);
  let tiny: Buffer[] = [];
  let tinyBytes = 0;
  const pushTiny = (): boolean => {
    if (tiny.length === 0 || refused.has(request)) return true;
    const joined = Buffer.concat(tiny);
    tiny = [];
    tinyBytes = 0;
    const isMoreWanted = push(joined);
    if (!isMoreWanted) socket.pause();
    return isMoreWanted;
  };
  request.push = (chunk: Buffer | null): boolean => {
    if (refused.has(request)) {
      // Over TLS, further records may have been received, which are parsed one by one.
      skipReceived(socket);
      // Returning false makes Node stop reading from the connection.
      return false;
    }
    if (chunk === null) {
      pushTiny();
      return push(null);
    }
    onChunk();
    received.chunks++;
    received.bytes += chunk.length;
    if (received.chunks > FREE_CHUNKS && received.bytes < received.chunks * LEAST_CHUNK_BYTES) {
      refuse(request, response);
      return false;
    }
    if (tiny.length === 0) {
      if (chunk.length >= LEAST_UNJOINED_BYTES) return push(chunk);
      // Node runs callbacks of `process.nextTick` after every chunk, so these would join nothing.
      setImmediate(pushTiny);
    }
    tiny.push(chunk);
    tinyBytes += chunk.length;
    // The reader must get the chunks in time to pause, because Node reads up to 2 MiB from a connection in one turn.
    return tinyBytes < MOST_JOINED_BYTES || pushTiny();
  };
}

/** Bodies of requests that are sent without waiting for responses are counted together, because they arrive at once. */
function receivedBefore(socket: Socket): Received {
  const before = unfinishedResponses(socket) > 1 ? receivedBy.get(socket) : undefined;
  const received = before ?? { chunks: 0, bytes: 0 };
  receivedBy.set(socket, received);
  return received;
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  refused.add(request);
  skipReceived(request.socket);
  // The rest of the body is never read, so the connection cannot be reused.
  response.shouldKeepAlive = false;
  if (response.writableFinished) request.socket.destroy();
  else response.once('finish', () => request.socket.destroySoon());
  request.emit(TINY_CHUNKS);
}
