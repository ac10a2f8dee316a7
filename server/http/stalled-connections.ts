// Ends connections whose client neither sends nor reads.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { isInRequest } from './connections.ts';

/**
 * Destroys a connection on which nothing has moved for the given time, unless the server is the one that is waited for.
 * A body that stalls is ended by whoever reads it (read-body.ts), with a response.
 */
export function endStalledConnections(server: Server, stallTimeoutMs: number): void {
  server.setTimeout(stallTimeoutMs, (socket: Socket) => {
    const isNotRead = socket.writableLength > 0;
    if (isNotRead || !isInRequest(socket)) socket.destroy();
  });
}
