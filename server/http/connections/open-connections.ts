// Limits how many connections are open, because each one takes a file descriptor and memory. If there are too many, the
// address that has the most loses one. So a client that opens thousands of connections, or resets them faster than the
// server notices, does not keep others from connecting.

import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from './address-lines.ts';

interface HttpSocket extends Socket {
  /** With TLS, the TCP connection. */
  readonly _parent?: Socket;
}

/** The TCP connections of an address. */
interface OfAddress {
  readonly address: string;
  /** The oldest comes first. */
  readonly withoutRequest: Set<Socket>;
  /** The one whose last request began longest ago comes first. */
  readonly withRequest: Set<Socket>;
}

/** Call this once per server. Calls `onClosed` for every connection that is closed because there are too many. */
export function limitOpenConnections(server: Server, most: number, onClosed: () => void): void {
  const addresses = new Map<string, OfAddress>();
  const open = new Map<Socket, OfAddress>();

  const forget = (tcp: Socket): void => {
    const connections = open.get(tcp);
    if (connections === undefined) return;
    open.delete(tcp);
    if (!connections.withoutRequest.delete(tcp)) connections.withRequest.delete(tcp);
    if (countOf(connections) === 0) addresses.delete(connections.address);
  };

  server.on('connection', (tcp: Socket) => {
    if (open.size === most) {
      const unlucky = leastUsedOf(addresses.values());
      forget(unlucky);
      unlucky.destroy();
      onClosed();
    }
    const address = networkOf(tcp);
    const known = addresses.get(address);
    const connections = known ?? { address, withoutRequest: new Set(), withRequest: new Set() };
    if (known === undefined) addresses.set(address, connections);
    connections.withoutRequest.add(tcp);
    open.set(tcp, connections);
    tcp.once('close', () => forget(tcp));
  });
  server.on('request', ({ socket }: IncomingMessage & { readonly socket: HttpSocket }) => {
    const tcp = socket._parent ?? socket;
    const connections = open.get(tcp);
    if (!connections?.withoutRequest.delete(tcp)) connections?.withRequest.delete(tcp);
    connections?.withRequest.add(tcp);
  });
}

function countOf({ withoutRequest, withRequest }: OfAddress): number {
  return withoutRequest.size + withRequest.size;
}

/** Returns a connection of the address with the most: one without a request, or the one whose last request is the oldest. */
function leastUsedOf(addresses: Iterable<OfAddress>): Socket {
  let most: OfAddress | undefined;
  for (const one of addresses) if (most === undefined || countOf(one) > countOf(most)) most = one;
  const [connection] = most!.withoutRequest.size > 0 ? most!.withoutRequest : most!.withRequest;
  return connection!;
}
