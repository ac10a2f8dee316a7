// Ends connections whose client neither sends nor reads.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { isInRequest, sentBytes } from './connections.ts';

/**
 * Destroys a connection on which nothing has moved for the given time, unless the client is waiting for the server.
 * A body that stalls is ended by whoever reads it (read-body.ts), with a response.
 */
export function endStalledConnections(server: Server, stallTimeoutMs: number): void {
  const sentBefore = new WeakMap<Socket, number>();
  server.setTimeout(stallTimeoutMs, (socket: Socket) => {
    const isSending = socket.writableLength > 0;
    if (isInRequest(socket) && !isSending) return;
    const sent = sentBytes(socket);
    // Node sees no progress within a large write if it is encrypted.
    if (isSending && sentBefore.get(socket) !== sent) {
      sentBefore.set(socket, sent);
      socket.setTimeout(stallTimeoutMs);
    } else {
      socket.destroy();
    }
  });
}
