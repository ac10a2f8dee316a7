// Lets a closing server wait for requests only, not for connections on which nothing happens.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

const SWEEP_EVERY_MS = 50;

/**
 * Answers a function that begins to end every connection as soon as it is idle. Closing a Node server ends
 * those that are idle at that moment; it leaves those that become idle later, after their answer, and those
 * that were opened and have not said anything yet.
 */
export function idleConnectionSweeper(server: Server): () => void {
  const open = new Set<Socket>();
  const track = (socket: Socket): void => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  };
  // On a TLS server the first is the connection below the second: it has read something once the client has.
  server.on('connection', track).on('secureConnection', track);

  return () => {
    const sweeping = setInterval(() => {
      server.closeIdleConnections();
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    }, SWEEP_EVERY_MS);
    server.once('close', () => clearInterval(sweeping));
  };
}
