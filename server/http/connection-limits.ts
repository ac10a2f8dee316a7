// Bounds what a client can have worked on at once on one connection. Node hands over everything that is in a chunk of
// 64 KiB before anybody else has a turn: two thousand requests, or ten thousand pieces of a body.

import type { RequestListener, Server } from 'node:http';
import { ConnectionTurns } from './connection-turns.ts';
import { responseBegan, responseEnded, unfinishedResponses } from './connections.ts';
import { skipReceived } from './skip-received.ts';
import { refuseTinyChunks } from './tiny-chunks.ts';

export const MOST_UNANSWERED_REQUESTS = 16;

/** Puts the limits before the listener that the server has; to be called once. */
export function limitConnections(server: Server): void {
  const [handle] = server.listeners('request') as [RequestListener];
  server.removeListener('request', handle);
  const turns = new ConnectionTurns(server);
  server.on('request', (request, response) => {
    const { socket } = request;
    if (unfinishedResponses(socket) >= MOST_UNANSWERED_REQUESTS) {
      skipReceived(socket);
      socket.destroy();
      return;
    }
    responseBegan(socket, response);
    response.on('close', () => responseEnded(socket, response));
    refuseTinyChunks(request, response);
    turns.take(socket, () => handle.call(server, request, response));
  });
}
