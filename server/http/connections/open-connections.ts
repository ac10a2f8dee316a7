// Limits how many connections are open, because each one takes a file descriptor and memory. If there are too many, the
// address that has the most loses one. So a client that opens thousands of connections, or resets them faster than the
// server notices, does not keep others from connecting.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from './address-lines.ts';

interface HttpSocket extends Socket {
  /** With TLS, the TCP connection. */
  readonly _parent?: Socket;
}

/** The TCP connections of an address. The first of `withoutRequest` is closed first, and the last of `busy` last. */
interface OfAddress {
  readonly address: string;
  /** The oldest comes first. */
  readonly withoutRequest: Set<Socket>;
  /** Those whose requests have all been responded to. The one that has been idle the longest comes first. */
  readonly idle: Set<Socket>;
  /** The one that has been busy the longest comes first. */
  readonly busy: Set<Socket>;
}

interface Open {
  readonly ofAddress: OfAddress;
  /** The set that has the connection. */
  place: Set<Socket>;
  /** How many requests have no response yet. */
  requests: number;
}

/** Call this once per server. Calls `onClosed` for every connection that is closed because there are too many. */
export function limitOpenConnections(server: Server, most: number, onClosed: () => void): void {
  const addresses = new Map<string, OfAddress>();
  const open = new Map<Socket, Open>();

  const forget = (tcp: Socket): void => {
    const known = open.get(tcp);
    if (known === undefined) return;
    open.delete(tcp);
    known.place.delete(tcp);
    if (countOf(known.ofAddress) === 0) addresses.delete(known.ofAddress.address);
  };
  const move = (tcp: Socket, known: Open, to: Set<Socket>): void => {
    known.place.delete(tcp);
    known.place = to.add(tcp);
  };

  server.on('connection', (tcp: Socket) => {
    // The client has reset the connection before it was accepted. So no other one is closed to make room for it.
    if (tcp.remoteAddress === undefined) {
      tcp.destroy();
      return;
    }
    if (open.size === most) {
      const unlucky = leastUsedOf(addresses.values());
      forget(unlucky);
      unlucky.destroy();
      onClosed();
    }
    const address = networkOf(tcp);
    const ofAddress = addresses.get(address) ?? newAddress(address);
    addresses.set(address, ofAddress);
    open.set(tcp, { ofAddress, place: ofAddress.withoutRequest.add(tcp), requests: 0 });
    tcp.once('close', () => forget(tcp));
  });
  server.on(
    'request',
    ({ socket }: IncomingMessage & { readonly socket: HttpSocket }, response: ServerResponse) => {
      const tcp = socket._parent ?? socket;
      const known = open.get(tcp);
      if (known === undefined) return;
      known.requests++;
      if (known.requests === 1) move(tcp, known, known.ofAddress.busy);
      response.once('close', () => {
        known.requests--;
        if (known.requests === 0 && open.has(tcp)) move(tcp, known, known.ofAddress.idle);
      });
    },
  );
}

function newAddress(address: string): OfAddress {
  return { address, withoutRequest: new Set(), idle: new Set(), busy: new Set() };
}

function countOf({ withoutRequest, idle, busy }: OfAddress): number {
  return withoutRequest.size + idle.size + busy.size;
}

/** Returns a connection of the address with the most. */
function leastUsedOf(addresses: Iterable<OfAddress>): Socket {
  let most: OfAddress | undefined;
  for (const one of addresses) if (most === undefined || countOf(one) > countOf(most)) most = one;
  const { withoutRequest, idle, busy } = most!;
  const [connection] = [withoutRequest, idle, busy].find(({ size }) => size > 0)!;
  return connection!;
}
