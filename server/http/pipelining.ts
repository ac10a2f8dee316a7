// Bounds how many requests a client may send on a connection without waiting for their answers. Node hands over all
// requests of a chunk at once, and a chunk of 64 KiB can hold two thousand: each would be worked on before anybody else.

import type { RequestListener, Server } from 'node:http';
import { unfinishedResponses } from './connections.ts';

export const MOST_UNANSWERED_REQUESTS = 16;

/** To be called when the server has its one listener. */
export function limitPipelining(server: Server): void {
  const [handle] = server.listeners('request') as [RequestListener];
  server.removeListener('request', handle);
  server.on('request', (request, response) => {
    const { socket } = request;
    // Only the end of the connection keeps Node from reading on. What it has read already is dropped here.
    if (unfinishedResponses(socket) >= MOST_UNANSWERED_REQUESTS) socket.destroy();
    else if (!socket.destroyed) handle.call(server, request, response);
  });
}
