// Skips the received bytes of a connection that have not been parsed yet.

import type { Socket } from 'node:net';

/** The indexes of the parser's callbacks for a complete head and for the end of a chunk. */
const HEAD_COMPLETE = 2;
const END_OF_CHUNK = 5;
/** Node's parser stops if the callback for a head returns this, because another protocol could follow. */
const STOP = 2;

interface HttpSocket extends Socket {
  /** Node's parser. It calls its callbacks, stored under these indexes, for every header and every piece of a body. */
  readonly parser?: Record<number, unknown> | null;
}

/**
 * Makes Node's parser stop at the next request, or at the end of the current chunk, without calling its callbacks. A
 * chunk of 64 KiB can hold two thousand requests, or ten thousand pieces of a body, and neither pausing nor destroying
 * the connection stops the parser before the end of the chunk. Node reuses parsers for other connections, so the
 * callbacks are restored afterwards.
 */
export function skipReceived({ parser }: HttpSocket): void {
  if (!parser) return;
  const callbacks = Object.keys(parser)
    .map(Number)
    .filter((event) => event < END_OF_CHUNK)
    .map((event) => [event, parser[event]] as const);
  for (const [event] of callbacks) parser[event] = event === HEAD_COMPLETE ? () => STOP : null;
  process.nextTick(() => {
    for (const [event, callback] of callbacks) parser[event] = callback;
  });
}
