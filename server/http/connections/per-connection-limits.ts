// Limits how much work one connection can cause at once. Node reads up to 64 KiB from a connection and handles all of
// it before it reads from another connection. 64 KiB can contain two thousand requests, or ten thousand pieces of a
// body.

import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { MOST_HEADERS } from '../fixed-refusals.ts';
import { responseBegan, responseEnded, unansweredHeaders, unfinishedResponses } from './connection-state.ts';
import { Discards } from './discards.ts';
import { limitHandshakes } from './handshake-limit.ts';
import type { Owner } from './owner.ts';
import { ReadLimit } from './read-limit.ts';
import { ServingTurns } from './serving-turns.ts';
import { skipReceived } from './skip-received.ts';
import { limitTinyChunks } from './tiny-chunks.ts';

export const MOST_UNANSWERED_REQUESTS = 8;
/**
 * How many requests of an owner may wait for the responses to earlier ones on their connections. When a client closes its
 * connections, Node takes 50 µs to end each of their requests, and everybody waits meanwhile.
 */
export const MOST_PIPELINED_REQUESTS = 500;

/**
 * Wraps the server's request listener with the limits. Call it once per server. Organisations take turns: the time for
 * a request is charged to what `ownerOf` returns. Call the returned function if the parser
 * refuses the data of a connection, which takes time, too.
 */
export function limitConnections(
  server: Server,
  ownerOf: (request: IncomingMessage) => Owner,
): (socket: Socket) => void {
  const [handle] = server.listeners('request') as [RequestListener];
  server.removeListener('request', handle);
  const readLimit = new ReadLimit(server);
  if (server instanceof TlsServer) limitHandshakes(server, () => readLimit.opening());
  const turns = new ServingTurns(server);
  const discards = new Discards();
  const pipelined = new Map<Owner, number>();
  server.on('request', (request, response) => {
    const { socket } = request;
    readLimit.requestArrived(socket, () => ownerOf(request));
    const isPipelined = unfinishedResponses(socket) > 0;
    const owner = ownerOf(request);
    const before = pipelined.get(owner) ?? 0;
    if (isPipelined && (before >= MOST_PIPELINED_REQUESTS || isTooMuch(request))) {
      skipReceived(socket);
      socket.destroy();
      return;
    }
    if (isPipelined) {
      pipelined.set(owner, before + 1);
      response.on('close', () => {
        const left = pipelined.get(owner)! - 1;
        if (left === 0) pipelined.delete(owner);
        else pipelined.set(owner, left);
      });
    }
    responseBegan(socket, response);
    response.on('finish', () => discards.begin(request, ownerOf));
    response.on('close', () => {
      responseEnded(socket, response);
      readLimit.responded(socket, ownerOf(request));
      turns.responded(socket);
    });
    limitTinyChunks(request, response, () => readLimit.dataArrived(socket));
    discards.watch(request);
    turns.take(
      socket,
      () => ownerOf(request),
      () => handle.call(server, request, response),
    );
  });
  return (socket) => readLimit.dataArrived(socket);
}

/** Returns whether a connection has too many unanswered requests, or requests with too many headers, with this one. */
function isTooMuch({ socket, rawHeaders }: IncomingMessage): boolean {
  return (
    unfinishedResponses(socket) >= MOST_UNANSWERED_REQUESTS ||
    unansweredHeaders(socket) + rawHeaders.length / 2 > MOST_HEADERS
  );
}
