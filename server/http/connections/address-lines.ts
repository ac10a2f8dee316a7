// Connections that wait in one line per address. Addresses take turns, so that a client that opens thousands of connections
// does not make the others wait for all of them.

import type { Socket } from 'node:net';

export class AddressLines<Connection extends Socket> {
  readonly #addresses = new Map<Connection, string>();
  /** The connections of each address, the next to be read first. The address whose turn it is comes first. */
  readonly #lines = new Map<string, Set<Connection>>();

  get size(): number {
    return this.#addresses.size;
  }

  has(connection: Connection): boolean {
    return this.#addresses.has(connection);
  }

  add(connection: Connection): void {
    const address = networkOf(connection);
    this.#addresses.set(connection, address);
    const line = this.#lines.get(address);
    if (line === undefined) this.#lines.set(address, new Set([connection]));
    else line.add(connection);
  }

  /** Returns whether the connection was in a line. */
  delete(connection: Connection): boolean {
    const address = this.#addresses.get(connection);
    if (address === undefined) return false;
    this.#addresses.delete(connection);
    const line = this.#lines.get(address)!;
    line.delete(connection);
    if (line.size === 0) this.#lines.delete(address);
    return true;
  }

  /** Returns at most `count` connections, and moves them and their addresses behind all others. */
  next(count: number): readonly Connection[] {
    const taken = new Set<Connection>();
    for (let turn = 0; turn < Math.min(count, this.size); turn++) {
      const [address, line] = this.#lines.entries().next().value!;
      this.#lines.delete(address);
      this.#lines.set(address, line);
      const [connection] = line;
      line.delete(connection!);
      line.add(connection!);
      taken.add(connection!);
    }
    return [...taken];
  }
}

/** Returns the client's address, or the first half of an IPv6 address, because a client often has all that begin with it. */
export function networkOf({ remoteAddress: address = '' }: Socket): string {
  if (address.includes('.')) return address;
  return address.split('::', 1)[0]!.split(':').slice(0, 4).join(':');
}
