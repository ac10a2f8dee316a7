// Skips the received bytes of a connection that have not been parsed yet.

import type { Socket } from 'node:net';

/** The indexes of two of the parser's callbacks: for a complete request head, and for the end of the received bytes. */
const HEAD_COMPLETE = 2;
const END_OF_CHUNK = 5;
/**
 * If the callback for a head returns this value, Node's parser stops. The value is meant for requests after which the
 * connection changes to another protocol.
 */
const STOP = 2;

interface HttpSocket extends Socket {
  /**
   * Node's parser. Its callbacks, such as the one for a complete head, are stored under numbers. `_consumed` is true
   * while it reads from the connection directly.
   */
  readonly parser?: (Record<number, unknown> & { readonly _consumed?: boolean }) | null;
}

/**
 * Makes Node's parser stop at the next request, or at the end of the bytes that it is parsing, and call none of its
 * callbacks until then. Node parses up to 64 KiB at a time, which can contain two thousand requests or ten thousand
 * pieces of a body. Neither pausing nor destroying the connection stops the parser before the end of these bytes. The
 * callbacks are restored afterwards, because Node reuses a parser for other connections.
 */
export function skipReceived({ parser }: HttpSocket): void {
  if (!parser) return;
  const callbacks = Object.keys(parser)
    .map(Number)
    .filter((event) => event < END_OF_CHUNK)
    .map((event) => [event, parser[event]] as const);
  for (const [event] of callbacks) parser[event] = event === HEAD_COMPLETE ? () => STOP : null;
  const restore = (): void => {
    for (const [event, callback] of callbacks) parser[event] = callback;
  };
  const onEnd = parser[END_OF_CHUNK];
  // If the parser reads from the connection directly, Node runs callbacks of `process.nextTick` after every callback of
  // the parser, which would be before the end of the bytes.
  if (parser._consumed && typeof onEnd === 'function') {
    parser[END_OF_CHUNK] = (...args: unknown[]): unknown => {
      parser[END_OF_CHUNK] = onEnd;
      restore();
      return onEnd.apply(parser, args);
    };
  } else process.nextTick(restore);
}
