// Closes connections whose client neither sends nor reads.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { isInRequest, sentBytes } from './connection-state.ts';

/**
 * Closes every connection that has made no progress for `stallTimeoutMs`, unless its client is waiting for the server.
 * If the body of a request stalls, the client gets a response instead (read-body.ts).
 */
export function endStalledConnections(server: Server, stallTimeoutMs: number): void {
  const sentBefore = new WeakMap<Socket, number>();
  server.setTimeout(stallTimeoutMs, (socket: Socket) => {
    const isSending = socket.writableLength > 0;
    if (isInRequest(socket) && !isSending) return;
    const sent = sentBytes(socket);
    // Node's timeout does not notice progress within a large encrypted write, so the number of sent bytes is compared.
    if (isSending && sentBefore.get(socket) !== sent) {
      sentBefore.set(socket, sent);
      socket.setTimeout(stallTimeoutMs);
    } else {
      socket.destroy();
    }
  });
}
