// Skips what has been received on a connection and not been looked at.

import type { Socket } from 'node:net';

/** The number of the call at the end of a chunk, after which everything is as before. */
const END_OF_CHUNK = 5;

interface HttpSocket extends Socket {
  /** Node's parser, which calls its functions of these numbers for every header and every piece of a body. */
  readonly parser?: Record<number, unknown> | null;
}

/**
 * Makes Node's parser go through the rest of the chunk that it is at without calling anybody. A chunk of 64 KiB can hold two
 * thousand requests, or ten thousand pieces of a body, and neither a pause nor the end of the connection stops the parser
 * before all of them have been handed over. Parsers are used for other connections later, so what is taken from this one
 * is given back when it is done with the chunk.
 */
export function skipReceived({ parser }: HttpSocket): void {
  if (!parser) return;
  const callbacks = Object.keys(parser)
    .map(Number)
    .filter((event) => event < END_OF_CHUNK)
    .map((event) => [event, parser[event]] as const);
  for (const [event] of callbacks) parser[event] = null;
  process.nextTick(() => {
    for (const [event, callback] of callbacks) parser[event] = callback;
  });
}
