// Lets connections take turns on the serving thread. In each turn of the event loop, Node accepts one new connection
// and reads from every connection that has data. If all those requests were handled at once, a client with hundreds of
// connections would delay a new one by seconds.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { unfinishedResponses } from './connection-state.ts';

/** The longest time for which requests are handled in one turn of the event loop. */
const TURN_MS = 4;
/** The most requests that are handled after a new connection was accepted, because more new ones are likely to wait. */
const AFTER_ACCEPTING = 2;

export class ConnectionTurns {
  /** The first connection is the one that was served longest ago. */
  readonly #waiting = new Map<Socket, (() => void)[]>();
  #isTurnEndDue = false;
  #turnStartedAtMs = 0;
  #hasAccepted = false;

  constructor(server: Server) {
    server.on('connection', () => {
      this.#hasAccepted = true;
    });
  }

  /**
   * Calls `handle` now or when the connection has its turn; never, if the connection is closed by then. A pipelined
   * request always waits for a turn, because the rest of the received data may cause the connection to be closed.
   */
  take(socket: Socket, handle: () => void): void {
    if (!this.#isTurnEndDue) {
      this.#isTurnEndDue = true;
      this.#turnStartedAtMs = performance.now();
      setImmediate(() => this.#endTurn());
    }
    const before = this.#waiting.get(socket);
    if (this.#waiting.size === 0 && unfinishedResponses(socket) === 1 && this.#hasTime()) handle();
    else if (before === undefined) this.#waiting.set(socket, [handle]);
    else before.push(handle);
  }

  #hasTime(): boolean {
    return performance.now() - this.#turnStartedAtMs < TURN_MS;
  }

  #endTurn(): void {
    this.#turnStartedAtMs = performance.now();
    let handled = 0;
    while (this.#waiting.size > 0 && this.#hasTime()) {
      if (this.#hasAccepted && handled === AFTER_ACCEPTING) break;
      this.#handleNext();
      handled++;
    }
    this.#hasAccepted = false;
    this.#isTurnEndDue = this.#waiting.size > 0;
    if (this.#isTurnEndDue) setImmediate(() => this.#endTurn());
  }

  #handleNext(): void {
    for (const [socket, [handle, ...others]] of this.#waiting) {
      this.#waiting.delete(socket);
      if (socket.destroyed) continue;
      if (others.length > 0) this.#waiting.set(socket, others);
      handle!();
      return;
    }
  }
}
