// Limits how many TLS handshakes the serving thread works on in one turn of the event loop. In each turn, Node reads
// from all connections on which data has arrived. With an RSA key, a handshake takes milliseconds, so 1000 connections
// that are opened at once would occupy the thread for seconds. Instead, a few are read in each turn.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

const CONNECTIONS_PER_TURN = 4;
/**
 * After a round in which no connection had data, the next round begins after this pause, or after as many milliseconds
 * as there are groups of `CONNECTIONS_PER_MS`. Otherwise clients that send nothing would keep the thread busy.
 */
const SHORTEST_PAUSE_MS = 5;
const CONNECTIONS_PER_MS = 50;

interface TcpSocket extends Socket {
  /** Node's handle. */
  readonly _handle?: { readStart(): void; readStop(): void } | null;
}

/**
 * Call this once per server with TLS. It limits connections until their handshake is done. They are read in rounds, one
 * turn each, so clients that send nothing hardly delay others. Node's timeout ends handshakes that take too long.
 */
export function limitHandshakes(server: Server): void {
  /** The connections whose handshake is not done, the next to be read first. */
  const unfinished = new Set<TcpSocket>();
  /** The connections that are read in this turn. */
  let current: readonly TcpSocket[] = [];
  let bytesBefore = 0;
  let isTurnDue = false;
  let leftInRound = 0;
  let hasReadInRound = false;

  const takeTurn = (): void => {
    if (bytesReadFrom(current) > bytesBefore) hasReadInRound = true;
    for (const tcp of current) {
      if (!unfinished.delete(tcp)) continue;
      unfinished.add(tcp);
      tcp._handle?.readStop();
    }
    current = [...unfinished.values().take(CONNECTIONS_PER_TURN)];
    bytesBefore = bytesReadFrom(current);
    for (const tcp of current) tcp._handle?.readStart();
    isTurnDue = unfinished.size > current.length;
    if (!isTurnDue) return;
    leftInRound -= current.length;
    if (leftInRound > 0 || hasReadInRound) setImmediate(takeTurn);
    else setTimeout(takeTurn, Math.max(SHORTEST_PAUSE_MS, unfinished.size / CONNECTIONS_PER_MS));
    if (leftInRound > 0) return;
    leftInRound = unfinished.size;
    hasReadInRound = false;
  };

  server.on('connection', (tcp: TcpSocket) => {
    unfinished.add(tcp);
    tcp.once('close', () => unfinished.delete(tcp));
    tcp._handle?.readStop();
    if (isTurnDue) return;
    isTurnDue = true;
    setImmediate(takeTurn);
  });
  server.on('secureConnection', ({ _parent: tcp }: Socket & { readonly _parent: TcpSocket }) => {
    unfinished.delete(tcp);
  });
}

function bytesReadFrom(sockets: readonly Socket[]): number {
  return sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
}
