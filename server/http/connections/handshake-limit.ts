// Limits how many TLS handshakes the serving thread works on in one turn of the event loop. In each turn, Node reads
// from all connections on which data has arrived. With an RSA key, a handshake takes milliseconds, so 1000 connections
// that are opened at once would occupy the thread for seconds. Instead, a few are read in each turn. Addresses take
// turns, because nothing else is known about a client before its handshake.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { AddressLines } from './address-lines.ts';

const CONNECTIONS_PER_TURN = 4;
/** So many of them are connections to which the server has replied. What is left of their handshake takes little time. */
const REPLIED_PER_TURN = 2;
/**
 * Node accepts one connection in each turn. No connection is read before all new ones are accepted, or this many.
 * Otherwise those of all addresses would wait in one line to be accepted.
 */
const MOST_ACCEPTED_IN_A_ROW = 50;
/**
 * After a round in which no connection had data, the next round begins after this pause, or after as many milliseconds
 * as there are groups of `CONNECTIONS_PER_MS`. Otherwise clients that send nothing would keep the thread busy.
 */
const SHORTEST_PAUSE_MS = 5;
const CONNECTIONS_PER_MS = 50;

interface TcpSocket extends Socket {
  /** Node's handle. */
  readonly _handle?: { readonly bytesWritten: number; readStart(): void; readStop(): void } | null;
}

/**
 * Call this once per server with TLS. It limits connections until their handshake is done. They are read in rounds, one
 * turn each, so clients that send nothing hardly delay others. Node's timeout ends handshakes that take too long. Calls
 * `onRead` in every turn of a round in which a client has sent something.
 */
export function limitHandshakes(server: Server, onRead: () => void): void {
  const begun = new AddressLines<TcpSocket>();
  const replied = new AddressLines<TcpSocket>();
  /** The connections that are read in this turn. */
  let current: readonly TcpSocket[] = [];
  let bytesBefore = 0;
  let isTurnDue = false;
  let leftInRound = 0;
  let hasReadInRound = false;
  let hasAccepted = false;
  let acceptedInARow = 0;

  const takeTurn = (): void => {
    if (bytesReadFrom(current) > bytesBefore) hasReadInRound = true;
    if (hasReadInRound) onRead();
    for (const tcp of current) {
      if (begun.has(tcp) || replied.has(tcp)) tcp._handle?.readStop();
      if (tcp._handle && tcp._handle.bytesWritten > 0 && begun.delete(tcp)) replied.add(tcp);
    }
    const isAccepting = hasAccepted && acceptedInARow < MOST_ACCEPTED_IN_A_ROW;
    hasAccepted = false;
    if (!isAccepting) acceptedInARow = 0;
    const next = isAccepting ? [] : replied.next(REPLIED_PER_TURN);
    current = isAccepting ? [] : [...next, ...begun.next(CONNECTIONS_PER_TURN - next.length)];
    const unfinished = begun.size + replied.size;
    bytesBefore = bytesReadFrom(current);
    for (const tcp of current) tcp._handle?.readStart();
    isTurnDue = unfinished > current.length;
    if (!isTurnDue) return;
    leftInRound -= current.length;
    if (isAccepting || leftInRound > 0 || hasReadInRound) setImmediate(takeTurn);
    else setTimeout(takeTurn, Math.max(SHORTEST_PAUSE_MS, unfinished / CONNECTIONS_PER_MS));
    if (isAccepting || leftInRound > 0) return;
    leftInRound = unfinished;
    hasReadInRound = false;
  };

  const finish = (tcp: TcpSocket): void => {
    if (!begun.delete(tcp)) replied.delete(tcp);
  };
  server.on('connection', (tcp: TcpSocket) => {
    hasAccepted = true;
    acceptedInARow++;
    begun.add(tcp);
    tcp.once('close', () => finish(tcp));
    tcp._handle?.readStop();
    if (isTurnDue) return;
    isTurnDue = true;
    setImmediate(takeTurn);
  });
  server.on('secureConnection', ({ _parent: tcp }: Socket & { readonly _parent: TcpSocket }) => {
    finish(tcp);
  });
}

function bytesReadFrom(sockets: readonly Socket[]): number {
  return sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
}
